"""The database of a scenario: the product's own store, in memory, with writes that fail where the story says so.

A kill is a BaseException from a crash point; from then on the dead process cannot write (no lease is given back),
until another one boots over the same store.

Never: another answer than the database's; a row that survives its story.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any, ClassVar

from sqlalchemy import Connection

from agent.database import Redact
from agent.scenarios.faults import StoreStory
from agent.store import Store
from states.job import Job

_ROW = "SELECT snapshot, seq, seen_at, wake_at FROM job WHERE id = ?"


class Killed(BaseException):
    """The process is gone; nothing may catch this on its way out."""


class Broken(Exception):
    """The story says that this effect cannot be performed now; no fault of the loop."""


class StoreTrouble(Broken):
    """The database did not take a write, as the story says."""


class MortalStore(Store):
    """A store in memory that a dead process cannot write to. dead: set by the kill, taken back by the next boot.

    One is kept for the next story: a new one would translate every statement anew, which costs more than a story.
    """

    dead = False
    shaken = False
    """A write failed; whoever swallowed that looks again at the next sweep."""
    written = 0
    troubles: tuple[StoreStory, ...] = ()
    _loaded: dict[str, tuple[int, Job]]
    _restored: dict[str, tuple[Any, Job]]
    _spare: ClassVar[list[MortalStore]] = []

    @classmethod
    def empty(cls, redact: Redact, troubles: tuple[StoreStory, ...] = ()) -> MortalStore:
        """A store without rows. troubles: which of its writes fail."""
        if not cls._spare:
            made = cls("sqlite://")
            made.written = 0
            made.create_schema()
        else:
            made = cls._spare.pop()
        made.dead, made._redact, made.written, made.troubles = False, redact, 0, troubles
        made.shaken = False
        made.forget()
        return made

    def forget(self) -> None:
        """What was read is read anew: another process starts, or the rows were changed from outside."""
        self._loaded, self._restored = {}, {}
        self._at_large.clear()

    def give_back(self) -> None:
        """Empty it and keep it for the next story."""
        self.dead, self.troubles = False, ()
        self.forget()
        with self._write() as connection:
            names = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'"
            tables = [row[0] for row in connection.exec_driver_sql(names) if row[0] != "alembic_version"]
            connection.exec_driver_sql("PRAGMA defer_foreign_keys = ON")
            for table in tables:
                connection.exec_driver_sql(f"DELETE FROM {table}")
        self._spare.append(self)

    def load(self, job_id: str) -> Job:
        """The job; read once as long as nothing is written (the loop, the person and the guard all look at it)."""
        written, job = self._loaded.get(job_id) or (-1, None)
        if job is None or written != self.written:
            job = super().load(job_id)
            self._loaded[job_id] = (self.written, job)
        return job

    def _load(self, connection: Connection, job_id: str, *, lock: bool = False) -> Job:
        """The job of the row; a row that is as it was gives the same one, without making it of the text again."""
        row = connection.connection.cursor().execute(_ROW, (job_id,)).fetchone()
        known = self._restored.get(job_id)
        if known is None or known[0] != row:
            known = self._restored[job_id] = row, super()._load(connection, job_id, lock=lock)
        return known[1]

    def _trouble(self, says: str) -> StoreTrouble:
        self.shaken = True
        return StoreTrouble(says)

    @cached_property
    def _kept(self) -> Connection:
        """The one connection, kept open: taken from the pool for each of thousands of transactions, it would cost as
        much as a query."""
        return self._writing.connect()

    @contextmanager
    def _read(self) -> Iterator[Connection]:
        with self._kept.begin():
            yield self._kept

    @contextmanager
    def _write(self) -> Iterator[Any]:
        if self.dead:
            raise Killed
        self.written += 1
        says = next((t.says for t in self.troubles if t.n <= self.written < t.n + t.times), "")
        if says == "busy":
            raise self._trouble("the database is busy")
        with self._kept.begin():
            yield self._kept
            if says == "full":
                raise self._trouble("the disk is full")
        if says == "unclear":
            raise self._trouble("the connection was lost while it was committed")
