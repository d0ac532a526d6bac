"""That the load benchmark measures what its table says: the rows are runs, a wave looks at those due, no line lacks.

Never: a bound on a figure of time.
"""

from __future__ import annotations

import socket
import sqlite3
from asyncio.base_events import _set_nodelay  # type: ignore[attr-defined]
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event

from agent.clock import VirtualClock
from agent.leases import free_all
from agent.peek import Peek
from agent.store import Store, Unknown
from agent.web.server import _listening
from states.events import WakeDue
from states.job import State
from tests.benchmarks import load
from tests.benchmarks.load_process import DUE_AT, carried
from tests.benchmarks.load_reads import reads
from tests.benchmarks.load_rows import Filled, fill, url_of

SIZES = load.Sizes(watched=200, past=500, idle_s=0.05, look_s=0.002, runs=1)


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Filled:
    """A small one."""
    return fill(tmp_path_factory.mktemp("load"), watched=SIZES.watched, past=SIZES.past)


def test_the_rows_are_runs_of_their_own(filled: Filled) -> None:
    store = Store(url_of(filled.folder))
    boards = store.boards(limit=10_000)
    assert len({row["id"] for row in boards}) == SIZES.watched + SIZES.past
    assert {row["state"] for row in boards if row["ended_at"] is None} == {"running"}
    assert len(store.live_ids()) == SIZES.watched
    for run, state in ((filled.one_watched, State.running), (filled.one_past, State.succeeded)):
        job = store.load(run)
        assert (job.id, job.state, job.attempt.name.startswith(run)) == (run, state, True)
        assert [row["seq"] for row in store.journal(run)] == list(range(1, job.seq + 1))
        assert all(row["id"].startswith(run) for row in store.effects_of(run))
    assert store.next_effect_at() is None
    store.close()


def test_a_cursor_leads_through_all_runs_once(filled: Filled) -> None:
    store = Store(url_of(filled.folder))
    everything = [row["id"] for row in store.boards(limit=10_000)]
    walked: list[str] = []
    while rows := store.boards(limit=90, before=walked[-1] if walked else ""):
        walked += [row["id"] for row in rows]
    assert walked == everything
    live = store.boards(live=True, limit=3)
    assert store.boards(live=True, limit=1, before=live[1]["id"]) == [live[2]]
    with pytest.raises(Unknown, match="older"):
        store.boards(before="nobody")
    store.close()


WALKS = ("job USING INDEX job_new", "job USING COVERING INDEX job_new", "job USING INDEX job_live")
WALKS_OF_FEW = ("job USING COVERING INDEX job_live", "effect USING INDEX effect_open", "3 CONSTANT ROWS")
"""Walks that end with a page of rows, and those over few rows by their nature."""


def test_nothing_that_is_asked_all_the_time_walks_through_all_runs(filled: Filled) -> None:
    store, asked = Store(url_of(filled.folder)), []
    event.listen(store.engine, "before_cursor_execute", lambda *seen: asked.append((seen[2], seen[3])))
    name = store.load(filled.one_past).attempt.name
    for call in (
        lambda: store.claim_due(DUE_AT, claim_s=1),
        lambda: store.jobs_with_effects(DUE_AT),
        lambda: free_all(store, VirtualClock(DUE_AT)),
        lambda: store.apply(filled.one_watched, WakeDue(at=DUE_AT)),
        lambda: store.boards(before=filled.one_past),
        lambda: store.boards(live=True),
        lambda: store.find(filled.one_past[:-1]) and store.find(name),
        store.next_wake,
        store.next_effect_at,
        store.live_ids,
        store.with_open_questions,
        store.mark,
    ):
        with suppress(Unknown):
            call()
    peek = Looks(filled.file)
    peek.rows(live=False), peek.rows(live=True), peek.run_ids(), peek.may_know("x"), peek.question_ids()
    assert len(asked + peek.asked) > 20
    with closing(sqlite3.connect(filled.file)) as connection:
        plans = {
            row[3].removeprefix("SCAN "): query
            for query, values in asked + peek.asked
            for row in connection.execute(f"EXPLAIN QUERY PLAN {query}", values)
            if row[3].startswith("SCAN ")
        }
    store.close()
    assert {walk: query for walk, query in plans.items() if walk not in WALKS + WALKS_OF_FEW} == {}


class Looks(Peek):
    """What it asks the file. asked: queries with their values."""

    def __init__(self, file: Path) -> None:
        super().__init__(file)
        self.asked: list[tuple[str, Any]] = []

    def _read(self, query: str, values: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        self.asked.append((query, values))
        return super()._read(query, values)


def test_a_wave_looks_at_those_that_are_due_and_at_no_others(filled: Filled) -> None:
    found = carried(filled, 100)
    assert (found.due, found.calls, found.changed) == (100, 1, 1)
    assert found.rss_most > found.rss_before > 0


def test_every_way_to_look_is_there_and_answers(filled: Filled) -> None:
    found = list(reads(filled, for_s=SIZES.look_s))
    assert len({one.what for one in found}) == len(found) > 15
    assert all(one.ms > 0 for one in found)


def test_the_page_keeps_its_text_and_takes_the_table() -> None:
    text = f"# Cost\n\nBefore.\n\n{load.MARKS[0]}\nold\n{load.MARKS[1]}\n\nAfter.\n"
    found = [
        load.Line("a wave", 2.5, "s", 60.0),
        load.Line("a start", 7.0, "s", 5.0),
        load.Line("disk", 1e4, "MB"),
    ]
    made = load.page(found, SIZES, text)
    assert made.startswith("# Cost\n\nBefore.\n\n<!-- figures")
    assert made.endswith("end of the figures -->\n\nAfter.\n")
    assert "old" not in made
    assert (
        "| a wave | 2.5 s | 60 s | yes |\n| a start | 7 s | 5 s | **no** |\n| disk | 10,000 MB |  |  |"
        in made
    )
    assert load.page(found, SIZES, made) == made
    with pytest.raises(ValueError, match="no place for the figures"):
        load.page(found, SIZES, "# Cost\n")


def test_an_answer_of_the_page_does_not_wait_for_the_one_before() -> None:
    listening = _listening("127.0.0.1", 0)
    with closing(socket.create_connection(listening.getsockname())), closing(listening):
        taken, _ = listening.accept()
        _set_nodelay(taken)
        assert taken.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        taken.close()


@pytest.mark.slow
def test_the_table_has_every_line(tmp_path: Path) -> None:
    found = list(load.lines(tmp_path, SIZES))
    assert len({line.what for line in found}) == len(found)
    about = {line.what.partition(":")[0] for line in found if ":" in line.what}
    assert {"disk", "wave", "memory", "start", "idle", "SQLite", "from a job's end to its report"} <= about
    assert all(line.value > 0 or line.unit == "%" for line in found)
    calls = [line for line in found if "calls to the cluster" in line.what]
    assert [line.value for line in calls] == [1, 1, 1]
