"""A desk to test the hands at: a store, a clock that jumps, a scripted cluster, and the service over them.

Everything but the cluster and the clock is the product itself. `run` carries every run as the resident loop does,
in one thread and without waiting.

Never: a piece of product code replaced by a mock.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from agent import leases
from agent.asked import AskedEffect
from agent.clock import VirtualClock
from agent.clusters.base import Submission
from agent.clusters.scripted import Away, JobScript, Moment, ScriptedCluster, SubmitFault, Written
from agent.library import Library
from agent.outbox import perform_next
from agent.ports import Ports
from agent.service import Service
from agent.store import Store
from agent.turn import turn
from agent.wave import wave
from states.job import Job
from states.observation import Capabilities, Phase
from states.spec import Request

START = datetime(2026, 3, 1, 8, 0, tzinfo=UTC)

STEPS = tuple((20.0 * n, f"step {10 * n}/500 loss {3 - n / 20:.3f}") for n in range(1, 31))
GOOD = JobScript(
    moments=(
        Moment(0, Phase.pending),
        Moment(30, Phase.running),
        Moment(630, Phase.succeeded, {"exit_code": 0}),
    ),
    log=STEPS,
    files=(Written("out/best.pt", "weights"),),
    record=0,
)
"""Waits for half a minute, trains for ten, ends well and leaves its output."""

ENDLESS = GOOD._replace(moments=(*GOOD.moments[:2],), record=None)
BROKEN = GOOD._replace(
    moments=(*GOOD.moments[:2], Moment(200, Phase.failed, {"exit_code": 1})), record=1, files=()
)
WAITING = GOOD._replace(moments=(Moment(0, Phase.pending),), record=None)


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


class Desk:
    """One Watchkeeper with one scripted cluster. told: ids that were announced."""

    def __init__(
        self,
        store: Store,
        folder: Path,
        *scripts: JobScript,
        faults: Mapping[int, SubmitFault] | None = None,
        away: Sequence[Away] = (),
        cluster_class: type[ScriptedCluster] = ScriptedCluster,
        checks: Mapping[str, Any] | None = None,
        redact: Callable[[str], str] = str,
    ) -> None:
        self.store = store
        self.clock = VirtualClock(START)
        self.workspace = folder / "workspace"
        self.workspace.mkdir(parents=True, exist_ok=True)
        self._scripts = scripts or (GOOD,)
        self.cluster = cluster_class(
            "lab",
            clock=self.clock,
            casting=self._cast,
            capabilities=Capabilities(submit_timeout_s=30.0, visible_within_s=5.0, wrapper=True),
            faults=faults,
            away=away,
        )
        self.told: list[str] = []
        self.library = Library(store)
        self.ports = Ports(
            store=store,
            clock=self.clock,
            clusters={"lab": self.cluster},
            redact=redact,
            library=self.library,
            checks=checks or {},
            delegate_child=lambda job, child, asked: self.service.delegate_child(job, child, asked),
            announce=self.told.append,
        )
        self.service = Service(self.ports, library=self.library, owner="kim", default_cluster="lab")

    def use_clock(self, clock: Any) -> None:
        """Another clock, everywhere."""
        self.clock = self.cluster._clock = clock
        self.ports = self.service.ports = replace(self.ports, clock=clock)

    def _cast(self, submission: Submission, created: int) -> JobScript:
        return self._scripts[min(created, len(self._scripts) - 1)]

    def request(self, **changes: Any) -> Request:
        return Request(**{"command": ("python", "train.py"), "name": "digits", **changes})

    def delegate(self, request_id: str = "", **changes: Any) -> str:
        """The id of a new run."""
        asked = self.request(**changes)
        return self.service.delegate(asked, workspace=str(self.workspace), request_id=request_id).job.id

    def job(self, job_id: str) -> Job:
        return self.store.load(job_id)

    def settle(self) -> int:
        """Turns for every run that has something to do now. Returns the effects performed."""
        done = 0
        while job_ids := self.store.jobs_with_effects(self.clock.now()):
            done += sum(turn(job_id, self.ports) for job_id in job_ids)
        return done

    def perform_up_to(self, job_id: str, kind: str) -> AskedEffect:
        """Perform the run's effects one by one; returns the first of this kind, which is not performed."""
        lease = leases.claim(self.store, self.clock, job_id)
        assert lease is not None
        while (asked := self.store.next_effect(job_id, self.clock.now())) is not None:
            if asked.effect.kind == kind:
                leases.release(self.store, lease)
                return asked
            perform_next(self.ports, asked, lease)
        raise AssertionError(f"{job_id} asks for no {kind}")

    def look(self) -> list[str]:
        """One wave and what follows from it."""
        self.cluster.catch_up()
        moved = wave(self.ports)
        self.settle()
        return moved

    def sleep(self) -> bool:
        """Jump to the next timer or postponed effect. False: there is none."""
        times = [time for time in (self.store.next_wake(), self.store.next_effect_at()) if time is not None]
        if times:
            self.clock.jump_to(min(times))
        return bool(times)

    def run(self, until: Callable[[], bool] = lambda: False, *, waves: int = 500) -> None:
        """Carry everything until nothing is left, or `until` holds."""
        self.settle()
        for _ in range(waves):
            if until() or not self.sleep():
                return
            self.look()
        raise AssertionError(f"not over after {waves} waves: {self.store.boards(live=True)}")

    def run_to(self, job_id: str, state: str) -> Job:
        """Carry everything until the run is in a state."""
        self.run(lambda: self.job(job_id).state == state)
        job = self.job(job_id)
        assert job.state == state, (job.state, job.outcome)
        return job

    def kinds(self, job_id: str) -> list[str]:
        """The journal as kinds of events."""
        return [row["kind"] for row in self.store.journal(job_id)]
