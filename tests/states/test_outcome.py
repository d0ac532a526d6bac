"""How a run ended: by positive evidence only, and another try only for what was not its own fault."""

from __future__ import annotations

import pytest

from states.job import Collected, Failure, Job, State, StopOrder
from states.observation import Observation, Phase
from states.outcome import (
    came_again_without_progress,
    failure_cause,
    failure_now,
    outcome_of,
    why_no_further_try,
    worth_another_try,
)
from states.reading import Diagnosis, Track
from tests.states import builders as b


def ended(phase: Phase, *, wrapper: int | None = None, missing: tuple[str, ...] = (), **seen: object) -> Job:
    observation = Observation.model_validate({"phase": phase, "taken_at": b.after(90), **seen})
    return b.in_running().but(
        end=observation, collected=Collected(exit_code=wrapper, missing=missing, looked=True)
    )


@pytest.mark.parametrize(
    ("job", "state"),
    [
        (ended(Phase.succeeded, exit_code=0), State.succeeded),
        (ended(Phase.succeeded, exit_code=0, wrapper=0), State.succeeded),
        (ended(Phase.succeeded, exit_code=0, missing=("best.pt",)), State.failed),
        (ended(Phase.succeeded, wrapper=1), State.failed),
        (ended(Phase.failed, exit_code=1), State.failed),
        (ended(Phase.stopped), State.stopped),
        (ended(Phase.preempted), State.failed),
        (ended(Phase.lost), State.failed),
        (ended(Phase.gone), State.unknown),
        (ended(Phase.gone, wrapper=0), State.succeeded),
        (ended(Phase.gone, wrapper=3), State.failed),
    ],
)
def test_the_strongest_evidence_decides(job: Job, state: State) -> None:
    assert outcome_of(job).state is state
    assert outcome_of(job).why


def test_no_record_is_never_called_success() -> None:
    """F4."""
    assert outcome_of(b.in_running()).state is State.unknown


def test_an_uncaught_failure_at_the_end_of_the_log_counts_where_no_output_was_declared() -> None:
    fatal = Diagnosis(cause="memory.gpu", fatal=True)
    assert outcome_of(ended(Phase.succeeded, exit_code=0).but(diagnosis=fatal)).state is State.failed


class TestStops:
    ORDER = StopOrder(by="kim", reason="enough", rule="A2", at=b.after(80), tries=1)

    def test_our_own_stop_is_said_as_such(self) -> None:
        job = ended(Phase.failed, exit_code=143).but(stop=self.ORDER)
        assert outcome_of(job) == (State.stopped, "", "enough")

    def test_one_that_finished_before_the_stop_arrived_succeeded(self) -> None:
        assert outcome_of(ended(Phase.succeeded, exit_code=0).but(stop=self.ORDER)).state is State.succeeded

    def test_one_that_failed_before_the_stop_was_sent_failed(self) -> None:
        unsent = self.ORDER.model_copy(update={"tries": 0})
        assert outcome_of(ended(Phase.failed, exit_code=1).but(stop=unsent)).state is State.failed
        assert outcome_of(ended(Phase.preempted).but(stop=unsent)).state is State.stopped

    def test_one_that_was_gone_before_the_stop_was_sent_is_not_called_stopped_by_it(self) -> None:
        unsent = self.ORDER.model_copy(update={"tries": 0})
        assert outcome_of(ended(Phase.gone).but(stop=unsent)).state is State.unknown
        outside = outcome_of(ended(Phase.stopped).but(stop=unsent))
        assert (outside.state, outside.why != "enough") == (State.stopped, True)


class TestAnotherTry:
    def test_for_the_infrastructures_fault_only(self) -> None:
        job = ended(Phase.failed)
        assert worth_another_try(job, "node.fault", b.after(99))
        assert not worth_another_try(job, "python.exception", b.after(99))

    def test_within_its_budget(self) -> None:
        job = ended(Phase.failed)
        assert not worth_another_try(job.but(resubmissions=2), "node.fault", b.after(99))

    def test_never_twice_the_same_way_without_a_milestone_between(self) -> None:
        job = ended(Phase.failed)
        before = Failure(fingerprint="node.fault", milestone_at=job.track.milestone_at)
        assert not worth_another_try(job.but(failures=(before,)), "node.fault", b.after(99))
        earlier = before.model_copy(update={"milestone_at": b.T0})
        assert worth_another_try(job.but(failures=(earlier,)), "node.fault", b.after(99))

    @pytest.mark.parametrize(
        ("counter", "reached", "again"),
        [("step", 299.0, True), ("step", 300.0, False), ("step", 301.0, False), ("epoch", 300.0, True)],
    )
    def test_progress_is_a_further_step_not_a_repeated_one(
        self, counter: str, reached: float, again: bool
    ) -> None:
        """A new attempt passes the old milestones again; with another counter the milestone's time decides."""
        job = ended(Phase.failed)
        assert job.track.main is not None
        assert job.track.main.value == 300
        before = Failure(fingerprint="node.fault", milestone_at=b.T0, counter=counter, reached=reached)
        failed = job.but(failures=(before,))
        assert worth_another_try(failed, "node.fault", b.after(99)) is again
        assert came_again_without_progress(failed, "node.fault") is not again
        assert worth_another_try(failed, "comm.error", b.after(99))

    def test_the_signature_holds_the_furthest_step(self) -> None:
        job = ended(Phase.failed)
        fallen = job.track.model_copy(update={"highest": {"step": 700.0}})
        assert failure_now(job.but(track=fallen), "node.lost").reached == 700
        assert failure_now(job.but(track=Track()), "node.lost").reached is None

    def test_why_not_is_said(self) -> None:
        job = ended(Phase.failed)
        again = job.but(failures=(failure_now(job, "node.lost"),))
        assert why_no_further_try(job, "node.lost") == ""
        assert "without progress" in why_no_further_try(again, "node.lost")
        assert "are spent" in why_no_further_try(job.but(resubmissions=2), "node.lost")

    def test_never_for_somebody_elses_job_a_stopped_one_or_a_smoke_run(self) -> None:
        job = ended(Phase.failed)
        for changed in (b.taken_over(), job.but(stop=TestStops.ORDER), job.but(parent="digits-p2q4")):
            assert not worth_another_try(changed, "node.fault", b.after(99))


def test_the_clusters_own_cause_comes_before_the_logs() -> None:
    job = ended(Phase.failed, cause="memory.host").but(diagnosis=Diagnosis(cause="comm.error"))
    assert failure_cause(job) == "memory.host"
    assert failure_cause(ended(Phase.failed).but(diagnosis=Diagnosis(cause="comm.error"))) == "comm.error"
