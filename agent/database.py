"""The database behind the store: its engine, its transactions, the grid of its timers.

SQLite (WAL, synchronous=FULL, BEGIN IMMEDIATE for writes) is the embedded default; PostgreSQL by URL.
Statements of the loop are built once, at import, with named parameters: building one anew costs more than running it.

Never: a query about jobs (those are in `store`, `asked` and `due`); a transaction held open during a call outside.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any, cast

from sqlalchemy import (
    Connection,
    Engine,
    Executable,
    Select,
    Table,
    bindparam,
    create_engine,
    event,
    update,
)
from sqlalchemy.exc import OperationalError
from sqlalchemy.pool import StaticPool

from agent.tables import EffectRow, EventRow, JobRow, MessageRow, microseconds

JOBS, EVENTS = cast(Table, JobRow.__table__), cast(Table, EventRow.__table__)  # type: ignore[attr-defined]
EFFECTS, MESSAGES = cast(Table, EffectRow.__table__), cast(Table, MessageRow.__table__)  # type: ignore[attr-defined]

THESE_JOBS = update(JOBS).where(JOBS.c.id.in_(bindparam("ids", expanding=True)))
"""Some jobs by their ids; for `in_pieces`."""

Redact = Callable[[Any], Any]

PATIENCE = {
    "connect_timeout": 10, "keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3,
    "tcp_user_timeout": 20_000,
}  # fmt: skip
"""A database that went silent (a partition) is noticed within half a minute, not after hours. The last in ms."""

BOUNDS = {
    "idle_in_transaction_session_timeout": "30s", "lock_timeout": "15s", "tcp_keepalives_idle": "10",
    "tcp_keepalives_interval": "5", "tcp_keepalives_count": "3", "tcp_user_timeout": "20s",
}  # fmt: skip
"""Of each session, at the server: a replica that is paused or cut off within a transaction holds the rows of its runs
no longer than this; the others go on, and it begins anew."""

Record = Mapping[str, Any]
"""A row as it was read: values by the name of their column."""


class Database:
    """One database. Thread-safe; each `write` or `read` is one transaction."""

    def __init__(self, url: str, *, redact: Redact = lambda value: value, grid_s: float = 1.0) -> None:
        self.url = url
        self.engine = _engine(url)
        self._writing = self.engine.execution_options(write=True)
        self._redact = redact
        self._grid_us = max(1, int(grid_s * 1_000_000))

    def create_schema(self) -> None:
        """Make the database's form, or bring it up to date (`agent.migrations`). Raises its TooNew."""
        from agent.migrations import upgrade

        upgrade(self.engine)

    def close(self) -> None:
        self.engine.dispose()

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """A write transaction, for the library and the leases."""
        with self._write() as connection:
            yield connection

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A read transaction, for the library and the leases."""
        with self._read() as connection:
            yield connection

    @contextmanager
    def _write(self) -> Iterator[Connection]:
        with self._writing.connect() as connection, connection.begin():
            yield connection

    @contextmanager
    def _read(self) -> Iterator[Connection]:
        with self.engine.connect() as connection, connection.begin():
            yield connection

    def on_grid(self, at: datetime | None) -> datetime | None:
        """Timers are rounded up to the wave grid, so that jobs fall due together and share one status call."""
        if at is None:
            return None
        late_us = -microseconds(at) % self._grid_us
        return at + timedelta(microseconds=late_us)


def _engine(url: str) -> Engine:
    if not url.startswith("sqlite"):
        return _postgresql(url)
    memory = url in ("sqlite://", "sqlite:///:memory:")
    options: dict[str, Any] = {"poolclass": StaticPool} if memory else {}
    engine = create_engine(url, connect_args={"check_same_thread": False, "timeout": 30}, **options)

    @event.listens_for(engine, "connect")
    def _connected(connection: Any, record: object) -> None:
        connection.isolation_level = None  # the driver would begin too late and lose updates (STACK 4)
        for pragma in ("journal_mode=WAL", "synchronous=FULL", "busy_timeout=30000", "foreign_keys=ON"):
            connection.execute(f"PRAGMA {pragma}")

    @event.listens_for(engine, "begin")
    def _begun(connection: Connection) -> None:
        begin = "BEGIN IMMEDIATE" if connection.get_execution_options().get("write") else "BEGIN"
        try:  # past SQLAlchemy, which would take longer over these words than over a query
            connection.connection.cursor().execute(begin)
        except sqlite3.OperationalError as error:
            raise OperationalError(begin, None, error) from error

    return engine


def _postgresql(url: str) -> Engine:
    """A plain `postgresql://` means the driver that comes with the extra."""
    scheme, _, rest = url.partition("://")
    driven = f"postgresql+psycopg://{rest}" if scheme in ("postgresql", "postgres") else url
    engine = create_engine(driven, pool_pre_ping=True, connect_args=PATIENCE)

    @event.listens_for(engine, "connect")
    def _connected(connection: Any, record: object) -> None:
        connection.autocommit = True
        connection.execute(
            "SELECT " + ", ".join(f"set_config('{n}', '{v}', false)" for n, v in BOUNDS.items())
        )
        connection.autocommit = False

    return engine


def records(connection: Connection, query: Select[Any], **values: Any) -> list[Record]:
    return cast("list[Record]", list(connection.execute(query, values).mappings()))


def in_pieces(
    connection: Connection, statement: Executable, ids: Sequence[str], values: Mapping[str, Any]
) -> None:
    """Databases bound the number of parameters; 10,000 ids are ten statements of one transaction."""
    for start in range(0, len(ids), 1000):
        connection.execute(statement, {**values, "ids": list(ids[start : start + 1000])})
