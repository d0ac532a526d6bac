"""The machine as a whole: total, and true to its promises along every sequence of events.

Depth 4 needs about half a minute: nine in ten of the failures that take systems down need three events or fewer, in
an order that nobody thought of.
"""

from __future__ import annotations

from datetime import timedelta

import pytest

from states import events as happened
from states.effects import Report, StopJob, Submit, Withdraw
from states.events import KINDS
from states.job import MACHINE_VERSION, MOMENTS_MAX, TERMINAL, Job, State
from states.machine import Ignored, Moved, Stayed, step
from states.observation import Phase
from tests.states import builders as b
from tests.states.promises import ends_in_a_calm_world, survives_storage
from tests.states.sequences import (
    EVERYTHING,
    QUICK,
    SECOND_LOOK_S,
    Node,
    Walk,
    in_words,
    kinds_of,
    starts,
    walk,
)


@pytest.fixture(scope="module")
def four_deep() -> Walk:
    """Every sequence of four events, from every state; the first two in every variant."""
    return walk(starts(), depth=4, thorough=2)


@pytest.fixture
def two_deep(four_deep: Walk) -> list[Node]:
    """Every different job that two events lead to."""
    return [node for node in four_deep.reached if len(node.path) <= 3]


class TestEverySequence:
    def test_the_search_starts_in_every_state_and_tells_every_kind_of_event(self) -> None:
        assert {job.state for job in starts().values()} == set(State)
        assert kinds_of(QUICK) == set(KINDS)

    def test_four_events_from_every_state_keep_every_promise(self, four_deep: Walk) -> None:
        assert in_words(four_deep) == []
        assert four_deep.steps > 300_000  # a search that got stuck proves nothing

    @pytest.mark.slow
    def test_four_events_in_every_variant_of_the_first_three(self) -> None:
        assert in_words(walk(starts(), depth=4, thorough=3)) == []

    def test_every_run_comes_to_its_end_once_the_world_is_calm(self, two_deep: list[Node]) -> None:
        stuck = [node.path for node in two_deep if not ends_in_a_calm_world(node.job, node.at)]
        assert stuck == []

    def test_every_job_survives_its_snapshot(self, two_deep: list[Node]) -> None:
        changed = [node.path for node in two_deep if not survives_storage(node.job)]
        assert changed == []

    def test_the_promises_bite(self) -> None:
        """A table whose submit is sent again blindly is found out."""
        from tests.states.promises import Ledger, broken

        job = b.led(b.in_submitting(), b.unclear(), start_s=5)
        blind = step(job, happened.WakeDue(at=b.after(60)))
        again = Submit(name=job.attempt.name, fingerprint="", owner="", spec=job.spec)
        told = list(
            broken(job, happened.WakeDue(at=b.after(60)), blind._replace(effects=(again,)), Ledger.of(job))
        )
        assert told == ["no submit under a name whose job may be there: unclear (I1)"]


class TestStep:
    def test_each_event_in_each_state_has_an_outcome(self) -> None:
        for job in starts().values():
            for teller, later_s in EVERYTHING.values():
                taken = step(job, teller(job, b.at_of(job) + timedelta(seconds=later_s)))
                assert isinstance(taken.outcome, (Moved, Stayed, Ignored))

    def test_a_step_leaves_its_job_as_it_was_and_gives_the_same_twice(self) -> None:
        job = b.in_running()
        before = job.model_dump_json()
        event = b.seen(Phase.failed)(job, b.after(99))
        assert step(job, event) == step(job, event)
        assert job.model_dump_json() == before

    def test_it_says_which_row_was_taken(self) -> None:
        taken = b.take(b.in_submitting(), b.submitted()(b.in_submitting(), b.after(9)))
        assert (taken.rule, taken.action, taken.said) == ("C14 C15 I1", "note_accepted", "id 41")
        assert taken.outcome == Moved(State.submitting, State.queued)
        assert taken.job.version == MACHINE_VERSION

    def test_the_timeline_is_bounded_and_keeps_its_beginning(self) -> None:
        job = b.in_queued()
        first = job.moments[0]
        for turn in range(MOMENTS_MAX):
            phase = Phase.running if turn % 2 == 0 else Phase.pending
            job = b.take(job, b.seen(phase)(job, b.after(100.0 + turn))).job
        assert len(job.moments) == MOMENTS_MAX
        assert job.moments[0] == first

    @pytest.mark.parametrize("name", sorted(n for n, job in starts().items() if job.state in TERMINAL))
    def test_the_end_is_final(self, name: str) -> None:
        job = starts()[name]
        for teller, later_s in EVERYTHING.values():
            taken = step(job, teller(job, b.at_of(job) + timedelta(seconds=later_s)))
            assert taken.job.state is job.state


def effects_of(job: Job, teller: b.Teller, at_s: float) -> list[str]:
    return [effect.kind for effect in step(job, teller(job, b.after(at_s))).effects]


class TestWhatTheSearchFound:
    """Sequences that once went wrong, each with what must happen instead."""

    def test_an_outage_does_not_make_a_due_log_look_spin(self) -> None:
        job = b.led(b.in_running(), b.away(), start_s=4000)
        assert job.wake_at is not None
        assert job.wake_at >= b.after(4000 + job.policy.poll_s)

    def test_a_first_look_at_a_loss_waits_for_its_second_though_a_log_look_is_due(self) -> None:
        job = b.led(b.in_running(), b.seen(Phase.lost), start_s=4000)
        assert job.wake_at == b.after(4000 + job.policy.second_look_s)

    def test_an_outage_after_a_first_look_at_a_loss_does_not_spin(self) -> None:
        job = b.led(b.in_running(), b.seen(Phase.lost), b.away(), start_s=4000, every_s=500)
        assert job.wake_at is not None
        assert job.wake_at > b.after(4500)

    def test_a_question_in_the_queue_is_not_disturbed_by_the_long_wait(self) -> None:
        held = b.seen(Phase.pending, held=True, reason="hold")
        job = b.led(b.in_queued(policy_set={"queued_ask_s": 600.0}), held, held, start_s=60)
        late = b.led(job, held, start_s=700)
        assert late.state is State.blocked
        assert late.wake_at is not None
        assert late.wake_at > b.after(700)

    def test_a_stop_that_the_cluster_cannot_take_for_long_is_said_and_does_not_spin(self) -> None:
        job = b.led(b.in_stopping(), b.away(), start_s=60)
        late = step(job, b.away()(job, b.after(60 + job.policy.unreachable_report_s)))
        assert [effect.stage for effect in late.effects if isinstance(effect, Report)] == ["unreachable"]
        again = b.led(late.job, b.woken(), start_s=61 + job.policy.unreachable_report_s)
        assert again.wake_at is not None
        assert again.wake_at > b.after(61 + job.policy.unreachable_report_s)

    def test_a_stop_while_a_refused_submit_waits_ends_the_run_unsubmitted(self) -> None:
        job = b.led(b.in_submitting(), b.rejected(retryable=True), b.stop_asked_for(), start_s=9)
        assert job.state is State.not_submitted

    def test_a_stop_while_a_refused_restart_waits_wraps_up_what_ran(self) -> None:
        restarted = starts()["submitting, restarted"]
        job = b.led(restarted, b.rejected(retryable=True), b.stop_asked_for(), start_s=400)
        assert job.state is State.collecting
        assert b.led(job, b.collected(), start_s=500).state is State.stopped

    def test_a_stop_while_a_restart_is_sought_wraps_up_what_ran(self) -> None:
        restarted = starts()["submitting, restarted"]
        job = b.led(restarted, b.unclear(), b.stop_asked_for(), b.looked_up(), start_s=400, every_s=200)
        assert job.state is State.collecting

    def test_a_stop_is_not_forgotten_when_the_sought_job_turns_up_behind_a_question(self) -> None:
        sought = b.led(b.in_submitting(), b.unclear(), b.stop_asked_for(), start_s=9)
        asked = b.led(sought, b.looked_up(reachable=False), start_s=sought.policy.look_up_s_max + 60)
        assert asked.state is State.blocked
        found = step(asked, b.looked_up(b.match())(asked, b.after(9000)))
        assert found.outcome == Moved(State.blocked, State.stopping)
        assert any(isinstance(effect, StopJob) for effect in found.effects)

    def test_a_stop_during_the_wrap_up_of_a_failed_node_is_heeded_and_tells_no_lie(self) -> None:
        job = b.led(b.in_running(), b.seen(Phase.failed, exit_code=1, cause="node.fault"), start_s=60)
        asked = b.led(job, b.stop_asked_for(), start_s=61)
        done = step(asked, b.collected(exit_code=1)(asked, b.after(70)))
        assert done.outcome == Moved(State.collecting, State.failed)

    def test_without_a_stop_the_same_run_is_submitted_again(self) -> None:
        job = b.led(b.in_running(), b.seen(Phase.failed, exit_code=1, cause="node.fault"), start_s=60)
        assert "submit" in effects_of(job, b.collected(exit_code=1), 70)

    def test_a_taken_name_is_asked_about_once(self) -> None:
        taken = b.looked_up(b.match(ours=False))
        job = b.led(b.in_submitting(), b.unclear(), taken, b.answered("look"), start_s=9)
        assert job.state is State.submitting
        again = step(job, taken(job, b.after(9000)))
        assert isinstance(again.outcome, Stayed)
        assert again.effects == ()

    def test_looking_by_name_gets_rarer_and_never_stops(self) -> None:
        job = b.led(
            b.in_submitting(), b.unclear(), b.looked_up(b.match(ours=False)), b.answered("look"), start_s=9
        )
        late = step(job, b.looked_up(b.match(ours=False))(job, b.after(90_000))).job
        assert late.attempt.look_up_at == b.after(90_000 + job.policy.unreachable_poll_s_max)

    def test_an_answer_counts_at_once_though_another_question_is_open(self) -> None:
        asked = starts()["blocked before the submit"]
        first = b.led(asked, b.answered("reg/b:2", 1), start_s=60)
        assert first.state is State.blocked
        assert first.checks_open == ("image",)
        checked = b.led(first, b.check_is("image"), b.answered("wait", 2), start_s=70)
        assert checked.state is State.preflight
        gone_on = step(checked, b.woken()(checked, b.after(80)))
        assert gone_on.outcome == Moved(State.preflight, State.submitting)
        assert gone_on.job.spec.image == "reg/b:2"

    def test_a_build_that_ends_while_another_question_is_open_is_not_lost(self) -> None:
        asked = b.led(
            b.in_preflight(),
            b.check_is("image", "ask", "environment"),
            b.check_is("capacity", "ask", "capacity"),
            b.answered("build", 1),
            b.child_is(True, "build"),
            b.answered("wait", 2),
            b.woken(),
        )
        assert asked.children == {"digits-k3f9-s1": "build:passed"}

    def test_a_smoke_run_follows_a_build(self) -> None:
        job = b.led(
            b.new_job(request=b.request(smoke="true").model_dump(exclude_defaults=True)),
            b.delegated("environment"),
            b.check_is("environment", "ask", "environment"),
            b.answered("build"),
        )
        passed = step(job, b.child_is(True, "build")(job, b.after(60)))
        assert [effect.kind for effect in passed.effects] == ["delegate"]

    def test_an_environment_given_after_a_failed_build_is_checked(self) -> None:
        job = b.led(
            b.new_job(),
            b.delegated("environment"),
            b.check_is("environment", "ask", "environment"),
            b.answered("build"),
            b.child_is(False, "build"),
        )
        given = step(job, b.answered("environment envs/mine")(job, b.after(60)))
        assert given.job.checks_open == ("environment",)
        assert given.job.overridden == ()

    def test_one_check_given_up_leaves_the_others_to_answer(self) -> None:
        job = b.led(b.in_preflight(), b.given_up("run_check", "image"))
        assert job.checks["image"].level == "could_not"
        assert job.checks_open == ("capacity",)

    def test_a_smoke_run_that_cannot_be_delegated_is_asked_about(self) -> None:
        job = b.led(b.new_job(request={"smoke": "true"}), b.delegated("image"), b.check_is("image"))
        assert job.children == {"digits-k3f9-s1": "smoke"}
        asked = b.led(job, b.given_up("delegate", "digits-k3f9-s1"), start_s=60)
        assert [question.kind for question in asked.open_questions] == ["smoke-failed"]

    def test_a_reading_that_comes_after_the_answer_asks_nothing_again(self) -> None:
        job = b.led(starts()["blocked while it runs"], b.answered("without"), start_s=500)
        late = step(job, b.interpreted("failing")(job, b.after(510)))
        assert isinstance(late.outcome, Stayed)
        assert late.effects == ()

    def test_a_second_life_does_not_inherit_the_failure_of_the_first(self) -> None:
        job = b.led(
            b.in_running(),
            b.seen(Phase.failed, exit_code=1, cause="node.fault"),
            b.log(b.trouble("node.fault", fatal=True), final=True),
            b.collected(exit_code=1),
            b.submitted("42"),
            b.seen(Phase.running),
            b.seen(Phase.succeeded, exit_code=0),
            b.collected(),
            start_s=60,
        )
        assert job.state is State.succeeded

    def test_a_waiting_double_is_stopped_a_few_times_said_once_and_hides_nothing(self) -> None:
        job, stops, said = b.in_running(), 0, 0
        for turn in range(6):
            looked = b.seen(Phase.running, twins=(b.match("42"),))(job, b.after(100.0 + turn))
            taken = step(job, looked)
            stops += sum(isinstance(effect, StopJob) for effect in taken.effects)
            said += sum(isinstance(effect, Report) and effect.stage == "twin" for effect in taken.effects)
            job = taken.job
        assert (stops, said) == (3, 1)
        ended = step(job, b.seen(Phase.succeeded, twins=(b.match("42"),))(job, b.after(200)))
        assert ended.outcome == Moved(State.running, State.collecting)

    def test_a_no_that_answers_nothing_sends_nothing(self) -> None:
        sought = b.led(b.in_submitting(), b.unclear(), start_s=9)
        assert step(sought, b.rejected(retryable=True)(sought, b.after(20))).job.attempt.resend_at is None

    def test_an_acceptance_that_comes_behind_a_question_is_taken(self) -> None:
        asked = starts()["blocked in the submit"]
        taken = step(asked, b.submitted()(asked, b.after(30_000)))
        assert taken.outcome == Moved(State.blocked, State.queued)
        assert any(isinstance(effect, Withdraw) for effect in taken.effects)


class TestSecondLook:
    @pytest.mark.parametrize("phase", [Phase.preempted, Phase.lost, Phase.gone])
    def test_a_loss_is_believed_at_the_second_look(self, phase: Phase) -> None:
        first = b.led(b.in_running(), b.seen(phase), start_s=60)
        assert first.state is State.running
        second = b.led(first, b.seen(phase), start_s=60 + SECOND_LOOK_S)
        assert second.state is not State.running

    def test_a_look_that_finds_it_again_drops_the_suspicion(self) -> None:
        job = b.led(b.in_running(), b.seen(Phase.gone), b.seen(Phase.running), start_s=60)
        assert job.attempt.suspect is None
