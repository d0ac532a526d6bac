"""When a job is woken: deadlines that something serves, looks that get rarer, and never a timer that spins."""

from __future__ import annotations

from datetime import timedelta

import pytest

from states.observation import Phase
from states.reading import Track
from states.timers import deadline, deadlines, look_s, look_up_pause_s, next_look, pause_s, wake_at
from tests.states import builders as b
from tests.states.sequences import starts


def test_every_live_job_is_woken_and_no_ended_one() -> None:
    for job in starts().values():
        at = b.at_of(job)
        assert (wake_at(job, at) is None) == job.is_terminal
        assert job.is_terminal or job.wake_at is not None


def test_a_queued_job_is_looked_at_ever_more_rarely() -> None:
    """E1."""
    job = b.in_queued()
    pauses = [pause_s(job, b.after(seconds)) for seconds in (20, 200, 600, 7200)]
    firsts = [pause[0] for pause in pauses if pause is not None]
    assert firsts == sorted(firsts)
    assert (firsts[0], firsts[-1]) == (job.policy.queued_poll_s_first, job.policy.queued_poll_s_max)


def test_a_running_job_is_looked_at_at_a_steady_pace() -> None:
    job = b.in_running()
    assert pause_s(job, b.after(9999)) == (60.0, 60.0)


def test_a_cluster_that_is_away_is_asked_ever_more_rarely() -> None:
    job = b.led(b.in_running(), b.away(), start_s=100)
    pauses = [pause_s(job, b.after(seconds)) for seconds in (100, 1000, 20_000)]
    assert [pause[0] for pause in pauses if pause is not None] == [60.0, 225.0, 600.0]


@pytest.mark.parametrize("state", ["preflight", "submitting", "collecting", "succeeded"])
def test_where_there_is_nothing_to_look_at_no_look_is_due(state: str) -> None:
    job = starts()[state]
    assert pause_s(job, b.after(99)) is None
    assert next_look(job, b.after(99)) is None


def test_the_second_look_at_a_loss_comes_when_a_requeue_would_show() -> None:
    job = b.led(b.in_running(), b.seen(Phase.preempted), start_s=100)
    assert next_look(job, b.after(101)) == b.after(100 + job.policy.second_look_s)


class TestDeadlines:
    def test_a_running_job_has_its_log_look(self) -> None:
        job = b.in_running()
        assert deadlines(job) == {"logs": job.logs_at}
        assert deadline(job) == job.logs_at

    def test_what_only_a_look_can_serve_is_no_deadline_while_there_can_be_none(self) -> None:
        job = b.in_running()
        assert "logs" not in deadlines(b.led(job, b.away(), start_s=100))
        assert "logs" not in deadlines(b.led(job, b.seen(Phase.lost), start_s=100))
        queued = b.in_queued()
        assert "queued" in deadlines(queued)
        assert "queued" not in deadlines(b.led(queued, b.away(), start_s=100))

    def test_the_wall_clock_condition_counts_from_the_start(self) -> None:
        """E8."""
        job = b.in_running(request={"stop_when": ({"wall_s": 3600.0}, {"wall_s": 60.0})})
        assert deadlines(job)["wall"] == (job.attempt.started_at or b.T0) + timedelta(seconds=60)

    def test_an_open_question_has_its_own(self) -> None:
        job = starts()["blocked while it runs"]
        question = job.open_questions[0]
        assert deadlines(job)[f"answer:{question.number}"] == question.answer_by

    def test_a_question_before_the_submit_waits_for_its_answer_alone(self) -> None:
        job = starts()["blocked before the submit"]
        assert set(deadlines(job)) == {"answer:1", "answer:2"}

    def test_a_long_wait_is_asked_about_once(self) -> None:
        job = b.in_queued(policy_set={"queued_ask_s": 600.0})
        asked = b.led(job, b.seen(Phase.pending), start_s=700)
        resumed = b.led(asked, b.answered("wait"), start_s=710)
        assert "queued" in deadlines(job)
        assert "queued" not in deadlines(resumed)


class TestLogLooks:
    def test_without_a_cadence_the_pause_doubles_up_to_half_an_hour(self) -> None:
        """E4."""
        job = b.in_running()
        pauses = [look_s(job.but(track=Track(looks=looks))) for looks in range(9)]
        assert pauses[:3] == [60.0, 120.0, 240.0]
        assert pauses[-1] == job.policy.look_s_max == 1800.0

    def test_with_one_it_is_a_few_milestones(self) -> None:
        job = b.in_running()
        assert look_s(job.but(track=Track(cadence_s=100.0))) == 300.0
        assert look_s(job.but(track=Track(cadence_s=0.1))) == job.policy.look_s_min
        assert look_s(job.but(track=Track(cadence_s=1e6))) == job.policy.look_s_max

    def test_the_persons_own_cadence_counts_until_one_is_learnt(self) -> None:
        job = b.in_running(request={"cadence_s": 200.0})
        assert look_s(job.but(track=Track())) == 600.0


def test_a_look_by_name_is_soon_at_first_and_rare_later() -> None:
    job = b.led(b.in_submitting(), b.unclear(), start_s=0)
    assert [look_up_pause_s(job, b.after(seconds)) for seconds in (1, 800, 90_000)] == [10.0, 100.0, 600.0]
