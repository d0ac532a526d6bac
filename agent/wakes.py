"""Timer wakes by APScheduler: ONE date job at the earliest durable timer, and an interval sweep as the guarantee.

The truth is the indexed `wake_at` column; the scheduler only says "look", so it has the same size for one run and
for 100,000. Its jobs are in memory, aware, in UTC, with `misfire_grace_time=None` (the default of one second drops
late wakes in silence: STACK 3).

Never: hold a deadline of its own.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import UTC
from threading import Lock

from apscheduler.jobstores.memory import MemoryJobStore
from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.triggers.date import DateTrigger
from apscheduler.triggers.interval import IntervalTrigger

from agent import observe
from agent.ports import Ports
from agent.wave import wave
from agent.workers import Workers

log = logging.getLogger(__name__)

NEXT = "next-wake"
SWEEP = "sweep"
TIDY = "tidy"
TIDY_H = 6
"""Hours between two looks at what need not be kept any longer."""


class Wakes:
    """The resident timer of one process: starts waves and hands moved jobs to the workers."""

    def __init__(
        self, ports: Ports, *, workers: int, sweep_s: float, tidy: Callable[[], object] | None = None
    ) -> None:
        self._ports = ports
        self._sweep_s = sweep_s
        self._tidy = tidy
        self._looking = Lock()
        self._closed = False
        self._workers = Workers(ports, workers, after=self._arm)
        self._scheduler = BackgroundScheduler(
            jobstores={"default": MemoryJobStore()},
            # More than one: a look that comes while another is under way ends at once, and is nothing to warn of.
            job_defaults={"misfire_grace_time": None, "coalesce": True, "max_instances": 8},
            timezone=UTC,
        )

    def start(self) -> None:
        """Look at once (whatever was due while nobody was here), then by timer."""
        self._scheduler.start()
        self._scheduler.add_job(self.look, IntervalTrigger(seconds=self._sweep_s, timezone=UTC), id=SWEEP)
        if self._tidy is not None:
            self._scheduler.add_job(self._tidy, IntervalTrigger(hours=TIDY_H, timezone=UTC), id=TIDY)
        self.nudge()

    def close(self) -> None:
        """Stop the timers, finish the look and the turns under way.

        The scheduler is not asked to wait: it would hold its own lock, which the look under way may want. Its jobs
        go first: one that is stopped in the middle of a round no longer finds the job it runs, and dies of it.
        """
        self._closed = True
        self._scheduler.remove_all_jobs()  # returns when the round under way is over
        self._scheduler.shutdown(wait=False)
        with self._looking:
            self._workers.close()

    def nudge(self) -> None:
        """Something was put into the store: look now."""
        self._scheduler.add_job(
            self.look, DateTrigger(self._ports.clock.now(), timezone=UTC), id=NEXT, replace_existing=True
        )

    def look(self) -> None:
        """One wave, then a turn for every job that has something to do, then the next wake."""
        if not self._looking.acquire(blocking=False):
            return
        try:
            if self._closed:
                return
            with observe.during("wave"):
                moved = wave(self._ports)
            for job_id in dict.fromkeys(
                [*moved, *self._ports.store.jobs_with_effects(self._ports.clock.now())]
            ):
                self._workers.give(job_id)
        except Exception:
            log.exception("a wave failed; the next sweep looks again")
        finally:
            self._looking.release()
        self._arm()

    def _arm(self) -> None:
        """Put the one date job at the earliest timer or postponed effect."""
        if self._closed:
            return
        try:
            times = [
                at
                for at in (self._ports.store.next_wake(), self._ports.store.next_effect_at())
                if at is not None
            ]
        except Exception:
            log.exception("the next wake could not be read; the sweep looks")
            return
        if times:
            self._scheduler.add_job(
                self.look, DateTrigger(min(times), timezone=UTC), id=NEXT, replace_existing=True
            )
