"""Options of sbatch as people write them: `#SBATCH` lines of a script, and the words of an `sbatch` line.

Slurm's own rules: the script begins with `#!`; a `#SBATCH` line counts only before the first command, so neither one
below it nor one in a here-document does; `#` begins a comment; of the same option the last one counts, and the line's
beat the script's.

Never: guess the value of an option that has none.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import NamedTuple

from agent.yamlfile import UserFileError

SHORT = {
    "A": "account", "a": "array", "B": "extra-node-info", "b": "begin", "C": "constraint", "c": "cpus-per-task",
    "D": "chdir", "d": "dependency", "e": "error", "F": "nodefile", "G": "gpus", "H": "hold", "h": "help",
    "i": "input", "J": "job-name", "k": "no-kill", "L": "licenses", "M": "clusters", "m": "distribution",
    "N": "nodes", "n": "ntasks", "O": "overcommit", "o": "output", "p": "partition", "q": "qos", "Q": "quiet",
    "S": "core-spec", "s": "oversubscribe", "t": "time", "V": "version", "v": "verbose", "W": "wait",
    "w": "nodelist", "x": "exclude",
}  # fmt: skip
"""One-letter options by their long names (sbatch's manual)."""
OTHER_NAMES = {"tasks-per-node": "ntasks-per-node", "workdir": "chdir", "share": "oversubscribe"}
FLAGS = frozenset(
    "contiguous help hold ignore-pbs no-requeue overcommit oversubscribe parsable quiet reboot requeue spread-job"
    " test-only usage use-min-nodes verbose version wait".split()
)
"""Options without a value."""
MAY_HAVE_ONE = frozenset("exclusive get-user-env nice no-kill propagate".split())
"""Options with a value only behind `=`."""


class Option(NamedTuple):
    """One option by its long name. value: None for none. of_line: from the `sbatch` line, not from the script."""

    name: str
    value: str | None
    of_line: bool = False

    @property
    def word(self) -> str:
        """As one word."""
        return f"--{self.name}" if self.value is None else f"--{self.name}={self.value}"


class Words(NamedTuple):
    """Options, and the words behind them."""

    options: tuple[Option, ...]
    rest: tuple[str, ...] = ()


def has_directives(text: str) -> bool:
    """Is there a `#SBATCH` line that counts?"""
    return any(line.startswith("#SBATCH") for _, line in _head(text))


def of_script(text: str, *, where: str) -> tuple[Option, ...]:
    """The options of a script. Raises UserFileError for a script that sbatch would refuse, with every line of it."""
    if not text.startswith("#!"):
        said = "sbatch takes a script whose first two characters are `#!`; put the line with it first"
        raise UserFileError(f"{where}:1: {said}")
    if "\r\n" in text:
        raise UserFileError(f"{where}:1: it has DOS line ends, which sbatch refuses; save it with Unix ones")
    found: list[Option] = []
    faults: list[str] = []
    for number, line in _head(text):
        if line.startswith("#SBATCH"):
            here = f"{where}:{number}"
            try:
                words = of_words(shlex.split(line.removeprefix("#SBATCH"), comments=True), where=here)
            except ValueError as error:
                faults.append(f"{here}: cannot be read: {str(error).lower()}; close the quote")
            except UserFileError as error:
                faults += error.faults
            else:
                found += words.options
                if words.rest in (("hetjob",), ("packjob",)):
                    faults.append(f"{here}: a heterogeneous job is not one run; submit its parts one by one")
                elif words.rest:
                    faults.append(f"{here}: {words.rest[0]!r} belongs to no option; take it out or quote it")
    if faults:
        raise UserFileError(*faults)
    return tuple(found)


def of_words(words: Sequence[str], *, where: str, of_line: bool = False) -> Words:
    """The options at the head of these words. Raises UserFileError for an option that lacks its value."""
    found: list[Option] = []
    rest = list(words)
    while rest and rest[0].startswith("-") and rest[0] != "-":
        word = rest.pop(0)
        if word == "--":
            break
        name, equals, joined = word[2:].partition("=") if word.startswith("--") else _short(word)
        name = OTHER_NAMES.get(name, name)
        value: str | None = joined if equals else None
        if name in FLAGS and not word.startswith("--") and joined:
            rest.insert(0, f"-{joined}")
            value = None
        elif not equals and name not in FLAGS | MAY_HAVE_ONE:
            if not rest:
                raise UserFileError(f"{where}: {word} lacks its value")
            value = rest.pop(0)
        found.append(Option(name, value, of_line))
    return Words(tuple(found), tuple(rest))


def _short(word: str) -> tuple[str, str, str]:
    """`-N2` as name, whether a value is joined, and the value."""
    return SHORT.get(word[1], word[1]), word[2:3], word[2:]


def _head(text: str) -> list[tuple[int, str]]:
    """Lines before the first command, with their numbers."""
    head = []
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip() and not line.lstrip().startswith("#"):
            break
        head.append((number, line))
    return head
