"""One text, judged: what the lint says about it as short strings, so that a test reads as a table.

Never: a finding made by hand; everything comes out of `lint`.
"""

from __future__ import annotations

from typing import Any

from agent.lint import scene, source_of
from states.lint.finding import Finding
from states.lint.lint import lint
from states.lint.scene import Tree

NOTHING: set[str] = set()


def findings(
    text: str, *, name: str = "job.sh", files: dict[str, str | None] | None = None, **about: Any
) -> list[Finding]:
    """All findings. files: the tree (None: it cannot be seen); about: as for `agent.lint.scene`."""
    tree = None if files is None else Tree(files)
    values: dict[str, Any] = {"gpu": 4, "replicas": 1, "workspace": ["/ws"], "cluster": "slurm", **about}
    return list(lint(source_of(name, text), scene(tree=tree, **values)).findings)


def said(text: str, *kinds: str, **about: Any) -> set[str]:
    """`level kind line` of the findings, of these kinds only if any are named."""
    return {f"{f.level} {f.kind} {f.line}" for f in findings(text, **about) if not kinds or f.kind in kinds}


def of(kind: str, text: str, **about: Any) -> set[str]:
    """`level line` of the findings of one kind."""
    return {f"{f.level} {f.line}" for f in findings(text, **about) if f.kind == kind}


def python(kind: str, code: str, command: str = "python -u train.py", **about: Any) -> set[str]:
    """`level line` of one kind in a `train.py` that the job starts."""
    found = findings(command, files={"job.sh": None, "train.py": code}, **about)
    return {f"{f.level} {f.line}" for f in found if f.kind == kind and f.file == "train.py"}
