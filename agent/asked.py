"""Asked effects and delivered messages, as rows: which one next, begun, tried again, done.

Never: perform one (the outbox does); lose the order within a lane.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import (
    Connection,
    bindparam,
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


_OPEN_OF_JOB = (
    select(EFFECTS)
    .where(EFFECTS.c.job_id == bindparam("job"), EFFECTS.c.done_at.is_(None))
    .order_by(EFFECTS.c.seq, EFFECTS.c.n)
)
_THIS_EFFECT = update(EFFECTS).where(EFFECTS.c.id == bindparam("effect"))
_BEGIN = _THIS_EFFECT.values(state="begun", begun_at=bindparam("now"))
_FINISH = _THIS_EFFECT.where(EFFECTS.c.done_at.is_(None)).values(
    state="done", done_at=bindparam("now"), said=bindparam("words")
)
_RETRY = _THIS_EFFECT.values(
    state="asked", not_before=bindparam("later"), tries=EFFECTS.c.tries + 1, said=bindparam("words")
)
_POSTPONE = (
    update(EFFECTS)
    .where(EFFECTS.c.job_id == bindparam("job"), EFFECTS.c.done_at.is_(None))
    .where(EFFECTS.c.not_before < bindparam("later"))
    .values(not_before=bindparam("later"))
)
_WITH_EFFECTS = (
    select(EFFECTS.c.job_id)
    .join(JOBS, JOBS.c.id == EFFECTS.c.job_id)
    .where(EFFECTS.c.done_at.is_(None), EFFECTS.c.not_before <= bindparam("now"), IS_FIRST_IN_LANE)
    .where((JOBS.c.lease_until.is_(None)) | (JOBS.c.lease_until <= bindparam("now")))
    .order_by(EFFECTS.c.not_before)
    .limit(bindparam("most"))
)
"""By the index of open effects. No DISTINCT: SQLite would walk every effect that ever was, to have them by run."""
_NEXT_EFFECT_AT = (
    select(
        func.min(
            case((JOBS.c.lease_until > EFFECTS.c.not_before, JOBS.c.lease_until), else_=EFFECTS.c.not_before)
        )
    )
    .join(JOBS, JOBS.c.id == EFFECTS.c.job_id)
    .where(EFFECTS.c.done_at.is_(None), IS_FIRST_IN_LANE)
)
_MESSAGE_OF_ID = select(MESSAGES.c.id).where(MESSAGES.c.id == bindparam("message"))
_MESSAGES_OF_JOB = (
    select(MESSAGES).where(MESSAGES.c.job_id == bindparam("job")).order_by(MESSAGES.c.at, MESSAGES.c.id)
)
_NEW_MESSAGE = insert(MESSAGES)


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
        with self._read() as connection:
            lanes: set[str] = set()
            for row in connection.execute(_OPEN_OF_JOB, {"job": job_id}).mappings():
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
            connection.execute(_BEGIN, {"effect": effect_id, "now": now})
        crash.point("effect-begun")

    def finish_effect(self, effect_id: str, now: datetime, said: str = "") -> None:
        """Done, with no event of its own (a delivered message)."""
        with self._write() as connection:
            self._finish(connection, effect_id, now, said)

    def retry_effect(self, effect_id: str, not_before: datetime, said: str) -> None:
        """It failed in a way that may pass."""
        with self._write() as connection:
            connection.execute(
                _RETRY, {"effect": effect_id, "later": not_before, "words": self._redact(said)}
            )

    def postpone(self, job_id: str, until: datetime) -> None:
        """No effect of the run before then: its turn breaks, and would be taken again at once and break again."""
        with self._write() as connection:
            connection.execute(_POSTPONE, {"job": job_id, "later": until})

    def jobs_with_effects(self, now: datetime, limit: int = 1000) -> list[str]:
        """Ids of jobs that have an effect to perform now and whose lease is free, the longest due first."""
        with self._read() as connection:
            return list(
                dict.fromkeys(connection.execute(_WITH_EFFECTS, {"now": now, "most": limit}).scalars())
            )

    def next_effect_at(self) -> datetime | None:
        """When the earliest effect may be performed: the first of its lane, its time come, its run's lease free.

        Anything earlier would wake the loop for nothing, again and again.
        """
        with self._read() as connection:
            return connection.execute(_NEXT_EFFECT_AT).scalar()

    def deliver(self, message: Mapping[str, Any]) -> bool:
        """Put a message into the inbox; False when it is there already (KEYED). Its id is that of the effect that
        asks for it, which is done with the same commit."""
        with self._write() as connection:
            if connection.execute(_MESSAGE_OF_ID, {"message": message["id"]}).scalar() is not None:
                return False
            connection.execute(_NEW_MESSAGE, [{**message, "text": self._redact(message["text"])}])
            self._finish(connection, message["id"], message["at"], "")
        crash.point("message-delivered")
        return True

    def messages(self, job_id: str, *, after_id: str = "") -> list[Record]:
        """The messages of a run, oldest first."""
        with self._read() as connection:
            rows = records(connection, _MESSAGES_OF_JOB, job=job_id)
        ids = [row["id"] for row in rows]
        return rows[ids.index(after_id) + 1 :] if after_id in ids else rows

    def _finish(self, connection: Connection, effect_id: str, now: datetime, said: str) -> None:
        connection.execute(_FINISH, {"effect": effect_id, "now": now, "words": self._redact(said)})


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
        "not_before": getattr(effect, "not_before", None) or at,
        "said": "",
        "version": MACHINE_VERSION,
    }
