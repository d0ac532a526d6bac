"""The embedded database in one file elsewhere, while it is in use, and back again.

A backup is one moment's state (SQLite's online copy), checked before it gets its name. A restored database knows
nothing of what came after: a submit that was still open is looked up by name before anything is sent again, and a job
that was sent later is found as a twin at the next look (RELIABILITY 2).

Never: overwrite a file; touch a database that somebody works on; back up a PostgreSQL (its own tools do).
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from typing import NamedTuple

from agent.tables import SCHEMA_VERSION

PAGES = 2000
"""Of one stretch of the copy, so that a large one can be interrupted."""


class BackupError(Exception):
    """It cannot be; the message says why and what to do."""


class Kept(NamedTuple):
    """What a database file holds. form: number of its newest migration; bytes: its size."""

    file: Path
    form: str
    runs: int
    live: int
    bytes: int


def backup(url: str, file: Path) -> Kept:
    """Copy the database of this URL to a new file, readable by its owner only. Raises BackupError."""
    source = file_of(url)
    if not source.exists():
        raise BackupError(f"there is no database yet ({source}); nothing to back up")
    return _copied(source, file)


def restore(url: str, file: Path) -> Kept:
    """Put a backup in the database's place, which must be empty. The caller knows that nobody carries runs.

    Raises BackupError.
    """
    target = file_of(url)
    for name in (target, *(target.with_name(target.name + end) for end in ("-wal", "-shm"))):
        if name.exists():
            raise BackupError(f"{name} is there; move it away first (it is not overwritten)")
    if not file.is_file():
        raise BackupError(f"there is no file {file}")
    return _copied(file, target, ask_first=True)


def examined(file: Path) -> Kept:
    """What a file holds, whole and readable by this Watchkeeper. Raises BackupError."""
    try:
        with closing(sqlite3.connect(f"{file.resolve().as_uri()}?mode=ro", uri=True)) as connection:
            return _examined(connection, file)
    except sqlite3.Error as error:
        raise BackupError(f"{file} is no database of Watchkeeper, or is damaged ({error})") from None


def file_of(url: str) -> Path:
    """The file of an embedded database. Raises BackupError for another one."""
    path = url.removeprefix("sqlite:///")
    if path == url or path in ("", ":memory:"):
        raise BackupError(
            "this database is not an embedded one; use its own tools (pg_dump; pg_restore into an empty one)"
        )
    return Path(path)


def _copied(source: Path, target: Path, *, ask_first: bool = False) -> Kept:
    """A checked copy under a new name: first beside it, then named in one step that fails if the name is taken."""
    if target.exists():
        raise BackupError(f"{target} is there already; give another name (it is not overwritten)")
    if not target.parent.is_dir():
        raise BackupError(f"there is no folder {target.parent}")
    unfinished = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        os.close(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        with (
            closing(sqlite3.connect(f"{source.resolve().as_uri()}?mode=ro", uri=True, timeout=30)) as here,
            closing(sqlite3.connect(unfinished, isolation_level=None)) as there,
        ):
            here.backup(there, pages=-1 if ask_first else PAGES)
            there.execute("PRAGMA journal_mode=DELETE")  # one file, nothing beside it
            found = _examined(there, target)
            if ask_first:
                there.execute(ASK_FIRST)
        _to_disk(unfinished)
        os.link(unfinished, target)
        _to_disk(target.parent)
    except FileExistsError:
        raise BackupError(f"{target} is there already; give another name (it is not overwritten)") from None
    except sqlite3.Error as error:
        raise BackupError(f"{source} cannot be copied: it is no database, or is damaged ({error})") from None
    except OSError as error:
        raise BackupError(
            f"{target} cannot be written ({error.strerror}); check the folder and the disk"
        ) from None
    finally:
        with suppress(OSError):
            unfinished.unlink()
    return found._replace(bytes=target.stat().st_size)


ASK_FIRST = "UPDATE effect SET state = 'begun' WHERE kind = 'submit' AND done_at IS NULL"
"""It may have been sent after the backup: the first thing is a look by name, as after a crash in the call."""


def _examined(connection: sqlite3.Connection, file: Path) -> Kept:
    (sound,) = connection.execute("PRAGMA integrity_check").fetchone()
    if sound != "ok":
        raise BackupError(f"{file} is damaged: {sound}; take an older backup")
    if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'job'").fetchone():
        raise BackupError(f"{file} is no database of Watchkeeper")
    form = str(connection.execute("SELECT max(version_num) FROM alembic_version").fetchone()[0])
    if not form.isdigit() or int(form) > SCHEMA_VERSION:
        raise BackupError(
            f"{file} has the form {form}, this Watchkeeper knows {SCHEMA_VERSION:04}: upgrade Watchkeeper"
        )
    if connection.execute("PRAGMA foreign_key_check").fetchone():
        raise BackupError(f"{file} holds rows without their run; take an older backup")
    runs, live = connection.execute("SELECT count(*), count(*) - count(ended_at) FROM job").fetchone()
    return Kept(file, form, runs, live, file.stat().st_size if file.exists() else 0)


def _to_disk(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
