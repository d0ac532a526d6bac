"""The program itself over a large database: `wk` from start to end, and a resident agent with nothing due.

Never: a command that is not a process of its own.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from agent.clock import SystemClock
from agent.resident import Resident
from agent.tables import microseconds
from tests.benchmarks.load_process import memory_mib
from tests.benchmarks.load_rows import Filled, set_timers, url_of

CLOCK = SystemClock()
ROOT = Path(__file__).parents[2]
READY_S_MAX = 120.0
ROUNDS = 3
SETTLE_S_MAX, CALM_S = 20, 0.01
HOUR_US = 3_600_000_000


class Idle(NamedTuple):
    """A resident agent with nothing due. ready_s: from its start until it carries runs."""

    ready_s: float
    rss_mib: float
    pss_mib: float
    core_share: float


def environment(filled: Filled) -> dict[str, str]:
    """A home of its own, and that database."""
    home = filled.folder / "home"
    (home / "config").mkdir(mode=0o700, parents=True, exist_ok=True)
    return {
        "PATH": os.environ["PATH"], "HOME": str(filled.folder), "LC_ALL": "C.UTF-8", "LOGNAME": "kim",
        "WATCHKEEPER_HOME": str(home), "WATCHKEEPER_DATABASE_URL": url_of(filled.folder), "PYTHONPATH": str(ROOT),
    }  # fmt: skip


def command_s(filled: Filled, *words: str) -> float:
    """Seconds of one `wk` command, the best of a few."""
    best = float("inf")
    for _ in range(ROUNDS):
        began = time.perf_counter()
        subprocess.run(
            [sys.executable, "-m", "agent", *words],
            env=environment(filled),
            cwd=filled.folder,
            check=True,
            capture_output=True,
        )
        best = min(best, time.perf_counter() - began)
    return best


def idle(filled: Filled, *words: str, for_s: float) -> Idle:
    """`wk serve` with these words, its timers an hour away: what it has and burns over `for_s` seconds."""
    set_timers(filled.folder, due=0, at_us=0, others_us=microseconds(CLOCK.now()) + HOUR_US)
    with _served(environment(filled), words) as (pid, ready_s):
        _settled(pid)
        before, began = _cpu_s(pid), time.perf_counter()
        CLOCK.sleep(for_s)
        share = (_cpu_s(pid) - before) / (time.perf_counter() - began)
        rss_mib, _, pss_mib = memory_mib(pid)
    return Idle(ready_s, rss_mib, pss_mib, share)


@contextmanager
def _served(env: Mapping[str, str], words: tuple[str, ...]) -> Iterator[tuple[int, float]]:
    began = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "agent", "serve", *words],
        env=dict(env),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        resident = Resident(Path(env["WATCHKEEPER_HOME"]) / "state", CLOCK)
        while not ((present := resident.holder()) and present.ready):
            assert process.poll() is None, "wk serve ended"
            assert time.perf_counter() - began < READY_S_MAX, "wk serve does not get ready"
            CLOCK.sleep(0.01)
        yield process.pid, time.perf_counter() - began
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(READY_S_MAX)


def _settled(pid: int) -> None:
    """What a start leaves to do is done: a second in which it burnt next to nothing."""
    for _ in range(SETTLE_S_MAX):
        before = _cpu_s(pid)
        CLOCK.sleep(1.0)
        if _cpu_s(pid) - before < CALM_S:
            return


def _cpu_s(pid: int) -> float:
    """CPU seconds of all its threads, to the nanosecond."""
    threads = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((thread / "schedstat").read_text(encoding="ascii").split()[0]) for thread in threads) / 1e9
