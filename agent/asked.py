"""Asked effects and delivered messages, as rows: which one next, begun, tried again, done.

Never: perform one (the outbox does); lose the order within a lane.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import (
    Connection,
    case,
    exists,
    func,
    insert,
    select,
    tuple_,
    update,
)

from agent import crash
from agent.database import EFFECTS, JOBS, MESSAGES, Database, Record, records
from states.effects import AnyEffect, parse_effect
from states.job import MACHINE_VERSION

_BEFORE = EFFECTS.alias("before")
IS_FIRST_IN_LANE = ~exists().where(
    _BEFORE.c.job_id == EFFECTS.c.job_id,
    _BEFORE.c.lane == EFFECTS.c.lane,
    _BEFORE.c.done_at.is_(None),
    tuple_(_BEFORE.c.seq, _BEFORE.c.n) < tuple_(EFFECTS.c.seq, EFFECTS.c.n),
)
"""No open effect of the same run and lane stands before this one: those behind it wait, whatever their time."""


class AskedEffect(NamedTuple):
    """An effect to perform. begun: it was begun before and its end is not known."""

    id: str
    job_id: str
    effect: AnyEffect
    tries: int
    begun: bool


class AskedEffects(Database):
    """What was asked for and is to be carried out."""

    def next_effect(self, job_id: str, now: datetime) -> AskedEffect | None:
        """The first open effect of a lane that is due; effects behind it in the same lane wait."""
        query = (
            select(EFFECTS)
            .where(EFFECTS.c.job_id == job_id, EFFECTS.c.done_at.is_(None))
            .order_by(EFFECTS.c.seq, EFFECTS.c.n)
        )
        with self._read() as connection:
            lanes: set[str] = set()
            for row in connection.execute(query).mappings():
                if row["lane"] in lanes:
                    continue
                lanes.add(row["lane"])
                if row["not_before"] <= now:
                    effect = parse_effect(row["body"])
                    return AskedEffect(row["id"], job_id, effect, row["tries"], row["state"] == "begun")
        return None

    def begin_effect(self, effect_id: str, now: datetime) -> None:
        """Intent before call: from here on a crash leaves a mark."""
        with self._write() as connection:
            connection.execute(
                update(EFFECTS).where(EFFECTS.c.id == effect_id).values(state="begun", begun_at=now)
            )
        crash.point("effect-begun")

    def finish_effect(self, effect_id: str, now: datetime, said: str = "") -> None:
        """Done, with no event of its own (a delivered message)."""
        with self._write() as connection:
            self._finish(connection, effect_id, now, said)

    def retry_effect(self, effect_id: str, not_before: datetime, said: str) -> None:
        """It failed in a way that may pass."""
        with self._write() as connection:
            connection.execute(
                update(EFFECTS)
                .where(EFFECTS.c.id == effect_id)
                .values(
                    state="asked", not_before=not_before, tries=EFFECTS.c.tries + 1, said=self._redact(said)
                )
            )

    def jobs_with_effects(self, now: datetime, limit: int = 1000) -> list[str]:
        """Ids of jobs that have an effect to perform now and whose lease is free."""
        query = (
            select(EFFECTS.c.job_id)
            .join(JOBS, JOBS.c.id == EFFECTS.c.job_id)
            .where(EFFECTS.c.done_at.is_(None), EFFECTS.c.not_before <= now, IS_FIRST_IN_LANE)
            .where((JOBS.c.lease_until.is_(None)) | (JOBS.c.lease_until <= now))
            .distinct()
            .limit(limit)
        )
        with self._read() as connection:
            return list(connection.execute(query).scalars())

    def next_effect_at(self) -> datetime | None:
        """When the earliest effect may be performed: the first of its lane, its time come, its run's lease free.

        Anything earlier would wake the loop for nothing, again and again.
        """
        held = JOBS.c.lease_until > EFFECTS.c.not_before
        free_at = case((held, JOBS.c.lease_until), else_=EFFECTS.c.not_before)
        query = (
            select(func.min(free_at))
            .join(JOBS, JOBS.c.id == EFFECTS.c.job_id)
            .where(EFFECTS.c.done_at.is_(None), IS_FIRST_IN_LANE)
        )
        with self._read() as connection:
            return connection.execute(query).scalar()

    def deliver(self, message: Mapping[str, Any]) -> bool:
        """Put a message into the inbox; False when it is there already (KEYED). Its id is that of the effect that
        asks for it, which is done with the same commit."""
        with self._write() as connection:
            if (
                connection.execute(select(MESSAGES.c.id).where(MESSAGES.c.id == message["id"])).scalar()
                is not None
            ):
                return False
            connection.execute(insert(MESSAGES).values(**{**message, "text": self._redact(message["text"])}))
            self._finish(connection, message["id"], message["at"], "")
        crash.point("message-delivered")
        return True

    def messages(self, job_id: str, *, after_id: str = "") -> list[Record]:
        """The messages of a run, oldest first."""
        query = select(MESSAGES).where(MESSAGES.c.job_id == job_id).order_by(MESSAGES.c.at, MESSAGES.c.id)
        with self._read() as connection:
            rows = records(connection, query)
        ids = [row["id"] for row in rows]
        return rows[ids.index(after_id) + 1 :] if after_id in ids else rows

    def _finish(self, connection: Connection, effect_id: str, now: datetime, said: str) -> None:
        connection.execute(
            update(EFFECTS)
            .where(EFFECTS.c.id == effect_id, EFFECTS.c.done_at.is_(None))
            .values(state="done", done_at=now, said=self._redact(said))
        )


def effect_row(job_id: str, seq: int, n: int, effect: AnyEffect, at: datetime) -> dict[str, Any]:
    return {
        "id": f"{job_id}:{seq}:{n}",
        "job_id": job_id,
        "seq": seq,
        "n": n,
        "kind": effect.kind,
        "lane": effect.lane,
        "body": effect.model_dump(mode="json", exclude_defaults=True) | {"kind": effect.kind},
        "state": "asked",
        "tries": 0,
        "asked_at": at,
        "not_before": at,
        "said": "",
        "version": MACHINE_VERSION,
    }
