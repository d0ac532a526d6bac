"""What the loop costs over a database file with full syncs: events, effects, whole runs, and waves of quiet jobs.

Never: a database in memory where the figure is about a disk.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any

from agent.clusters.base import Ref
from agent.clusters.scripted import JobScript, ScriptedCluster
from agent.database import JOBS
from agent.store import Store
from agent.wave import wave
from states.events import Answered
from states.observation import Observation, Phase
from tests.agent.fakes import GOOD, WAITING, Desk
from tests.benchmarks.measuring import Figure, seconds

WAVES = (1, 100, 1000, 10_000)


def figures() -> Iterator[Figure]:
    """Wall-clock figures; they are mostly the disk's."""
    with tempfile.TemporaryDirectory() as folder:
        yield from _runs(Path(folder))
    for jobs in WAVES:
        with tempfile.TemporaryDirectory() as folder:
            yield _quiet_wave(Path(folder), jobs)


def desk_in(folder: Path, *scripts: JobScript, **options: Any) -> Desk:
    """A desk over a database file with full syncs."""
    store = Store(f"sqlite:///{folder / 'watchkeeper.db'}")
    store.create_schema()
    return Desk(store, folder, *scripts, **options)


def _runs(folder: Path) -> Iterator[Figure]:
    desk = desk_in(folder, GOOD)
    run, numbers = desk.delegate(), count()
    desk.settle()

    def event() -> None:
        desk.store.apply(run, Answered(at=desk.clock.now(), key=f"k{next(numbers)}", number=1, reply="x"))

    yield Figure("SQLite: an event in its transaction", seconds(event) * 1000, "ms")
    desk.run()
    done, began = 0, time.perf_counter()
    for _ in range(10):
        job_id = desk.delegate()
        desk.run()
        done += sum(row["done_at"] is not None for row in desk.store.effects_of(job_id))
    spent = time.perf_counter() - began
    yield Figure("SQLite: effects performed and committed", done / spent, "1/s")
    yield Figure("SQLite: whole runs, from delegation to wrap-up", 10 / spent, "1/s")
    desk.store.close()


def _quiet_wave(folder: Path, jobs: int) -> Figure:
    desk = watched(folder, jobs)

    def quiet() -> None:
        desk.clock.step(121)
        assert wave(desk.ports) == []

    spent = seconds(quiet, for_s=0.5)
    desk.store.close()
    return Figure(f"SQLite: a wave of {jobs:,} quiet jobs", spent * 1000, "ms")


class Calm(ScriptedCluster):
    """Every job waits, and one answer does for all: the figure is the agent's, not the cluster's."""

    def observe(self, refs: Sequence[Ref]) -> Mapping[str, Observation]:
        seen = Observation(phase=Phase.pending, taken_at=self._clock.now(), native="PENDING")
        return dict.fromkeys((ref.name for ref in refs), seen)


def watched(folder: Path, jobs: int) -> Desk:
    """So many jobs in the queue, each looked at once. They are copies of one that went there by itself."""
    desk = desk_in(folder, WAITING, cluster_class=Calm)
    first = desk.delegate(policy={"queued_ask_s": 1e9})
    desk.settle()
    desk.clock.step(20)
    desk.look()
    name = desk.job(first).attempt.name
    with desk.store.write() as connection:
        row = dict(connection.execute(JOBS.select()).mappings().one())
        others = [
            {**row, "id": f"{first}-{number}", "request_id": None, "attempt_name": f"{name}-{number}"}
            for number in range(1, jobs)
        ]
        if others:
            connection.execute(JOBS.insert(), others)
    return desk
