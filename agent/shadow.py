"""What this version would have decided for the runs under way, before it is let near them (RELIABILITY 6, 7).

Each live history is read as it is stored, lifted, and folded again through the machine of today: the same, the
same in other words, another decision, or not possible at all. The database is read only, in whatever older form
it has.

Never: write; bring the database up to date; judge runs that have ended (nothing is decided for them any more).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from sqlalchemy import select

from agent.database import EFFECTS, EVENTS, JOBS, Database, Record, records
from agent.migrations import current
from agent.tables import SCHEMA_VERSION
from states.events import parse_event
from states.job import Job, restored
from states.replay import WORDING, Asked, Divergence, apart, origin, retold
from states.versions import lift_event, lift_snapshot, may_be_lifted

Level = Literal["same", "reworded", "different", "impossible"]

_LIVE = select(JOBS.c.id, JOBS.c.snapshot, JOBS.c.seq, JOBS.c.seen_at).where(JOBS.c.ended_at.is_(None))
_HAPPENED = select(EVENTS.c.job_id, EVENTS.c.seq, EVENTS.c.to, EVENTS.c.body).order_by(EVENTS.c.seq)
_ASKED = select(EFFECTS.c.job_id, EFFECTS.c.seq, EFFECTS.c.body).order_by(EFFECTS.c.seq, EFFECTS.c.n)
"""Only columns that the first form had, so that every older database can be looked at."""


SENTENCES = WORDING | {"outcome", "next_action"}


class Seen(NamedTuple):
    """A run as this version sees it. said: where it parts from what was recorded; "" for the same."""

    run: str
    level: Level
    said: str = ""


def form_of(database: Database) -> str:
    """The form of the database, as it stands; "": it holds nothing of ours."""
    with database.read() as connection:
        return current(connection)


def is_newer(form: str) -> bool:
    """Whether a newer Watchkeeper wrote the database."""
    return bool(form) and (not form.isdigit() or int(form) > SCHEMA_VERSION)


def live_runs(database: Database) -> Iterator[Seen]:
    """Every run that has not ended, one after the other."""
    with database.read() as connection:
        jobs = records(connection, _LIVE)
    for job in jobs:
        with database.read() as connection:
            events = records(connection, _HAPPENED.where(EVENTS.c.job_id == job["id"]))
            effects = records(connection, _ASKED.where(EFFECTS.c.job_id == job["id"]))
        events = [
            row for row in events if row["seq"] <= job["seq"]
        ]  # what came since the first look is left out
        yield seen(job, events, effects)


def seen(job: Record, events: Sequence[Record], effects: Sequence[Record]) -> Seen:
    """One run. job: `id`, `snapshot`, `seq`, `seen_at`; events: `seq`, `to`, `body`; effects: `seq`, `body`."""
    run = str(job["id"])
    try:
        if not may_be_lifted(job["snapshot"]):
            return Seen(
                run, "different", "a submit or a stop of the older version is under way: let it end first"
            )
        stored = restored(lift_snapshot(job["snapshot"]), seq=job["seq"], seen_at=job["seen_at"])
        happened = [parse_event(lift_event(row["body"])) for row in events]
        asked: dict[int, list[Mapping[str, Any]]] = {}
        for row in effects:
            asked.setdefault(row["seq"], []).append(row["body"])
        recorded = [Asked(row["seq"], row["to"], tuple(asked.get(row["seq"], ()))) for row in events]
        told, found = retold(origin(stored), happened, recorded)
        if found is None or found.what == "wording":
            found = _apart(told, stored) or found
    except Exception as error:  # whatever it is: this version cannot carry this run
        return Seen(run, "impossible", f"{type(error).__name__}: {error}"[:400])
    if found is None:
        return Seen(run, "same")
    if found.what == "wording":
        return Seen(run, "reworded", f"after event {found.seq} ({found.event})")
    return Seen(run, "different", str(found)[:400])


def _apart(folded: Job, stored: Job) -> Divergence | None:
    """Where what is known of the run differs; sentences that are only put otherwise count as wording."""
    found = apart(folded, stored)
    if found is None or _plain(found.recorded) != _plain(found.recomputed):
        return found
    return found._replace(what="wording")


def _plain(value: Any) -> Any:
    """The value without its sentences."""
    if isinstance(value, Mapping):
        return {name: _plain(item) for name, item in value.items() if name not in SENTENCES}
    return [_plain(item) for item in value] if isinstance(value, (list, tuple)) else value
