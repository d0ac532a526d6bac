"""The config library: "for this kind of work, this image / environment / network" (RULES H).

Different choices stay distinct options, exact repeats are folded into one with a count, and an entry that failed is
marked stale with its reason and treated as missing from then on (H3, F5).

Never: a credential (H4): values that look like one are refused.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple, cast

from sqlalchemy import Connection, RowMapping, Table, insert, select, update

from agent.store import Store
from agent.tables import LibraryKeyRow, LibraryRow
from states.credentials import find_credentials
from states.effects import Remember

ENTRIES = cast(Table, LibraryRow.__table__)  # type: ignore[attr-defined]
KEYS = cast(Table, LibraryKeyRow.__table__)  # type: ignore[attr-defined]

FIELDS = ("image", "environment", "proxy")
NOTES_MAX = 10


class Fit(NamedTuple):
    """A remembered value and why it fits."""

    value: str
    why: str
    entry: int


class Library:
    """The library of one Watchkeeper, in its database."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def remember(self, effect_id: str, effect: Remember, at: datetime) -> None:
        """Take in what a run teaches, once per effect."""
        values = {
            key: value
            for key, value in effect.values.items()
            if key in FIELDS and not find_credentials(value)
        }
        with self._store.write() as connection:
            if connection.execute(select(KEYS.c.id).where(KEYS.c.id == effect_id)).scalar() is not None:
                return
            connection.execute(insert(KEYS).values(id=effect_id))
            if effect.what == "stale":
                _mark_stale(connection, values, effect.note, at)
            elif values or effect.note:
                _fold(connection, effect, values, at)

    def best(self, purpose: str, field: str) -> Fit | None:
        """The fit for a kind of work: not stale, most often worked, then newest; None when there is none."""
        query = (
            select(ENTRIES)
            .where(ENTRIES.c.purpose == purpose, ENTRIES.c.stale_at.is_(None))
            .order_by(ENTRIES.c.worked.desc(), ENTRIES.c.last_at.desc())
        )
        with self._store.read() as connection:
            for row in connection.execute(query).mappings():
                if field in row["settings"]:
                    why = (
                        f"worked {row['worked']} times for {purpose!r}"
                        if row["worked"]
                        else f"used before for {purpose!r}"
                    )
                    return Fit(row["settings"][field], why, row["id"])
        return None

    def entries(self) -> list[RowMapping]:
        """Everything that is on record, newest first."""
        with self._store.read() as connection:
            return list(connection.execute(select(ENTRIES).order_by(ENTRIES.c.last_at.desc())).mappings())

    def forget(self, entry: int) -> bool:
        """Remove one entry because a person asked; False when it is not there."""
        with self._store.write() as connection:
            return connection.execute(ENTRIES.delete().where(ENTRIES.c.id == entry)).rowcount == 1


def _fold(connection: Connection, effect: Remember, values: Mapping[str, str], at: datetime) -> None:
    digest = _digest(values)
    where = (ENTRIES.c.purpose == effect.purpose) & (ENTRIES.c.digest == digest)
    row = connection.execute(select(ENTRIES).where(where)).mappings().one_or_none()
    worked, used = int(effect.what == "worked"), int(effect.what in ("used", "fact"))
    if row is None:
        connection.execute(
            insert(ENTRIES).values(
                purpose=effect.purpose,
                digest=digest,
                settings=dict(values),
                used=used,
                worked=worked,
                first_at=at,
                last_at=at,
                notes=[effect.note] if effect.note else [],
                stale_why="",
            )
        )
        return
    changes: dict[str, Any] = {"used": row["used"] + used, "worked": row["worked"] + worked, "last_at": at}
    if effect.note and effect.note not in row["notes"]:
        changes["notes"] = [*row["notes"], effect.note][-NOTES_MAX:]
    if worked:
        changes |= {"stale_at": None, "stale_why": ""}
    connection.execute(update(ENTRIES).where(where).values(**changes))


def _mark_stale(connection: Connection, values: Mapping[str, str], why: str, at: datetime) -> None:
    """Every entry that holds the failed value, whatever it was for."""
    for row in list(connection.execute(select(ENTRIES.c.id, ENTRIES.c.settings)).mappings()):
        if any(row["settings"].get(key) == value for key, value in values.items()):
            where = ENTRIES.c.id == row["id"]
            connection.execute(update(ENTRIES).where(where).values(stale_at=at, stale_why=why))


def _digest(values: Mapping[str, str]) -> str:
    return hashlib.sha256(json.dumps(dict(values), sort_keys=True).encode()).hexdigest()[:16]
