"""Lint of the table: what a reader could overlook in a hundred rows.

Run by the tests and by `python -m states check`. Each finding is one sentence; none means the table is whole.

Never: repair anything.
"""

from __future__ import annotations

from collections.abc import Iterator

from states.events import KINDS
from states.ignored import IGNORED, OTHERWISE
from states.job import LIVE, TERMINAL, State
from states.table import TABLE


def findings() -> list[str]:
    """Everything that is wrong with the table, in sentences."""
    return [
        *_unknown_events(),
        *_dead_rows(),
        *_missing_cells(),
        *_unreachable(),
        *_no_way_out(),
        *_terminal_leaves(),
    ]


def _unknown_events() -> Iterator[str]:
    for number, line in enumerate(TABLE, start=1):
        for kind in line.on:
            if kind not in KINDS:
                yield f"row {number}: there is no event {kind!r}"


def _dead_rows() -> Iterator[str]:
    """A row behind an unguarded one of the same cell is never asked."""
    closed: set[tuple[State, str]] = set()
    for number, line in enumerate(TABLE, start=1):
        cells = {(source, kind) for source in line.source for kind in line.on}
        for source, kind in sorted(cells & closed):
            yield f"row {number}: {kind} in {source} is decided by an earlier row without a guard"
        if line.when is None:
            closed |= cells


def _missing_cells() -> Iterator[str]:
    unguarded = {(s, k) for line in TABLE if line.when is None for s in line.source for k in line.on}
    for state in State:
        for kind in KINDS:
            cell = (state, kind)
            if cell not in unguarded and cell not in IGNORED and cell not in OTHERWISE:
                yield f"{kind} in {state}: no row without a guard and no reason in ignored.py"


def _unreachable() -> Iterator[str]:
    seen, frontier = {State.preflight}, [State.preflight]
    while frontier:
        here = frontier.pop()
        for line in TABLE:
            if here in line.source and line.to is not None and line.to not in seen:
                seen.add(line.to)
                frontier.append(line.to)
    for state in State:
        if state not in seen:
            yield f"{state} is never reached"


def _no_way_out() -> Iterator[str]:
    for state in LIVE:
        if not any(state in line.source and line.to not in (None, state) for line in TABLE):
            yield f"{state} is live and has no way out"


def _terminal_leaves() -> Iterator[str]:
    for number, line in enumerate(TABLE, start=1):
        for source in line.source:
            if source in TERMINAL and line.to not in (None, source):
                yield f"row {number}: leaves the terminal state {source}"
