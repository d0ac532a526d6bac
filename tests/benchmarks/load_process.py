"""One process that carries the runs of a database: what its start, its waves and its memory cost.

`python -m tests.benchmarks.load_process FOLDER SEEN DUE`: a child of the load benchmark, since memory is a process's.
It prints one JSON object. Its cluster says the same of every job at once, so that the figures are the agent's.

Never: a figure in which the caller's memory counts.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

from agent.clock import VirtualClock
from agent.clusters.base import Ref
from agent.leases import free_all
from agent.ports import Ports
from agent.store import Store
from agent.tables import microseconds
from agent.wave import wave
from states.observation import Observation
from tests.agent.fakes import START
from tests.benchmarks.load_rows import Filled, set_timers, url_of

DUE_AT = START + timedelta(days=1)
CADENCE_S = 60.0
WAVES = 3
CHANGED_EVERY = 100


class Carried(NamedTuple):
    """What it cost. due: runs in a wave. start_s: from nothing to the first status call; take_over_s: of that, until
    what a killed process held is free. quiet_*: of a wave that finds nothing new, the best of a few; written: to the
    disk. changed: events of a wave in which one run in a hundred has news. calls: to the cluster, a wave.
    rss_*, pss_*: MiB before the first wave, at most, and after all (PSS: its share of what is shared)."""

    due: int
    start_s: float
    start_cpu_s: float
    take_over_s: float
    quiet_cpu_s: float
    quiet_wall_s: float
    quiet_written_mb: float
    changed: int
    changed_cpu_s: float
    calls: int
    rss_before: float
    rss_most: float
    rss_after: float
    pss_after: float


def carried(filled: Filled, due: int) -> Carried:
    """In a process of its own, with so many runs due. With all of them it is the start after a kill, a minute or more
    later."""
    all_of_them = due == filled.watched
    set_timers(filled.folder, due=due, at_us=microseconds(DUE_AT))
    seen = filled.seen.model_dump_json()
    words = [sys.executable, "-m", __name__, str(filled.folder), seen, str(due)]
    words += ["after-a-kill"] if all_of_them else []
    told = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True, cwd=Path(__file__).parents[2])
    return Carried(**json.loads(told.stdout))


class Same:
    """A cluster on which nothing happens, or the same to every so many-th job."""

    def __init__(self, seen: Observation, clock: VirtualClock) -> None:
        self._seen, self._clock = seen, clock
        self.changed_every = 0
        self.calls = 0
        self.asked_at = self.asked_cpu_s = 0.0

    def observe(self, refs: Sequence[Ref]) -> Mapping[str, Observation]:
        """One answer for all."""
        self.calls += 1
        if self.calls == 1:
            self.asked_at, self.asked_cpu_s = time.perf_counter(), time.process_time()
        same = self._seen.model_copy(update={"taken_at": self._clock.now()})
        told = dict.fromkeys((ref.name for ref in refs), same)
        if self.changed_every:
            other = same.model_copy(update={"reason": f"Moved{self.calls}"})
            told |= dict.fromkeys(list(told)[:: self.changed_every], other)
        return told


def carry(folder: Path, seen: Observation, due: int, *, after_a_kill: bool) -> Carried:
    """Start (as the first process after a kill does), then look, minute after minute."""
    clock = VirtualClock(DUE_AT)
    cluster: Any = Same(seen, clock)
    rss_before, _, _ = memory_mib()
    began, began_cpu_s = time.perf_counter(), time.process_time()
    store = Store(url_of(folder))
    store.create_schema()
    freeing = time.perf_counter()
    if after_a_kill:
        free_all(store, clock)
    freed = time.perf_counter()
    ports = Ports(store=store, clock=clock, clusters={"lab": cluster})
    wave(ports)
    quiet = [_wave(ports, clock) for _ in range(WAVES)]
    calls = cluster.calls // (WAVES + 1)
    cluster.changed_every = CHANGED_EVERY
    clock.step(CADENCE_S)
    newest, before = int(store.mark()), time.process_time()
    wave(ports)
    changed_cpu_s, changed = time.process_time() - before, int(store.mark()) - newest
    rss_after, rss_most, pss_after = memory_mib()
    store.close()
    cpu_s, wall_s, written_mb = (min(one) for one in zip(*quiet, strict=True))
    return Carried(
        due, cluster.asked_at - began, cluster.asked_cpu_s - began_cpu_s, freed - freeing, cpu_s, wall_s, written_mb,
        changed, changed_cpu_s, calls, rss_before, rss_most, rss_after, pss_after,
    )  # fmt: skip


def _wave(ports: Ports, clock: VirtualClock) -> tuple[float, float, float]:
    clock.step(CADENCE_S)
    cpu_s, wall_s, written_mb = time.process_time(), time.perf_counter(), _written_mb()
    assert wave(ports) == []
    return time.process_time() - cpu_s, time.perf_counter() - wall_s, _written_mb() - written_mb


def _written_mb() -> float:
    """What this process has sent to a disk."""
    lines = Path("/proc/self/io").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("write_bytes")) / 1e6


def memory_mib(pid: int | str = "self") -> tuple[float, float, float]:
    """Of a process: resident now, resident at most, and its share of what it shares (PSS)."""
    files = [Path(f"/proc/{pid}/{name}").read_text(encoding="ascii") for name in ("status", "smaps_rollup")]
    lines = (line.partition(":") for text in files for line in text.splitlines())
    kib = {name: int(rest.split()[0]) for name, _, rest in lines if name in ("VmRSS", "VmHWM", "Pss")}
    return kib["VmRSS"] / 1024, kib["VmHWM"] / 1024, kib["Pss"] / 1024


if __name__ == "__main__":
    where, said, count, *killed = sys.argv[1:]
    seen_now = Observation.model_validate_json(said)
    print(json.dumps(carry(Path(where), seen_now, int(count), after_a_kill=bool(killed))._asdict()))
