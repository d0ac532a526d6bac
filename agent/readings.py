"""The ledger of readings in the database: every call with its tokens and cost, and the replies as a cache.

Never: a reply that was not redacted; a judgement on a reading (`reply` checks it anew each time).
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, NamedTuple, cast

from sqlalchemy import ColumnElement, Table, func, insert, select

from agent.reader.budget import Entry, Spent
from agent.reader.prices import Tokens
from agent.reader.reply import Answer
from agent.store import Store
from agent.tables import ReadingRow

READINGS = cast(Table, ReadingRow.__table__)  # type: ignore[attr-defined]

REPLY_CHARS_MAX = 20_000
"""A reading is a few hundred characters; what is longer is void and needs no keeping in full."""


class Usage(NamedTuple):
    """What one model cost, over the rows asked for. usd: None when no price is known for any of them."""

    model: str
    calls: int
    read: int
    input_tokens: int
    output_tokens: int
    usd: float | None


class Readings:
    """The `Ledger` of one Watchkeeper (`budget.Ledger`). Thread-safe; each call is one transaction."""

    def __init__(self, store: Store, redact: Callable[[str], str] = str) -> None:
        self._store, self._redact = store, redact

    def remembered(self, key: str) -> Answer | None:
        """The newest answer to this input that gave a reading."""
        query = (
            select(READINGS)
            .where(READINGS.c.key == key, READINGS.c.kind == "read", READINGS.c.reply != "")
            .order_by(READINGS.c.id.desc())
            .limit(1)
        )
        with self._store.read() as connection:
            row = connection.execute(query).mappings().one_or_none()
        if row is None:
            return None
        names = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")
        return Answer(row["reply"], row["stop_reason"], row["model"], Tokens(*(row[name] for name in names)))

    def spent_by(self, job_id: str) -> Spent:
        """By one run, since ever."""
        return self._spent(READINGS.c.job_id == job_id)

    def spent_since(self, at: datetime) -> Spent:
        """By all, since then (aware)."""
        return self._spent(READINGS.c.at >= at)

    def note(self, entry: Entry) -> None:
        """Keep one call, its reply redacted and bounded."""
        answer = entry.answer
        tokens = answer.tokens if answer else Tokens()
        with self._store.write() as connection:
            connection.execute(
                insert(READINGS).values(
                    key=entry.key,
                    job_id=entry.job_id,
                    at=entry.at,
                    model=entry.model,
                    kind=entry.kind,
                    stop_reason=answer.stop_reason if answer else "",
                    reply=self._redact(answer.text)[:REPLY_CHARS_MAX] if answer else "",
                    input_tokens=tokens.input,
                    output_tokens=tokens.output,
                    cache_read_tokens=tokens.cache_read,
                    cache_write_tokens=tokens.cache_write,
                    cost_usd=entry.cost_usd,
                )
            )

    def usage(self, *, job_id: str = "", since: datetime | None = None) -> list[Usage]:
        """Calls, tokens and dollars by model: of a run, of a span of time, or of all."""
        columns = READINGS.c
        read = func.sum((columns.kind == "read").cast(columns.input_tokens.type))
        sums = (func.count(), read, func.sum(columns.input_tokens), func.sum(columns.output_tokens))
        query = select(columns.model, *sums, func.sum(columns.cost_usd)).group_by(columns.model)
        if job_id:
            query = query.where(columns.job_id == job_id)
        if since is not None:
            query = query.where(columns.at >= since)
        with self._store.read() as connection:
            return [Usage(*row) for row in connection.execute(query.order_by(columns.model))]

    def _spent(self, where: ColumnElement[bool]) -> Spent:
        query = select(func.coalesce(func.sum(READINGS.c.cost_usd), 0.0), func.count()).where(where)
        with self._store.read() as connection:
            row: Any = connection.execute(query).one()
        return Spent(float(row[0]), int(row[1]))
