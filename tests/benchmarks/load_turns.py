"""What news costs: effects performed and committed on each database, and the way from a job's end to its report.

Never: a database in memory.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from agent.store import Store
from states.job import TERMINAL
from tests.agent import postgres
from tests.agent.fakes import BROKEN, GOOD, Desk
from tests.benchmarks.load_rows import url_of


class Turns(NamedTuple):
    """Of whole runs one after the other, in one thread. cpu_ms: of this process, a turn's effect."""

    database: str
    effects_a_second: float
    runs_a_second: float
    cpu_ms: float


class Latency(NamedTuple):
    """From a job's end on its cluster to the run's report. looks: of the run, the one that saw it included."""

    looks: int
    virtual_s: float
    cpu_ms: float


def turns(runs: int, postgres_url: str = "") -> Iterator[Turns]:
    """SQLite with full syncs, and PostgreSQL where a URL is given or its programs are on this machine."""
    with tempfile.TemporaryDirectory() as folder:
        yield _turns("SQLite", url_of(Path(folder)), Path(folder), runs)
        if postgres_url:
            yield _turns("PostgreSQL", postgres_url, Path(folder), runs)
        elif not postgres.missing():
            with postgres.server() as url:
                yield _turns("PostgreSQL", url, Path(folder), runs)


def _turns(database: str, url: str, folder: Path, runs: int) -> Turns:
    store = Store(url)
    store.create_schema()
    desk = Desk(store, folder, GOOD)
    desk.delegate()
    desk.run()
    done, began, cpu_s = 0, time.perf_counter(), time.process_time()
    for _ in range(runs):
        job_id = desk.delegate()
        desk.run()
        done += sum(row["done_at"] is not None for row in store.effects_of(job_id))
    wall_s, cpu_s = time.perf_counter() - began, time.process_time() - cpu_s
    store.close()
    return Turns(database, done / wall_s, runs / wall_s, 1000 * cpu_s / done)


def latency() -> Latency:
    """Of a run that fails while it is watched. The cluster's own lag is none; a pause is the policy's 60 s."""
    with tempfile.TemporaryDirectory() as name:
        store = Store(url_of(Path(name)))
        store.create_schema()
        desk = Desk(store, Path(name), BROKEN)
        run = desk.delegate(max_restarts=0)
        desk.run_to(run, "running")
        ended_at = desk.job(run).attempt.intent_at.timestamp() + BROKEN.moments[-1].at_s
        looks, cpu_s = 0, 0.0
        while desk.job(run).state not in TERMINAL:
            desk.sleep()
            began = time.process_time()
            desk.look()
            if desk.clock.now().timestamp() >= ended_at:
                looks, cpu_s = looks + 1, cpu_s + time.process_time() - began
        told = [row["at"] for row in store.messages(run) if row["at"].timestamp() >= ended_at]
        store.close()
    return Latency(looks, told[-1].timestamp() - ended_at, 1000 * cpu_s)
