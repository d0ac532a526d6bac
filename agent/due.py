"""The durable timers: which jobs are due, and moving thousands of quiet ones in one statement.

The indexed column `job.wake_at` IS the timer; nothing else holds one (DESIGN 3, waves).

Never: load a snapshot; decide whether a look was quiet (`states/quiet.py` does).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from sqlalchemy import (
    BigInteger,
    case,
    func,
    literal,
    select,
)
from sqlalchemy import cast as sql_cast

from agent import crash
from agent.database import JOBS, Database, in_pieces, jobs_where
from agent.tables import microseconds

LOOK_STRETCH = 1.25
"""A quiet look stretches the pause to the next one by this, up to the job's own bound."""


class Due(NamedTuple):
    """A job whose timer has come, from columns alone."""

    id: str
    cluster: str
    state: str
    watched: bool
    name: str
    cluster_job_id: str
    submitted_at: datetime | None
    story: str
    away: bool
    deadline_at: datetime | None


class DueJobs(Database):
    """The jobs by their timers."""

    def claim_due(self, now: datetime, *, claim_s: float, limit: int = 20_000) -> list[Due]:
        """Take the jobs whose timer has come, and push their timers `claim_s` ahead: the claim of this wave.

        If the process dies in the middle they are due again then; another replica does not take them meanwhile.
        """
        columns = (
            JOBS.c.id,
            JOBS.c.cluster,
            JOBS.c.state,
            JOBS.c.watched,
            JOBS.c.attempt_name,
            JOBS.c.cluster_job_id,
            JOBS.c.submitted_at,
            JOBS.c.story,
            JOBS.c.away,
            JOBS.c.deadline_at,
        )
        query = select(*columns).where(JOBS.c.wake_at <= now).order_by(JOBS.c.wake_at).limit(limit)
        with self._write() as connection:
            if connection.dialect.name == "postgresql":
                query = query.with_for_update(skip_locked=True)
            rows = [Due._make(row) for row in connection.execute(query)]
            if rows:
                later = now + timedelta(seconds=claim_s)
                in_pieces(
                    connection, [row.id for row in rows], lambda ids: jobs_where(ids).values(wake_at=later)
                )
        crash.point("wave-claimed")
        return rows

    def rest(self, quiet: Sequence[str], now: datetime, *, seen: bool) -> None:
        """Quiet looks: move `seen_at` and `wake_at` of all of them in one statement, no journal row, no turn."""
        if not quiet:
            return
        now_us = microseconds(now)
        stretched = case(
            (JOBS.c.look_s * LOOK_STRETCH < JOBS.c.look_s_max, JOBS.c.look_s * LOOK_STRETCH),
            else_=JOBS.c.look_s_max,
        )
        look_us = literal(now_us) + sql_cast(JOBS.c.look_s * 1_000_000, BigInteger)
        grid_us = (look_us + (self._grid_us - 1)) // self._grid_us * self._grid_us
        due_us = sql_cast(JOBS.c.deadline_at, BigInteger)
        wake_us = case((due_us.is_not(None) & (due_us < grid_us), due_us), else_=grid_us)
        values: dict[Any, Any] = {JOBS.c.wake_at: wake_us, JOBS.c.look_s: stretched}
        if seen:
            values[JOBS.c.seen_at] = now
            values[JOBS.c.away] = False
        with self._write() as connection:
            in_pieces(connection, quiet, lambda ids: jobs_where(ids).values(values))
        crash.point("quiet-rested")

    def next_wake(self) -> datetime | None:
        """The earliest timer of all."""
        with self._read() as connection:
            return connection.execute(select(func.min(JOBS.c.wake_at))).scalar()
