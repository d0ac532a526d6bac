"""The cells of (state, event) that the table leaves open, each with the reason why nothing changes.

`IGNORED` covers cells without any row; `OTHERWISE` says why an event stays when no guard of its rows admits it.
Table + ignored = every cell (`check.py` proves it), so no event is ever lost without a word.

Never: an action.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from states.events import KINDS
from states.job import LIVE, TERMINAL, State
from states.table import TABLE

_P, _S, _Q, _R = State.preflight, State.submitting, State.queued, State.running
_B, _X, _C = State.blocked, State.stopping, State.collecting
_N = State.not_submitted

_RULES: tuple[tuple[Iterable[str], Iterable[State], str], ...] = (
    (("delegated",), set(State) - {_P}, "this request is delegated already; its run goes on as it is"),
    (("delegated",), (_P,), "this request is delegated already; its run goes on as it is"),
    (
        ("check_finished", "child_finished"),
        set(LIVE) - {_P},
        "preflight is past; a late check or child changes nothing",
    ),
    (
        ("submitted", "submit_rejected", "submit_unclear"),
        set(LIVE) - {_S},
        "no submit is waiting for this answer",
    ),
    (("looked_up",), set(LIVE) - {_S, _B}, "no submit is being looked for"),
    (("observed", "cluster_unreachable"), (_P, _S), "there is no cluster job to look at yet"),
    (("observed", "cluster_unreachable"), (_C,), "the end is known; the outputs are being collected"),
    (("logs_read", "interpreted"), (_P, _S, _Q, _X), "the job is not running, so its log tells nothing new"),
    (("interpreted",), (_C,), "the end is known; no reading is needed"),
    (("answered",), set(State) - {_B}, "no question is open: it was answered, defaulted or withdrawn before"),
    (("stop_requested",), (_X,), "it is being stopped already"),
    (("stop_asked",), set(LIVE) - {_X}, "the stop was not for this run's own job, or it has ended since"),
    (("delete_requested",), LIVE, "the run is not over; stop it first, then delete it by name"),
    (("delete_requested",), (_N,), "nothing was submitted, so there is no record to delete"),
    (("delete_requested",), TERMINAL - {_N}, "the name was not spelled out; nothing is deleted"),
    (("deleted",), set(LIVE) | {_N}, "no delete is under way"),
    (("outputs_collected",), set(LIVE) - {_C}, "the run is not being wrapped up"),
    (("wake_due",), LIVE, "nothing is due; the look itself follows"),
    (("effect_given_up",), LIVE, "the timers of this state ask again"),
    (
        set(KINDS) - {"delegated", "answered", "delete_requested", "deleted"},
        TERMINAL,
        "the run is over; its end is final",
    ),
)


def _covered() -> frozenset[tuple[State, str]]:
    return frozenset((state, kind) for line in TABLE for kind in line.on for state in line.source)


def _unguarded() -> frozenset[tuple[State, str]]:
    return frozenset(
        (s, kind) for line in TABLE if line.when is None for kind in line.on for s in line.source
    )


def _reasons() -> dict[tuple[State, str], str]:
    found: dict[tuple[State, str], str] = {}
    for kinds, states, reason in _RULES:
        for kind in kinds:
            for state in states:
                found.setdefault((state, kind), reason)
    return found


_ALL = _reasons()

IGNORED: Mapping[tuple[State, str], str] = {cell: why for cell, why in _ALL.items() if cell not in _covered()}
"""Cells without a row."""

OTHERWISE: Mapping[tuple[State, str], str] = {
    cell: why for cell, why in _ALL.items() if cell in _covered() and cell not in _unguarded()
}
"""Cells whose every row has a guard: what it means when none admits the event."""
