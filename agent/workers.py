"""The bounded thread pool that calls `turn`; one job is never in two threads of a process; drains on close.

Never: a queue that outlives the process (what is to be done is in the store).
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Lock

from agent.ports import Ports
from agent.turn import turn

log = logging.getLogger(__name__)

BROKEN_S, BROKEN_S_MAX = 5.0, 600.0
"""Pause after a turn that broke, and the longest after one that breaks again and again."""


class Workers:
    """`count` threads. after: called when a job's turn has ended (timers may have moved) and none waits for a thread:
    the end of those is one, too, and with thousands that wait each call would look through them all."""

    def __init__(self, ports: Ports, count: int, *, after: Callable[[], None] = lambda: None) -> None:
        self._ports = ports
        self._pool = ThreadPoolExecutor(max_workers=count, thread_name_prefix="turn")
        self._lock = Lock()
        self._busy: dict[str, bool] = {}
        self._broken: dict[str, int] = {}
        """How often in a row the turn of a run failed."""
        self._after = after
        self._count = count
        self._closed = False

    def give(self, job_id: str) -> None:
        """Let a thread take the job's turn; one that is under way is followed by another."""
        with self._lock:
            if self._closed:
                return
            if job_id in self._busy:
                self._busy[job_id] = True
                return
            self._busy[job_id] = False
            self._pool.submit(self._run, job_id)

    def close(self) -> None:
        """Finish the turns under way, take no more. What is left is in the store."""
        with self._lock:
            self._closed = True
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _run(self, job_id: str) -> None:
        while True:
            self._turn(job_id)
            with self._lock:
                again = self._busy.pop(job_id, False) and not self._closed
                if again:
                    self._busy[job_id] = False
                others_wait = len(self._busy) >= self._count
            if not again:
                break
        if not others_wait:
            self._after()

    def _turn(self, job_id: str) -> None:
        """One turn. One that breaks is taken again, each time later: nobody else's turns wait behind it."""
        try:
            turn(job_id, self._ports)
        except Exception:
            fails = self._broken[job_id] = self._broken.get(job_id, 0) + 1
            pause_s = min(BROKEN_S * 2.0 ** min(fails - 1, 10), BROKEN_S_MAX)
            log.exception("the turn of %s failed; it is taken again in %g s", job_id, pause_s)
            try:
                self._ports.store.postpone(job_id, self._ports.clock.now() + timedelta(seconds=pause_s))
            except Exception:
                log.exception("%s could not be put off; it is taken again by the sweep", job_id)
        else:
            self._broken.pop(job_id, None)
