"""A replica that sleeps within a submit, between its last look at the lease and the call: no rule can keep it from
sending when it wakes (RELIABILITY 2), so what it did must be noticed, whatever became of the run meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from agent.clusters.base import Submission, Submitted
from agent.clusters.scripted import JobScript, ScriptedCluster
from agent.store import Store
from agent.turn import turn
from tests.agent.fakes import ENDLESS, GOOD, WAITING, Desk


class Sleepy(ScriptedCluster):
    """asleep: what the others do while the first submit call of a run has not left yet."""

    asleep: Callable[[], None] | None = None

    def submit(self, submission: Submission) -> Submitted:
        meanwhile, self.asleep = self.asleep, None
        if meanwhile is not None:
            meanwhile()
        return super().submit(submission)


def asleep(
    store: Store, folder: Path, scripts: tuple[JobScript, ...], until: Callable[[Desk, str], None]
) -> tuple[Desk, str]:
    """A run whose first submit leaves only after the others carried it `until` then."""
    desk = Desk(store, folder, *scripts, cluster_class=Sleepy)
    run = desk.delegate()
    assert isinstance(desk.cluster, Sleepy)
    desk.perform_up_to(run, "submit")
    desk.cluster.asleep = lambda: until(desk, run)
    turn(run, desk.ports)
    return desk, run


def past_the_lease(desk: Desk, run: str) -> None:
    desk.clock.step(300)
    desk.settle()


def until_it(state: str) -> Callable[[Desk, str], None]:
    def wait(desk: Desk, run: str) -> None:
        desk.clock.step(300)
        desk.run_to(run, state)
        desk.settle()

    return wait


@pytest.fixture
def store(shared: Store) -> Store:
    return shared


def test_while_it_is_still_sought_the_late_answer_is_the_answer(store: Store, tmp_path: Path) -> None:
    desk, run = asleep(store, tmp_path, (ENDLESS,), past_the_lease)
    desk.run_to(run, "running")
    assert len(desk.cluster.submissions) == 1
    assert desk.job(run).attempt.cluster_job_id == desk.cluster.jobs[0].id


def test_beside_one_that_runs_it_is_stopped_at_the_next_look(store: Store, tmp_path: Path) -> None:
    desk, run = asleep(store, tmp_path, (ENDLESS, WAITING), until_it("running"))
    first, late = desk.cluster.jobs
    desk.clock.step(120)
    desk.look()
    assert (first.stops, late.stops) == (0, 1)
    assert desk.job(run).attempt.cluster_job_id == first.id
    assert [m["stage"] for m in store.messages(run)].count("twin") == 1


def test_after_the_run_has_ended_it_is_stopped_at_once(store: Store, tmp_path: Path) -> None:
    desk, run = asleep(store, tmp_path, (GOOD, ENDLESS), until_it("succeeded"))
    first, late = desk.cluster.jobs
    desk.settle()
    assert (first.stops, late.stops) == (0, 1)
    assert desk.job(run).state == "succeeded"
    (told,) = (message for message in store.messages(run) if message["stage"] == "twin")
    assert told["must_not_miss"]
    assert late.id in told["text"]
