"""The whole product over one real cluster: what `agent/app.py` wires, with numbers that let a run end in seconds.

    with Delegator(cluster, tmp_path, cluster_name="slurm") as delegator:
        delegator.write("train.sh", "#!/bin/sh\\n...")
        run = delegator.delegate(command=("sh", "train.sh"))
        job = delegator.until(run, ended, within_s=60)

Never: a part that stands in for product code: store, service, checks, timers, workers and clock are the real ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from threading import Condition
from types import TracebackType
from typing import Any, Self

import pytest

from agent.checks import every_check
from agent.clock import SystemClock
from agent.clusters.base import Cluster
from agent.clusters.local_time import monotonic_s
from agent.database import Record
from agent.library import Library
from agent.ports import Ports
from agent.redaction import Redactor
from agent.secrets import Secrets
from agent.service import Decision, Service
from agent.store import Store
from agent.wakes import Wakes
from states.job import Job
from states.spec import Request

OWNER = "someone"
LOOK_S = 0.1
"""Longest pause between two looks of `until`; a change that is announced wakes it sooner."""

QUICK: Mapping[str, float] = {
    "poll_s": 0.5,
    "queued_poll_s_first": 0.5,
    "queued_poll_s_max": 1.0,
    "look_s_first": 0.5,
    "look_s_min": 0.5,
    "look_s_max": 1.0,
    "second_look_s": 2.0,
    "unshown_s": 10.0,
    "hung_s": 4.0,
    "hung_cadences": 3.0,
    "stop_retry_s": 2.0,
    "collect_retry_s": 2.0,
    "settle_s": 2.0,
    "look_up_s": 0.5,
    "answer_s": 20.0,
    "answer_s_queue": 0.5,
}
"""Numbers of `states.policy` for every run here (seconds); a request's own `policy` goes over them.

answer_s_queue: the capacity question is answered by its default, which is to queue.
"""


class Delegator:
    """One Watchkeeper with one cluster, carrying runs from `__enter__` to `__exit__`.

    cluster: a driver over a real cluster. workspace: the folder that every run reads and writes.
    """

    def __init__(self, cluster: Cluster, tmp_path: Path, *, cluster_name: str) -> None:
        self.workspace = tmp_path / "workspace"
        self.workspace.mkdir(exist_ok=True)
        self.store = Store(f"sqlite:///{tmp_path / 'watchkeeper.db'}", grid_s=0.1)
        self.store.create_schema()
        self._changed = Condition()
        secrets = Secrets(tmp_path / "keys", env={}, keyring="off")
        library = Library(self.store)
        ports = Ports(
            store=self.store,
            clock=SystemClock(),
            clusters={cluster_name: cluster},
            redact=Redactor(secrets.values()).text,
            library=library,
            checks=every_check(secrets),
            announce=self._heard,
        )
        self.service = Service(
            ports,
            library=library,
            owner=OWNER,
            default_cluster=cluster_name,
            policy_layers=[("the tests", QUICK)],
        )
        carrying = replace(ports, delegate_child=self.service.delegate_child)
        self._wakes = Wakes(carrying, workers=2, sweep_s=1.0)

    def __enter__(self) -> Self:
        self._wakes.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._wakes.close()
        self.store.close()

    # --- what a person does --------------------------------------------------------------------------------

    def write(self, name: str, text: str) -> Path:
        """Put a file (a script, say) into the workspace."""
        file = self.workspace / name
        file.write_text(text, encoding="utf-8")
        return file

    def delegate(self, **fields: Any) -> str:
        """Delegate a run; fields: those of `states.spec.Request`. Returns the run's id."""
        told = self.service.delegate(Request(**fields), workspace=str(self.workspace))
        self._wakes.nudge()
        return told.job.id

    def job(self, job_id: str) -> Job:
        """The run as it is stored now."""
        return self.service.job(job_id)

    def why(self, job_id: str) -> list[Decision]:
        """Every decision of the run, oldest first, as `wk why` tells them."""
        return self.service.why(job_id)

    def messages(self, job_id: str) -> list[Record]:
        """What the person was told, oldest first: rows with kind, stage and text."""
        return self.store.messages(job_id)

    def said(self, job_id: str, stage: str) -> str:
        """The texts of one stage of the reports ("started", "finished"), oldest first, as one text."""
        return "\n\n".join(row["text"] for row in self.messages(job_id) if row["stage"] == stage)

    # --- waiting -------------------------------------------------------------------------------------------

    def until(self, job_id: str, predicate: Callable[[Job], object], within_s: float = 30.0) -> Job:
        """The run as it was when the predicate first held.

        Fails when the time is over, or when the run has ended without it; says how the run came there.
        """
        over_at = monotonic_s() + within_s
        while not predicate(job := self.job(job_id)):
            if job.is_terminal:
                pytest.fail(f"it ended as {job.state} ({job.outcome}) first\n{self.story(job_id)}")
            if monotonic_s() > over_at:
                pytest.fail(f"not within {within_s:g} s; it is {job.state}\n{self.story(job_id)}")
            with self._changed:
                self._changed.wait(LOOK_S)
        return job

    def story(self, job_id: str) -> str:
        """Every decision and every message, for a test that fails."""
        decisions = [
            f"{one.seq:3} {one.at:%H:%M:%S.%f} {one.event} {one.source}>{one.to} {one.rule} {one.action}: {one.said}"
            for one in self.why(job_id)
        ]
        told = [f"[{row['stage']}] {row['text']}" for row in self.messages(job_id)]
        return "\n".join([*decisions, *told])

    def _heard(self, job_id: str) -> None:
        with self._changed:
            self._changed.notify_all()


def ended(job: Job) -> bool:
    """For `until`: the run is over, however it ended."""
    return job.is_terminal
