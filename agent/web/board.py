"""The board: rows of the store's list columns, grouped by state, those that need somebody first.

Never: load a snapshot; a board of a thousand runs is one query.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from agent.database import Record
from agent.web.words import Language, word
from states.job import State
from states.words.wording import duration, number, plain

ORDER = (
    State.blocked, State.running, State.queued, State.submitting, State.preflight, State.stopping, State.collecting,
    State.failed, State.unknown, State.stopped, State.not_submitted, State.succeeded,
)  # fmt: skip
"""What needs a person first, then what moves, then what is over."""
ROWS_MAX = 1000


class BoardRow(NamedTuple):
    """A run on the board. share: of the total, 0 to 1; None where it is not known."""

    id: str
    state: State
    phase: str
    step: str
    share: float | None
    left: str
    lane: str
    cluster: str
    milestone_at: datetime | None
    loss: str
    questions: Sequence[str]
    told: str
    since: datetime


class Group(NamedTuple):
    """The runs of one state."""

    state: State
    title: str
    rows: Sequence[BoardRow]


def groups(records: Iterable[Record], language: Language, *, find: str = "") -> list[Group]:
    """The runs that fit, by state. find: words that each must stand in a run's id, state, cluster or lane."""
    by_state: dict[State, list[BoardRow]] = {state: [] for state in ORDER}
    wanted = find.lower().split()
    for record in records:
        if record["board"].get("parent"):
            continue
        row = board_row(record, language)
        text = (
            f"{row.id} {row.state} {title(row.state, language)} {row.cluster} {row.lane} {row.phase}".lower()
        )
        if all(word in text for word in wanted):
            by_state[row.state].append(row)
    return [Group(state, title(state, language), rows) for state, rows in by_state.items() if rows]


def title(state: State, language: Language) -> str:
    """The state in words."""
    return word(language, f"state.{state}")


def board_row(record: Record, language: Language) -> BoardRow:
    """One row of the store as it is shown."""
    board: dict[str, Any] = record["board"]
    step, total, eta_s = board.get("step"), board.get("total"), board.get("eta_s")
    ended = record["ended_at"] is not None
    milestone = board.get("milestone_at")
    loss = board.get("loss")
    return BoardRow(
        id=record["id"],
        state=State(record["state"]),
        phase="" if ended else str(board.get("phase", "")),
        step=_step(step, total),
        share=min(max(step / total, 0.0), 1.0) if step is not None and total else None,
        left=duration(eta_s, language) if eta_s is not None and not ended else "",
        lane=str(board.get("lane", "")),
        cluster=str(record["cluster"]),
        milestone_at=datetime.fromisoformat(milestone) if milestone and not ended else None,
        loss=number(loss) if isinstance(loss, (int, float)) else "",
        questions=tuple(board.get("questions", ())),
        told=plain(str(board.get("outcome") if ended else board.get("reason") or "") or ""),
        since=record["ended_at"] or record["created_at"],
    )


def _step(step: float | None, total: float | None) -> str:
    if step is None:
        return ""
    return f"{number(step)}/{number(total)}" if total else number(step)
