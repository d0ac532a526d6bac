"""A person's own batch script: which word of a command it is, and what its `#SBATCH` lines ask for.

Those lines hold. What Watchkeeper finds the job and its log by (name, comment, folder, output) is its own; the
script's lines for that are set aside, and shown.

Never: a line below the script's first command (Slurm does not read it either); a file that is no script.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from agent.clusters.base import Refused

SHORT = {
    "J": "job-name", "o": "output", "e": "error", "D": "chdir", "N": "nodes", "n": "ntasks", "c": "cpus-per-task",
    "G": "gpus", "t": "time", "p": "partition", "A": "account", "q": "qos", "x": "exclude", "d": "dependency",
    "a": "array", "W": "wait", "H": "hold", "w": "nodelist", "C": "constraint", "h": "help", "V": "version",
}  # fmt: skip
IDENTITY = frozenset({"job-name", "comment", "chdir", "output", "error", "open-mode", "parsable"})
"""What the job, its folder and its log are found by."""
NOT_A_SUBMIT = frozenset({"wait", "wrap", "test-only", "help", "usage", "version", "uid", "clusters"})
"""These would wait for the end, change the script, or submit nothing here."""

INTERPRETER = re.compile(r"(?:r?bash|sh|dash|ash|[zkc]sh|mksh|tcsh|fish|python[\d.]*|perl|Rscript|ruby)")
FLAG = re.compile(r"[-+][A-Za-z]*[oO]$|[-+][abefhiklnptuvwxBEHIPS]+|--[a-z][a-z-]*")
"""A flag of an interpreter that leaves the script the next word; with `o` last, an option's name stands between."""
SCRIPT_BYTES_MAX = 1 << 20


class Directives(NamedTuple):
    """The `#SBATCH` lines of a script: what is kept, what Watchkeeper sets itself."""

    kept: tuple[str, ...] = ()
    set_aside: tuple[str, ...] = ()

    def has(self, names: Iterable[str]) -> bool:
        return not option_names(self.kept).isdisjoint(names)


def script_of(command: Sequence[str], workspace: str) -> str:
    """Text of the script that a command runs, if it is one that can be read here; "" for any other command."""
    path = script_path(command)
    if not path:
        return ""
    try:
        with (Path(workspace) / path).open("rb") as file:
            text = file.read(SCRIPT_BYTES_MAX)
    except (OSError, ValueError):
        return ""
    return text.decode(errors="replace") if text.startswith(b"#!") else ""


def script_path(command: Sequence[str]) -> str:
    """The word that is the script: `train.sh`, `/bin/bash -l train.sh`, `env bash train.sh`; "" where none can be."""
    words = list(command)
    if words and os.path.basename(words[0]) == "env":
        words = words[2:] if words[1:2] == ["-S"] else words[1:]
    if words and INTERPRETER.fullmatch(os.path.basename(words[0])):
        words = words[1:]
        while words and (flag := FLAG.fullmatch(words[0])):
            words = words[2:] if flag[0][-1] in "oO" and not flag[0].startswith("--") else words[1:]
    return words[0] if words and words[0][:1] not in ("-", "+") else ""


def directives(text: str) -> Directives:
    """The arguments in a script's `#SBATCH` lines; as sbatch does, only before the first command.

    Raises Refused for a line whose quotes do not close.
    """
    kept: list[str] = []
    aside: list[str] = []
    for line in text.splitlines():
        if line.strip() and not line.lstrip().startswith("#"):
            break
        if not line.startswith("#SBATCH"):
            continue
        try:
            words = shlex.split(line.removeprefix("#SBATCH"), comments=True)
        except ValueError as error:
            raise Refused(f"the line {line.strip()!r} of the script cannot be read: {error}") from None
        for option in options_of(words):
            ours = option_names(option) & (IDENTITY | NOT_A_SUBMIT)
            (aside if ours else kept).extend(option)
    return Directives(tuple(kept), tuple(aside))


def options_of(words: Sequence[str]) -> list[list[str]]:
    """Arguments one by one, each with the value that stands in a word of its own."""
    found: list[list[str]] = []
    for word in words:
        if word.startswith("-") or not found:
            found.append([word])
        else:
            found[-1].append(word)
    return found


def option_names(words: Iterable[str]) -> set[str]:
    """Long names of the options among these words: `-c 4` and `--cpus-per-task=4` are both cpus-per-task."""
    found = set()
    for word in words:
        if word.startswith("--"):
            found.add(word[2:].partition("=")[0])
        elif re.match(r"-[A-Za-z]", word):
            found.add(SHORT.get(word[1], word[1]))
    return found
