"""What a verb gives back, and the smallest words it is made of.

Never: set the state (the row does), read the world, or decide whether to act (the guard did).
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import NamedTuple

from states.effects import AnyEffect, Report
from states.job import Job
from states.kinds_of_work import kind_of


class Change(NamedTuple):
    """What an action gives back. said: the evidence or reason in one line, for `wk why`."""

    job: Job
    effects: tuple[AnyEffect, ...] = ()
    said: str = ""


def stay(job: Job, event: object) -> Change:
    """Nothing changes."""
    return Change(job)


def tell(stage: str, text: str, *, must_not_miss: bool = False) -> Report:
    return Report(stage=stage, text=text, must_not_miss=must_not_miss)


def after(at: datetime, seconds: float) -> datetime:
    return at + timedelta(seconds=seconds)


def purpose_of(job: Job) -> str:
    """The kind of work that the library files it under; "" for one that nothing tells."""
    return kind_of(job.request, job.spec.workspace)
