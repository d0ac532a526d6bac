"""A database as it is after years: many runs that are watched and very many that are over, on a disk.

Three runs get there by themselves (one runs, one ended well, one failed); the others are their rows under other ids,
multiplied by SQLite itself, since a million runs that really took place would take days.

Never: a row that the product did not write first.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

from agent.store import Store
from agent.tables import microseconds
from states.observation import Observation
from tests.agent.fakes import BROKEN, ENDLESS, GOOD, START, Desk

CHUNK = 20_000
"""Runs of one statement."""
SPACING_US = 7_000_000
"""Between the starts of two runs: a million of them began within eleven weeks."""
RECENT = 10
"""The watched ones began within the last of so many parts of that time."""
JOURNAL = ("event", "effect", "message")
SHIFTED = ("created_at", "ended_at", "submitted_at", "at", "asked_at", "not_before", "begun_at", "done_at")
"""Columns of time that differ between two runs. Timers do not: they fall due together."""
SCRAMBLE, IDS = 2_654_435_761, 1 << 24
"""An odd factor modulo a power of two: numbers become ids in no order and without a repeat, as drawn ones are."""
FAR_US = microseconds(START) + 365 * 86_400_000_000


class Filled(NamedTuple):
    """The database. watched, past: how many. one_watched, one_past: the ids of two with a whole journal.
    seen: what the cluster says of each that runs. job_bytes, journal_bytes: of one past run, indexes included."""

    folder: Path
    watched: int
    past: int
    one_watched: str
    one_past: str
    seen: Observation
    job_bytes: float
    journal_bytes: float

    @property
    def file(self) -> Path:
        return file_in(self.folder)


def file_in(folder: Path) -> Path:
    """Where the database is."""
    return folder / "watchkeeper.db"


def url_of(folder: Path) -> str:
    """As the settings name it."""
    return f"sqlite:///{file_in(folder)}"


def fill(folder: Path, *, watched: int, past: int, whole: int = 20) -> Filled:
    """Make it in this folder. whole: every so many-th run has its journal, effects and messages too: each of them is
    read by its run's id alone, so those of the others would take nothing but time and disk."""
    running, ended, failed, seen = _templates(folder)
    half = past // 2
    with _quick(file_in(folder)) as connection:
        base = _bytes(connection)
        _copy(connection, "job", ended, range(0, half))
        _copy(connection, "job", failed, range(half, past))
        jobs = _bytes(connection)
        for table in JOURNAL:
            _copy(connection, table, ended, range(0, half, whole))
            _copy(connection, table, failed, range(half, past, whole))
        journals = _bytes(connection)
        now = range(past, past + watched)
        _copy(connection, "job", running, now, spacing_us=SPACING_US * past // (RECENT * watched))
        for table in JOURNAL:
            _copy(connection, table, running, now[::whole])
        for template in (running, ended, failed):
            _forget(connection, template)
    with_journal = len(range(0, half, whole)) + len(range(half, past, whole))
    return Filled(
        folder, watched, past, _id(past + watched // 2 // whole * whole), _id(half // 2 // whole * whole), seen,
        (jobs - base) / past, (journals - jobs) / with_journal,
    )  # fmt: skip


def set_timers(folder: Path, *, due: int, at_us: int, others_us: int = FAR_US) -> None:
    """So many of the watched runs are due at that moment (microseconds), the others much later; no other deadline,
    and nothing that a wave before has asked for is still to be done."""
    with closing(sqlite3.connect(file_in(folder), isolation_level=None)) as connection:
        live = "SELECT id FROM job WHERE ended_at IS NULL"
        connection.execute("BEGIN IMMEDIATE")
        connection.execute(
            f"UPDATE job SET wake_at = ?, deadline_at = NULL, look_s = 60, look_s_max = 60 WHERE id IN ({live})",
            (others_us,),
        )
        connection.execute(f"UPDATE job SET wake_at = ? WHERE id IN ({live} LIMIT ?)", (at_us, due))
        connection.execute("UPDATE effect SET state = 'done', done_at = not_before WHERE done_at IS NULL")
        connection.execute("COMMIT")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _templates(folder: Path) -> tuple[str, str, str, Observation]:
    """One that runs and was read, one that ended well, one that failed; and what was last seen of the first."""
    store = Store(url_of(folder))
    store.create_schema()
    desk = Desk(store, folder, GOOD, BROKEN, ENDLESS)
    ended = desk.delegate()
    desk.run()
    failed = desk.delegate(max_restarts=0)
    desk.run()
    running = desk.delegate()
    desk.run_to(running, "running")
    for _ in range(6):
        desk.sleep()
        desk.look()
    seen = desk.job(running).attempt.seen
    assert seen is not None
    store.close()
    return running, ended, failed, seen


@contextmanager
def _quick(file: Path) -> Iterator[sqlite3.Connection]:
    """The file while it is filled: what is lost with the power is made anew. As the store left it afterwards."""
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        for pragma in ("journal_mode=OFF", "synchronous=OFF", "cache_size=-400000"):
            connection.execute(f"PRAGMA {pragma}")
        connection.create_function("run_id", 1, _id, deterministic=True)
        yield connection
        connection.execute("PRAGMA journal_mode=WAL")


def _id(number: int) -> str:
    return f"digits-{number * SCRAMBLE % IDS:06x}"


def _copy(
    connection: sqlite3.Connection, table: str, template: str, numbers: range, *, spacing_us: int = SPACING_US
) -> None:
    """The rows of one run once for each number: its id and name another, its times earlier the lower the number."""
    columns = {name: kind for _, name, kind, *_ in connection.execute(f"PRAGMA table_info({table})")}
    if table == "event":
        del columns["id"]
    quoted = {name: f'old."{name}"' for name in columns}
    texts = [name for name, kind in columns.items() if kind.startswith(("VARCHAR", "TEXT", "JSON"))]
    value = quoted | {name: f"replace({quoted[name]}, :old, seq.run)" for name in texts}
    value |= {
        name: f"{quoted[name]} - :behind + seq.number * :spacing" for name in SHIFTED if name in columns
    }
    names = ", ".join(f'"{name}"' for name in columns)
    one = "id" if table == "job" else "job_id"
    query = (
        "WITH RECURSIVE seq(number, run) AS (SELECT :first, run_id(:first) UNION ALL"
        " SELECT number + :step, run_id(number + :step) FROM seq WHERE number + :step < :upto)"
        f" INSERT INTO {table} ({names}) SELECT {', '.join(value.values())}"
        f" FROM seq JOIN {table} AS old WHERE old.{one} = :old"
    )
    for start in range(numbers.start, numbers.stop, CHUNK * numbers.step):
        chunk = range(start, min(start + CHUNK * numbers.step, numbers.stop), numbers.step)
        values = {"old": template, "first": chunk[0], "upto": chunk.stop, "step": chunk.step}
        connection.execute(query, values | {"spacing": spacing_us, "behind": numbers.stop * spacing_us})


def _forget(connection: sqlite3.Connection, template: str) -> None:
    """The run that was copied is no part of the load."""
    for table in JOURNAL:
        connection.execute(f"DELETE FROM {table} WHERE job_id = ?", (template,))
    connection.execute("DELETE FROM job WHERE id = ?", (template,))


def _bytes(connection: sqlite3.Connection) -> int:
    (pages,), (size,) = (
        connection.execute(f"PRAGMA {what}").fetchone() for what in ("page_count", "page_size")
    )
    return int(pages) * int(size)
