"""What a watched job costs in memory: the truth is in the database, so a process holds a wave's columns and no more.

Never: the cluster's own memory counted as the agent's.
"""

from __future__ import annotations

import tempfile
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

from agent.wave import wave
from states.job import Job
from tests.benchmarks.measuring import Figure
from tests.benchmarks.turns import watched
from tests.states import builders as b

JOBS = 2000


def figures() -> Iterator[Figure]:
    """KiB a job: while a wave looks at all of them, and kept between two waves."""
    with tempfile.TemporaryDirectory() as folder:
        desk = watched(Path(folder), JOBS)
        desk.clock.step(121)
        wave(desk.ports)
        tracemalloc.start()
        desk.clock.step(121)
        wave(desk.ports)
        kept, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        desk.store.close()
    yield Figure(f"memory: a wave over {JOBS:,} watched jobs, at most", most / JOBS / 1024, "KiB a job")
    yield Figure("memory: kept until the next wave", kept / JOBS / 1024, "KiB a job")
    yield Figure("memory: one loaded job that runs", _loaded(b.in_running()), "KiB")


def _loaded(job: Job) -> float:
    text = job.model_dump_json()
    tracemalloc.start()
    held = [Job.model_validate_json(text) for _ in range(50)]
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return kept / len(held) / 1024
