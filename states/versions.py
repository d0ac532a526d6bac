"""Lifts of what older machines wrote: an event or a snapshot of version n, as version n + 1 would have written it.

`LIFTS_OF_EVENTS[n]` and `LIFTS_OF_SNAPSHOTS[n]` are small total functions on plain data; the table knows no versions
(RELIABILITY 7). A job is lifted only in a state of rest: a submit or a stop that is under way ends in the form in
which it was asked.

Never: decide anew (a lift changes the form, not what was decided); drop what it does not know.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from states.job import MACHINE_VERSION, TERMINAL, State

Data = dict[str, Any]
Lift = Callable[[Data], Data]

LIFTS_OF_EVENTS: Mapping[int, Lift] = {}
"""From the version that is the key to the next one; a version without an entry changed no event."""

LIFTS_OF_SNAPSHOTS: Mapping[int, Lift] = {}
"""The same for snapshots."""

REST = frozenset({State.queued, State.running, State.blocked}) | TERMINAL
"""States in which nothing is under way, so that a job may be lifted."""


class TooNew(ValueError):
    """Written by a newer Watchkeeper than this one; the message says what to do."""


def lift_event(data: Mapping[str, Any]) -> Data:
    """An event's stored form as this machine reads it. Raises TooNew."""
    return _lifted(data, "v", LIFTS_OF_EVENTS)


def lift_snapshot(data: Mapping[str, Any]) -> Data:
    """A job's snapshot as this machine reads it. Raises TooNew."""
    return _lifted(data, "version", LIFTS_OF_SNAPSHOTS)


def may_be_lifted(data: Mapping[str, Any]) -> bool:
    """Whether a snapshot is of the present version, or at rest (a submit or stop of an older one ends first).

    A question before the submit's answer is not rest: its look-ups go on.
    """
    if _version(data, "version") == MACHINE_VERSION:
        return True
    state = State(data.get("state", State.preflight))
    if state is State.blocked:
        return data.get("resume_to") in (State.queued, State.running)
    return state in REST


def _lifted(data: Mapping[str, Any], field: str, lifts: Mapping[int, Lift]) -> Data:
    version = _version(data, field)
    if version > MACHINE_VERSION:
        raise TooNew(
            f"this was written by a newer Watchkeeper (its machine {version}, this one {MACHINE_VERSION}): "
            "upgrade this one, or restore the database of before"
        )
    lifted = dict(data)
    for number in range(version, MACHINE_VERSION):
        lifted = lifts.get(number, dict)(lifted)
    if version != MACHINE_VERSION:
        lifted[field] = MACHINE_VERSION
    return lifted


def _version(data: Mapping[str, Any], field: str) -> int:
    """Versions equal to the first are left out of stored data, like every default."""
    return int(data.get(field, 1))
