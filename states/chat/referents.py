"""Which run a message means: by its name, a beginning or a word of it, a state, or a pronoun.

Never: choose between two runs for an act; that is for the person.
"""

from __future__ import annotations

import difflib
from typing import NamedTuple

from states.chat.context import Context, state_word
from states.chat.marked import JOB, PART, UNKNOWN, WILD, Marked
from states.chat.vocabulary import has

FAILED = frozenset("failed error errored dead crashed oom timeout lost".split())
DONE = frozenset("succeeded success complete completed done finished".split())
QUEUED = frozenset("queued pending waiting starting submitting preflight".split())
NEAR = 0.75


class Meant(NamedTuple):
    """The runs that are meant. named: by names of which each is spelled in full; loose: a name spelled otherwise.

    unknown: names that no run has; near: the known name that an unknown one resembles; wild: with a `*`.
    """

    names: tuple[str, ...]
    named: bool = False
    loose: bool = False
    unknown: tuple[str, ...] = ()
    near: tuple[str, ...] = ()
    wild: bool = False

    @property
    def one(self) -> str:
        """The only run meant; "" if there are none or several."""
        return self.names[0] if len(self.names) == 1 else ""


def spelled(said: Marked, context: Context, within: str | None = None) -> Meant | None:
    """What the message, or a part of it, calls by name, fully or in part; None if it calls nothing by a name."""
    jobs, parts = said.of(JOB, within), said.of(PART, within)
    unknown = tuple(piece.text for piece in said.of(UNKNOWN, within))
    near = tuple(name for text in unknown for name in resembling(text, context))
    if said.of(WILD, within):
        return Meant(
            tuple(n for piece in said.of(WILD, within) for n in piece.names), unknown=unknown, wild=True
        )
    if jobs:
        names = tuple(dict.fromkeys(piece.names[0] for piece in jobs))
        return Meant(names, True, any(piece.loose for piece in jobs), unknown, near)
    if unknown:
        return Meant((), unknown=unknown, near=near)
    if parts:
        common = set(parts[0].names).intersection(*(set(piece.names) for piece in parts))
        return Meant(tuple(job.name for job in context.jobs if job.name in common))
    return None


def resembling(text: str, context: Context) -> list[str]:
    """The known names that this may be a slip of, the nearest first."""
    names = {job.name.lower(): job.name for job in context.jobs}
    found = difflib.get_close_matches(text.lower(), list(names), n=3, cutoff=NEAR)
    return [names[name] for name in found]


def by_state(said: str, context: Context) -> tuple[str, ...] | None:
    """The runs of the state that the text names (`the failed one`); None if it names no state."""
    if has("state_failed", said):
        return tuple(job.name for job in context.jobs if state_word(job.state) in FAILED)
    if has("state_queued", said):
        return tuple(job.name for job in context.jobs if state_word(job.state) in QUEUED)
    if has("state_done", said):
        return tuple(job.name for job in context.jobs if state_word(job.state) in DONE)
    if has("state_running", said):
        return tuple(job.name for job in context.jobs if state_word(job.state) == "running")
    return None


def failed(context: Context) -> tuple[str, ...]:
    """Names of the runs that failed."""
    return tuple(job.name for job in context.jobs if state_word(job.state) in FAILED)


def for_reading(context: Context) -> tuple[str, ...]:
    """The runs a read without a name may be about: the live ones, else all."""
    return context.live or tuple(job.name for job in context.jobs)
