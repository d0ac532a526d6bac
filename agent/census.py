"""How many there are: runs by state, open questions. Two small queries, for figures.

Never: a snapshot loaded.
"""

from __future__ import annotations

from typing import NamedTuple

from sqlalchemy import func, select

from agent.database import JOBS
from agent.store import Store
from states.job import State


class Census(NamedTuple):
    """runs: by state, every state named; questions: open ones."""

    runs: dict[str, int]
    questions: int


def census(store: Store) -> Census:
    """Counted now."""
    with store.read() as connection:
        rows = connection.execute(select(JOBS.c.state, func.count()).group_by(JOBS.c.state)).all()
        boards = connection.execute(select(JOBS.c.board).where(JOBS.c.state == str(State.blocked))).scalars()
        questions = sum(len(board.get("questions", ())) for board in boards)
    counted = {str(state): int(count) for state, count in rows}
    return Census({str(state): counted.get(str(state), 0) for state in State}, questions)
