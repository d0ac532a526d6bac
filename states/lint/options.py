"""The options of a program as people write them: `--a b`, `--a=b`, `-a b`, `a.b=c`, and names they share.

Never: know which options a program has; a word behind an option counts as its value unless it is an option too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from states.lint.facts import Run
from states.lint.words import Arg

_OVERRIDE = re.compile(r"\+{0,2}([A-Za-z_][\w.@/-]{0,120})=", re.ASCII)
_OUTPUT = re.compile(
    r"(?:^|_)(?:out|outputs?|outdir|save|saved|saves|savedir|export|results?|logs?|logdir|logging|ckpts?"
    r"|checkpoints?|runs?|exp|experiments?|work|tensorboard|tb|predictions?|workdir|artifacts?|dump|summaries"
    r"|summary|default_root)(?:_|$)"
)
_VAGUE = frozenset({"path", "name", "id", "dir", "name_or_path", "file", "repo"})
_PLACE = re.compile(
    r"(?:^|_)(?:dirs?|directory|folder|path|paths|root|file|files|prefix|to|out|output|outdir|o)$"
)


class Option(NamedTuple):
    """name: without dashes, `-` and `.` read as `_`, lower case. value: None for a flag. flag: the option's word."""

    name: str
    value: Arg | None
    flag: Arg


def options(run: Run) -> Iterator[Option]:
    """The options of the run's own words, in order."""
    args = run.args
    for n, arg in enumerate(args):
        text = arg.text
        override = _OVERRIDE.match(text)
        if text.startswith("-") and len(text) > 1 and not text[1].isdigit():
            name, joined, value = text.partition("=")
            key = name.lstrip("-").replace("-", "_").replace(".", "_").lower()
            after = args[n + 1] if n + 1 < len(args) else None
            if joined:
                yield Option(key, arg._replace(text=value), arg)
            elif after is not None and not (after.text.startswith("-") and not after.text[1:2].isdigit()):
                yield Option(key, after, arg)
            else:
                yield Option(key, None, arg)
        elif override and n:
            parts = re.split(r"[./]", override[1].lower().replace("-", "_"))
            # `model.path=x` says what the path is of; the last name alone would not.
            key = "_".join(parts[-2:]) if parts[-1] in _VAGUE else parts[-1]
            yield Option(key, arg._replace(text=text[override.end() :]), arg)


def names_output(name: str) -> bool:
    """Whether an option's name says that the program writes there."""
    if name in ("o", "output", "out", "outdir", "outputs", "logdir", "workdir", "save", "save_to"):
        return True
    if name.startswith(("load", "resume", "init", "pretrained", "from", "input", "no_", "num_", "use_")):
        return False
    if name.endswith(
        ("_steps", "_step", "_interval", "_every", "_freq", "_level", "_strategy", "_limit", "_name")
    ):
        return False
    return bool(_OUTPUT.search(name)) and bool(_PLACE.search(name))
