"""What of a run that ended long ago is still kept: every decision and every message, but no longer what was read.

A compacted journal keeps its rows, rules, reasons and what people said, so `wk why` tells the same as before; the
bodies of looks and readings, those of performed effects, and the model's replies are dropped (what they cost stays).
Deliveries that were sent go too, once nothing is looked up by them any more.

Never: a run that lives, or an effect that is open; a row of the journal.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import NamedTuple, cast

from sqlalchemy import Connection, Table, bindparam, delete, exists, or_, select, update

from agent.database import EFFECTS, EVENTS, JOBS, Database
from agent.deliveries import CHANNELS, DELIVERIES, OVERLAP
from agent.readings import READINGS

RUNS_MAX = 200
"""Of one transaction, so that nobody waits long for it."""
PEOPLE = ("delegated", "answered", "stop_requested", "delete_requested")
"""Events whose words are part of the reasons."""
_OLD = (
    select(JOBS.c.id)
    .where(JOBS.c.ended_at.is_not(None), JOBS.c.compacted_at.is_(None), JOBS.c.ended_at < bindparam("before"))
    .where(~exists().where(EFFECTS.c.job_id == JOBS.c.id, EFFECTS.c.done_at.is_(None)))
    .order_by(JOBS.c.ended_at)
    .limit(RUNS_MAX)
)


class Tidied(NamedTuple):
    """What was done: runs whose journal was compacted, deliveries that were dropped."""

    runs: int
    deliveries: int


def tidy(store: Database, now: datetime, *, journal_days: float, delivery_days: float) -> Tidied:
    """Everything that is older than it is kept (0 days: kept for good), in pieces."""
    runs = deliveries = 0
    while journal_days and (done := _compact(store, now, now - timedelta(days=journal_days))):
        runs += done
    if delivery_days:
        deliveries = _drop_deliveries(store, now - timedelta(days=delivery_days))
    return Tidied(runs, deliveries)


def _compact(store: Database, now: datetime, before: datetime) -> int:
    with store.write() as connection:
        query = _OLD.with_for_update(skip_locked=True) if connection.dialect.name == "postgresql" else _OLD
        ids = list(connection.execute(query, {"before": before}).scalars())
        if ids:
            _empty(connection, EVENTS, ids, keep=PEOPLE)
            _empty(connection, EFFECTS, ids)
            connection.execute(update(READINGS).where(READINGS.c.job_id.in_(ids)).values(reply=""))
            connection.execute(update(JOBS).where(JOBS.c.id.in_(ids)).values(compacted_at=now))
    return len(ids)


def _empty(connection: Connection, table: Table, ids: list[str], keep: tuple[str, ...] = ()) -> None:
    """Of the bodies only the kind stays, one statement per kind."""
    mine = table.c.job_id.in_(ids)
    for kind in list(connection.execute(select(table.c.kind).where(mine).distinct()).scalars()):
        if kind not in keep:
            connection.execute(update(table).where(mine, table.c.kind == kind).values(body={"kind": kind}))


def _drop_deliveries(store: Database, before: datetime) -> int:
    """Sent or moot, of a run that ended before then (in the thread of one that lives somebody may answer), and no
    longer among what a channel compares new messages with."""
    over = select(JOBS.c.id).where(JOBS.c.ended_at.is_not(None), JOBS.c.ended_at < before)
    with store.read() as connection:
        channels = list(connection.execute(select(CHANNELS.c.name, CHANNELS.c.upto)))
    dropped = 0
    for name, upto in channels:
        old = delete(DELIVERIES).where(
            DELIVERIES.c.channel == name,
            DELIVERIES.c.done_at < before,
            DELIVERIES.c.at < cast(datetime, upto) - OVERLAP,
            or_(DELIVERIES.c.job_id == "", DELIVERIES.c.job_id.in_(over)),
        )
        with store.write() as connection:
            dropped += connection.execute(old).rowcount
    return dropped
