"""What a native request became: the fields of a Request, what is passed through as it is, what has no meaning here.

Never: a value that nobody gave; a word of the native request that is neither kept nor noted.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple

Kind = Literal["sbatch", "rjob", "kubernetes", "ray"]

CLUSTER_OF: Mapping[Kind, str] = {
    "sbatch": "slurm",
    "rjob": "brainpp",
    "kubernetes": "kubernetes",
    "ray": "ray",
}
"""The kind of cluster that a native request is meant for."""

IN_WORDS: Mapping[Kind, str] = {
    "sbatch": "a Slurm batch script",
    "rjob": "an `rjob submit` line",
    "kubernetes": "a Kubernetes Job manifest",
    "ray": "a `ray job submit` line",
}

ReadText = Callable[[str], str | None]
"""Text of a file that a native request names, by its path as written; None where it cannot be read."""

NAME_CHARS_MAX = 40


class Converted(NamedTuple):
    """request: fields as a request file has them. notes: for people, a sentence each. passed_through: the words of
    `extra_args`.

    backing: field -> words of `passed_through` that say it more exactly than the field can (a GPU's type); they go
    when a flag gives the field anew, which would otherwise have no effect.
    """

    kind: Kind
    request: dict[str, Any]
    notes: tuple[str, ...] = ()
    passed_through: tuple[str, ...] = ()
    backing: Mapping[str, tuple[str, ...]] = {}


class Building:
    """A Converted in the making."""

    def __init__(self, kind: Kind) -> None:
        self.kind = kind
        self.request: dict[str, Any] = {}
        self._notes: list[str] = []
        self._kept: list[str] = []
        self._backing: dict[str, tuple[str, ...]] = {}

    def name(self, given: str) -> None:
        """The run's name, made one that a run may have."""
        made = safe_name(given)
        self.request["name"] = made
        if made != given:
            self.note(
                f"the name {given!r} became {made!r}: a run's name is lower-case letters, digits and `-`"
            )

    def keep(self, word: str, *, backing: str = "") -> None:
        """Pass a word through. backing: the field that it says more exactly."""
        self._kept.append(word)
        if backing:
            self._backing[backing] = (*self._backing.get(backing, ()), word)

    def note(self, text: str) -> None:
        """Say it once."""
        if text not in self._notes:
            self._notes.append(text)

    def done(self) -> Converted:
        kept = tuple(self._kept)
        if kept:
            self.request["extra_args"] = list(kept)
        return Converted(self.kind, self.request, tuple(self._notes), kept, self._backing)


def safe_name(text: str) -> str:
    """A name that a run may have (`states.spec.Name`), made of any job's."""
    safe = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
    safe = safe if safe[:1].isalpha() else f"job-{safe}"
    return safe[:NAME_CHARS_MAX].strip("-")
