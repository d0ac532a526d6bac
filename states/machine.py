"""The machine: `step(job, event)`, pure, total and synchronous, over ONE shared `transitions.Machine`.

The table is translated into the machine once, at import. A step uses a cursor that is thrown away, so whatever
goes wrong inside stays on it. Every event has one typed outcome: Moved, Stayed or Ignored; none raises for
being late.

Never: keep state between steps; be asked for a job's truth (that is the snapshot in the store).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import wraps
from typing import Any, NamedTuple, cast

from transitions import EventData, Machine

from states.actions import Change, stay
from states.effects import AnyEffect
from states.events import KINDS, AnyEvent
from states.ignored import IGNORED, OTHERWISE
from states.intake import take_in
from states.job import MACHINE_VERSION, TERMINAL, Job, State
from states.table import TABLE, Row
from states.timers import wake_at


class Moved(NamedTuple):
    """The job went from one state to another."""

    source: State
    to: State


class Stayed(NamedTuple):
    """A row was taken that keeps the state."""

    reason: str


class Ignored(NamedTuple):
    """Nothing happened, and why."""

    reason: str


MOMENT_CHARS_MAX = 160
"""Bound of a timeline entry's text."""

Outcome = Moved | Stayed | Ignored


class Step(NamedTuple):
    """What a step answers: the new job, what to do, what became of the event, and which row said so.

    rule: rule numbers of the row; action: the row's verb; said: the evidence in one line.
    """

    job: Job
    effects: tuple[AnyEffect, ...]
    outcome: Outcome
    rule: str = ""
    action: str = ""
    said: str = ""

    @property
    def changed_nothing(self) -> bool:
        """True when neither the job nor the world is touched."""
        return isinstance(self.outcome, Ignored) or self.action == stay.__name__


class _Cursor:
    """The throw-away model of one step."""

    __slots__ = ("change", "event", "job", "row", "state")

    def __init__(self, job: Job, event: AnyEvent) -> None:
        self.state: State = job.state
        self.job = job
        self.event = event
        self.change: Change | None = None
        self.row: Row | None = None


def _asks(guard: Callable[[Any, Any], bool]) -> Callable[[EventData], bool]:
    @wraps(guard)
    def condition(data: EventData) -> bool:
        cursor = cast(_Cursor, data.model)
        return guard(cursor.job, cursor.event)

    return condition


def _acts(line: Row) -> Callable[[EventData], None]:
    @wraps(line.do)
    def before(data: EventData) -> None:
        cursor = cast(_Cursor, data.model)
        cursor.row = line
        cursor.change = line.do(cursor.job, cursor.event)

    return before


def build(table: Sequence[Row] = TABLE) -> Machine:
    """A machine of these rows, without a model: `step` brings a cursor each time."""
    built = Machine(
        model=None,
        states=[{"name": state, "final": state in TERMINAL} for state in State],
        initial=State.preflight,
        auto_transitions=False,
        send_event=True,
        queued=False,
    )
    for line in table:
        for kind in line.on:
            for source in line.source:
                built.add_transition(
                    kind,
                    source,
                    line.to or source,
                    conditions=[_asks(line.when)] if line.when else [],
                    before=[_acts(line)],
                )
    return built


MACHINE = build()


def step(job: Job, event: AnyEvent) -> Step:
    """What should happen next. Total: every event in every state has an outcome; `event.at` is now."""
    known = take_in(job, event)
    cursor = _Cursor(known, event)
    cell = (job.state, event.kind)
    if cell in IGNORED or not MACHINE.events[event.kind].trigger(cursor):
        return Step(job, (), Ignored(IGNORED.get(cell) or OTHERWISE[cell]))
    change, line = cursor.change, cursor.row
    assert change is not None  # a taken row always acts
    assert line is not None
    settled = _settled(job, change.job, cursor.state, event.at, change.said)
    outcome: Outcome = (
        Moved(job.state, cursor.state) if cursor.state is not job.state else Stayed(change.said)
    )
    return Step(settled, change.effects, outcome, line.why, line.do.__name__, change.said)


def _settled(before: Job, after: Job, state: State, at: datetime, said: str) -> Job:
    """The new job with its state, what `blocked` remembers, its timeline and its timer."""
    changes: dict[str, Any] = {"state": state, "version": MACHINE_VERSION}
    if state is State.blocked:
        changes["resume_to"] = after.resume_to if before.state is State.blocked else before.state
    elif before.state is State.blocked:
        changes["resume_to"] = None
    if state is not before.state:
        changes["state_since"] = at
        after = after.with_moment(at, state, said[:MOMENT_CHARS_MAX])
    settled = after.but(**changes)
    return settled.but(wake_at=wake_at(settled, at))


assert frozenset(MACHINE.events) == frozenset(KINDS)
