"""The durable timers: which jobs are due, and moving thousands of quiet ones in one statement.

The indexed column `job.wake_at` IS the timer; nothing else holds one (DESIGN 3, waves).

Never: load a snapshot; decide whether a look was quiet (`states/quiet.py` does).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from sqlalchemy import BigInteger, bindparam, case, func, select, update
from sqlalchemy import cast as sql_cast

from agent import crash
from agent.database import JOBS, THESE_JOBS, Database, in_pieces
from agent.tables import UtcTime, microseconds

LOOK_STRETCH = 1.25
"""A quiet look stretches the pause to the next one by this, up to the job's own bound."""


_IS_DUE = (
    select(
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
    .where(JOBS.c.wake_at <= bindparam("now"))
    .order_by(JOBS.c.wake_at)
    .limit(bindparam("most"))
)
_ONE_AT_A_TIME = select(func.pg_advisory_xact_lock(0x77_6B + 1))
"""Replicas claim one after the other: what falls due together is one replica's, and one status call per cluster.
Rows that somebody writes at this moment are left to the next look."""
_IS_DUE_UNCLAIMED = _IS_DUE.with_for_update(skip_locked=True)
_CLAIM = THESE_JOBS.values(wake_at=bindparam("later"))
_CLAIM_ALL = update(JOBS).where(JOBS.c.wake_at <= bindparam("now")).values(wake_at=bindparam("later"))
_FREE_CLAIMS = (
    update(JOBS)
    .where(JOBS.c.wake_at > bindparam("now"))
    .where(sql_cast(JOBS.c.wake_at, BigInteger) % bindparam("grid_us", type_=BigInteger) != 0)
    .values(wake_at=bindparam("now"))
)
_NEXT_WAKE = select(func.min(JOBS.c.wake_at))


def _rest() -> Any:
    """Timers of quiet jobs: the next look a little later each time, on the wave grid, never behind a deadline.
    Parameters: now_us, grid_us (microseconds)."""
    longer = JOBS.c.look_s * LOOK_STRETCH
    stretched = case((longer < JOBS.c.look_s_max, longer), else_=JOBS.c.look_s_max)
    now_us, grid_us = bindparam("now_us", type_=BigInteger), bindparam("grid_us", type_=BigInteger)
    look_us = now_us + sql_cast(JOBS.c.look_s * 1_000_000, BigInteger)
    on_grid_us = (look_us + (grid_us - 1)) // grid_us * grid_us
    due_us = sql_cast(JOBS.c.deadline_at, BigInteger)
    wake_us = case((due_us.is_not(None) & (due_us < on_grid_us), due_us), else_=on_grid_us)
    values: dict[Any, Any] = {JOBS.c.wake_at: wake_us, JOBS.c.look_s: stretched}
    return THESE_JOBS.values(values)


_REST_UNSEEN = _rest()
_LEFT_UNTIL = case(
    (JOBS.c.deadline_at < bindparam("until"), JOBS.c.deadline_at), else_=bindparam("until", type_=UtcTime)
)
_LEAVE_ALONE = THESE_JOBS.where(JOBS.c.wake_at < _LEFT_UNTIL).values(wake_at=_LEFT_UNTIL)
_REST_SEEN = _REST_UNSEEN.values(seen_at=bindparam("now"), away=False)


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

    def claim_due(self, now: datetime, *, claim_s: float, limit: int = 100_000) -> list[Due]:
        """Take the jobs whose timer has come, and push their timers `claim_s` ahead: the claim of this wave.

        If the process dies in the middle they are due again then; another replica does not take them meanwhile.
        """
        with self._write() as connection:
            shared = connection.dialect.name == "postgresql"
            if shared:
                connection.execute(_ONE_AT_A_TIME)
            query = _IS_DUE_UNCLAIMED if shared else _IS_DUE
            found = connection.execute(query, {"now": now, "most": limit}).all()
            rows = [Due._make(row) for row in found]
            if rows:
                later = self._off_grid(now + timedelta(seconds=claim_s))
                if shared or len(rows) == limit:
                    in_pieces(connection, _CLAIM, [row.id for row in rows], {"later": later})
                else:  # SQLite has one writer at a time: what is due is what was read, and needs no list of ids
                    connection.execute(_CLAIM_ALL, {"later": later, "now": now})
        crash.point("wave-claimed")
        return rows

    def free_claims(self, now: datetime) -> None:
        """Make due what a killed wave had claimed. A claim is known by its time, which lies off the timers'
        grid; a deadline that does so too is looked at early. The other runs keep theirs: a start that wrote a hundred
        thousand of them would take twice as long."""
        with self._write() as connection:
            connection.execute(_FREE_CLAIMS, {"now": now, "grid_us": self._grid_us})

    def _off_grid(self, at: datetime) -> datetime:
        return at - timedelta(microseconds=1) if self.on_grid(at) == at else at

    def rest(self, quiet: Sequence[str], now: datetime, *, seen: bool) -> None:
        """Quiet looks: move `seen_at` and `wake_at` of all of them in one statement, no journal row, no turn."""
        if not quiet:
            return
        values = {"now_us": microseconds(now), "grid_us": self._grid_us}
        with self._write() as connection:
            if seen:
                in_pieces(connection, _REST_SEEN, quiet, {**values, "now": now})
            else:
                in_pieces(connection, _REST_UNSEEN, quiet, values)
        crash.point("quiet-rested")

    def leave_alone(self, ids: Sequence[str], until: datetime) -> None:
        """No look at these before then: their cluster said how long it wants to be left alone. A deadline that
        comes sooner is still met."""
        if ids:
            with self._write() as connection:
                in_pieces(connection, _LEAVE_ALONE, ids, {"until": self.on_grid(until)})

    def next_wake(self) -> datetime | None:
        """The earliest timer of all."""
        with self._read() as connection:
            return connection.execute(_NEXT_WAKE).scalar()
