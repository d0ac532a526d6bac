"""The config library: "for this kind of work, this image / environment / network" (RULES H).

Different choices stay distinct options, exact repeats are folded into one with a count, and an entry that failed is
marked stale with the day and the evidence and treated as missing until it works again (H3, F5). An entry is a hint.

Never: a credential (H4): values and notes that look like one are refused; a fit of another kind of work.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, NamedTuple, cast

from sqlalchemy import Connection, RowMapping, Table, insert, select, update

from agent.libraryfile import FIELDS, Entry
from agent.store import Store
from agent.tables import LibraryKeyRow, LibraryRow
from states.credentials import find_credentials
from states.effects import Remember
from states.kinds_of_work import same_kind
from states.orders import folded

ENTRIES = cast(Table, LibraryRow.__table__)  # type: ignore[attr-defined]
KEYS = cast(Table, LibraryKeyRow.__table__)  # type: ignore[attr-defined]

NOTES_MAX = 10


class Fit(NamedTuple):
    """A remembered value and why it fits. others: how many other values are on record for this kind of work."""

    value: str
    why: str
    entry: int
    others: int = 0


class Taken(NamedTuple):
    """What an import did: entries that are new, and those that were folded into one that was there."""

    new: int
    folded: int


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
        note = "" if find_credentials(effect.note) else effect.note
        with self._store.write() as connection:
            if connection.execute(select(KEYS.c.id).where(KEYS.c.id == effect_id)).scalar() is not None:
                return
            connection.execute(insert(KEYS).values(id=effect_id))
            if effect.what == "stale":
                _mark_stale(connection, values, note, at)
            elif effect.purpose and (values or note):
                _fold(connection, effect.model_copy(update={"note": note}), values, at)

    def best(self, kind: str, field: str) -> Fit | None:
        """The fit for a kind of work: not stale, most often worked, then newest; None when there is none (H2)."""
        query = (
            select(ENTRIES)
            .where(ENTRIES.c.stale_at.is_(None))
            .order_by(ENTRIES.c.worked.desc(), ENTRIES.c.last_at.desc())
        )
        with self._store.read() as connection:
            rows = [
                row
                for row in connection.execute(query).mappings()
                if field in row["settings"] and same_kind(row["purpose"], kind)
            ]
        if not rows:
            return None
        first = rows[0]
        value = first["settings"][field]
        counted = f"worked {first['worked']} times" if first["worked"] else "used before"
        others = len({row["settings"][field] for row in rows} - {value})
        return Fit(value, f"{counted}, last on {first['last_at']:%Y-%m-%d}", first["id"], others)

    def entries(self) -> list[RowMapping]:
        """Everything that is on record, newest first."""
        with self._store.read() as connection:
            return list(connection.execute(select(ENTRIES).order_by(ENTRIES.c.last_at.desc())).mappings())

    def forget(self, entry: int) -> bool:
        """Remove one entry because a person asked; False when it is not there."""
        with self._store.write() as connection:
            return connection.execute(ENTRIES.delete().where(ENTRIES.c.id == entry)).rowcount == 1

    def take_in(self, entries: Iterable[Entry]) -> Taken:
        """Fold entries of a team's file into the library, all or none. The same file twice changes nothing."""
        counts = [0, 0]
        with self._store.write() as connection:
            for entry in entries:
                counts[_fold_entry(connection, entry)] += 1
        return Taken(*counts)


def entry_of(row: Mapping[str, Any]) -> Entry:
    """A row as an entry for a team."""
    stale = {"at": row["stale_at"], "why": row["stale_why"]} if row["stale_at"] else None
    told = {name: row[name] for name in ("purpose", "used", "worked", "first_at", "last_at")}
    return Entry.model_validate({**told, **row["settings"], "stale": stale, "notes": tuple(row["notes"])})


def _fold(connection: Connection, effect: Remember, values: Mapping[str, str], at: datetime) -> None:
    row = _same(connection, effect.purpose, values)
    worked, used = int(effect.what == "worked"), int(effect.what in ("used", "fact"))
    if row is None:
        counts = {"used": used, "worked": worked, "first_at": at, "last_at": at}
        _insert(connection, effect.purpose, values, counts, notes=[effect.note] if effect.note else [])
        return
    changes: dict[str, Any] = {"used": row["used"] + used, "worked": row["worked"] + worked, "last_at": at}
    if effect.note:
        changes["notes"] = _noted(row["notes"], [effect.note])
    if worked:
        changes |= {"stale_at": None, "stale_why": ""}
    connection.execute(update(ENTRIES).where(ENTRIES.c.id == row["id"]).values(**changes))


def _fold_entry(connection: Connection, entry: Entry) -> int:
    """1 if it was folded into an entry that was there, 0 if it is new. Counts are of one truth: the larger holds."""
    row = _same(connection, entry.purpose, entry.settings)
    stale = {"stale_at": entry.stale.at, "stale_why": entry.stale.why} if entry.stale else {}
    if row is None:
        counts = {name: getattr(entry, name) for name in ("used", "worked", "first_at", "last_at")}
        _insert(
            connection, entry.purpose, entry.settings, counts | stale, notes=list(entry.notes)[-NOTES_MAX:]
        )
        return 0
    changes: dict[str, Any] = {
        "used": max(row["used"], entry.used),
        "worked": max(row["worked"], entry.worked),
        "first_at": min(row["first_at"], entry.first_at),
        "last_at": max(row["last_at"], entry.last_at),
        "notes": _noted(row["notes"], entry.notes),
    }
    if entry.stale and row["stale_at"] is None and entry.stale.at > row["last_at"]:
        changes |= stale
    connection.execute(update(ENTRIES).where(ENTRIES.c.id == row["id"]).values(**changes))
    return 1


def _same(connection: Connection, purpose: str, values: Mapping[str, str]) -> RowMapping | None:
    """The entry of this kind of work with exactly this set-up, if there is one."""
    same = select(ENTRIES).where(ENTRIES.c.digest == _digest(values)).order_by(ENTRIES.c.id)
    rows = connection.execute(same).mappings()
    return next((row for row in rows if folded(row["purpose"]) == folded(purpose)), None)


def _insert(
    connection: Connection,
    purpose: str,
    values: Mapping[str, str],
    counts: Mapping[str, Any],
    *,
    notes: list[str],
) -> None:
    row = {"stale_why": "", **counts, "purpose": purpose, "settings": dict(values), "notes": notes}
    connection.execute(insert(ENTRIES).values(digest=_digest(values), **row))


def _noted(known: Iterable[str], more: Iterable[str]) -> list[str]:
    return list(dict.fromkeys([*known, *more]))[-NOTES_MAX:]


def _mark_stale(connection: Connection, values: Mapping[str, str], why: str, at: datetime) -> None:
    """Every entry that holds the failed value, whatever it was for."""
    for row in list(connection.execute(select(ENTRIES.c.id, ENTRIES.c.settings)).mappings()):
        if any(row["settings"].get(key) == value for key, value in values.items()):
            where = ENTRIES.c.id == row["id"]
            connection.execute(update(ENTRIES).where(where).values(stale_at=at, stale_why=why))


def _digest(values: Mapping[str, str]) -> str:
    return hashlib.sha256(json.dumps(dict(values), sort_keys=True).encode()).hexdigest()[:16]
