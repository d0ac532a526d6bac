"""A backup is whole while others write, overwrites nothing, and restored it leads to no second submit."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from agent.backup import BackupError, backup, examined, restore
from agent.store import Store
from states.events import StopRequested
from tests.agent.fakes import ENDLESS, Desk, at
from tests.agent.test_store import put


def store_at(file: Path) -> Store:
    store = Store(f"sqlite:///{file}")
    store.create_schema()
    return store


def test_a_backup_is_whole_while_others_write(tmp_path: Path) -> None:
    store = store_at(tmp_path / "w.db")
    for number in range(30):
        put(store, f"digits-{number:02}")
    over = threading.Event()

    def write() -> None:
        number = 0
        while not over.is_set():
            number += 1
            store.apply(f"digits-{number % 30:02}", StopRequested(at=at(number), key=f"k{number}", by="kim"))

    writer = threading.Thread(target=write)
    writer.start()
    try:
        copies = [backup(store.url, tmp_path / f"copy-{n}.db") for n in range(4)]
    finally:
        over.set()
        writer.join()
    assert [(kept.runs, kept.form) for kept in copies] == [(30, copies[0].form)] * 4
    for kept in copies:
        assert examined(kept.file).runs == 30
        assert kept.file.stat().st_mode & 0o077 == 0
    assert sorted(path.name for path in tmp_path.glob("copy*")) == [f"copy-{n}.db" for n in range(4)]
    store.close()


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    store = store_at(tmp_path / "w.db")
    taken = tmp_path / "copy.db"
    taken.write_text("mine")
    with pytest.raises(BackupError, match="there already"):
        backup(store.url, taken)
    assert taken.read_text() == "mine"
    backup(store.url, tmp_path / "good.db")
    with pytest.raises(BackupError, match="move it away"):
        restore(store.url, tmp_path / "good.db")
    store.close()


def test_a_restored_run_goes_on_where_the_backup_was(tmp_path: Path) -> None:
    store = store_at(tmp_path / "w.db")
    put(store)
    backup(store.url, tmp_path / "copy.db")
    store.apply("digits-k3f9", StopRequested(at=at(5), by="kim"))
    store.close()
    kept = restore(f"sqlite:///{tmp_path / 'again.db'}", tmp_path / "copy.db")
    again = store_at(tmp_path / "again.db")
    assert (kept.runs, kept.live) == (1, 1)
    assert [row["kind"] for row in again.journal("digits-k3f9")] == ["delegated"]
    again.close()


def test_a_submit_that_was_made_after_the_backup_is_found_and_not_made_again(tmp_path: Path) -> None:
    first = store_at(tmp_path / "w.db")
    desk = Desk(first, tmp_path, ENDLESS)
    run = desk.delegate()
    desk.perform_up_to(run, "submit")
    backup(first.url, tmp_path / "copy.db")
    desk.run_to(run, "running")
    first.close()
    restore(f"sqlite:///{tmp_path / 'again.db'}", tmp_path / "copy.db")
    again = store_at(tmp_path / "again.db")
    later = Desk(again, tmp_path, ENDLESS)
    later.cluster = desk.cluster
    later.use_clock(desk.clock)
    later.ports = later.service.ports = type(later.ports)(
        **{**later.ports.__dict__, "clusters": {"lab": desk.cluster}}
    )
    later.run_to(run, "running")
    assert len(desk.cluster.submissions) == 1
    assert again.load(run).attempt.cluster_job_id == desk.cluster.jobs[0].id
    again.close()


def damaged(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[4096:12288] = b"\xff" * 8192
    file.write_bytes(content)


def newer(file: Path) -> None:
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")


def not_ours(file: Path) -> None:
    file.unlink()
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("CREATE TABLE recipes (id)")


def no_database(file: Path) -> None:
    file.write_text("a letter to my aunt")


@pytest.mark.parametrize(
    ("spoil", "says"),
    [(damaged, "damaged"), (newer, "upgrade"), (not_ours, "no database of"), (no_database, "no database")],
)
def test_a_spoilt_backup_is_not_put_in_place(
    tmp_path: Path, spoil: Callable[[Path], None], says: str
) -> None:
    store = store_at(tmp_path / "w.db")
    put(store)
    backup(store.url, tmp_path / "copy.db")
    store.close()
    spoil(tmp_path / "copy.db")
    with pytest.raises(BackupError, match=says):
        restore(f"sqlite:///{tmp_path / 'again.db'}", tmp_path / "copy.db")
    assert not (tmp_path / "again.db").exists()
    assert list(tmp_path.glob(".again*")) == []


def test_another_database_has_its_own_tools(tmp_path: Path) -> None:
    with pytest.raises(BackupError, match="pg_dump"):
        backup("postgresql://watch@db/lab", tmp_path / "copy.db")
    with pytest.raises(BackupError, match="nothing to back up"):
        backup(f"sqlite:///{tmp_path / 'none.db'}", tmp_path / "copy.db")
