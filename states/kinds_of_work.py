"""Which kind of work a run is: by the purpose that its request states, else by project and script (RULES H1, C15).

A kind is a text, so that it can be stored and shown: the purpose as it was written, or `<script> in <project>`. Two
runs are of one kind if these agree; capitals and spaces do not count, and nothing is guessed from likeness.

Never: take a run's name for what it is for; match across projects (another image would be a guess: C5).
"""

from __future__ import annotations

import posixpath
import shlex
from collections.abc import Iterator, Sequence

from states.orders import folded
from states.spec import Request

SCRIPTS = (".py", ".sh", ".ipynb", ".jl", ".r", ".R", ".pl")
BETWEEN = " in "
NO_WORK = frozenset(
    {"bash", "sh", "env", "exec", "time", "nohup", "srun", "set", "cd", "export", "source", "."}
)
"""Words that begin a command and say nothing of what it does."""
KEYWORDS = frozenset({"for", "while", "until", "if", "case", "{", "(", "[", "[["})
"""A line of the shell that begins so does several things, and no one of them names it."""


def kind_of(request: Request, workspace: str) -> str:
    """The kind of work; workspace: the folder of the project. "" where nothing tells, which matches nothing."""
    if request.purpose.strip():
        return " ".join(request.purpose.split())
    script = _script(request.command, workspace)
    return f"{script}{BETWEEN}{workspace}" if script and workspace else ""


def same_kind(one: str, other: str) -> bool:
    """Whether two kinds are one; nothing is of the kind that is not known."""
    return bool(one) and folded(one) == folded(other)


def in_words(request: Request, kind: str) -> str:
    """Why an entry of this kind fits this request, for the report (H2)."""
    if request.purpose.strip():
        return f"the same purpose {kind!r}"
    script, _, project = kind.rpartition(BETWEEN)
    return f"the same script {script} in the project {project}"


def _script(command: Sequence[str], workspace: str) -> str:
    """The script that a command starts, relative to its project; a module by its name; else the program."""
    words = list(_words(command))
    for place, word in enumerate(words):
        if word.endswith(SCRIPTS):
            return _relative(word, workspace)
        if word == "-m" and place + 1 < len(words) and place and "python" in words[place - 1]:
            return words[place + 1]
    named = (word for word in words if word not in NO_WORK and not word.startswith("-") and "=" not in word)
    first = next(named, "")
    return "" if first in KEYWORDS else posixpath.basename(first)


def _words(command: Sequence[str]) -> Iterator[str]:
    """The words of a command, those of a line for the shell one by one."""
    for word in command:
        try:
            yield from shlex.split(word, comments=True) if " " in word or "\n" in word else [word]
        except ValueError:
            yield from word.split()


def _relative(script: str, workspace: str) -> str:
    path, home = posixpath.normpath(script), workspace.rstrip("/") + "/"
    return path.removeprefix(home) if workspace else path
