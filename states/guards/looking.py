"""Predicates of a look at the cluster (PHASES, DESIGN 5).

Never: change anything, read a clock (the event's `at` is now), or raise on a late event.
"""

from __future__ import annotations

from states.conditions import spent_goal
from states.events import (
    ClusterUnreachable,
    Observed,
    WakeDue,
)
from states.guards.parts import (
    WAITS,
    not_asked,
    twins_to_stop,
    twins_to_tell,
    waits_for,
)
from states.job import Job, State
from states.observation import ENDED, SECOND_LOOK, Phase, Waiting
from states.outcome import worth_another_try
from states.timers import deadlines


def nothing_is_watched(job: Job, event: object) -> bool:
    """Blocked before there is a cluster job to look at."""
    return job.doing not in (State.queued, State.running, State.stopping, State.collecting)


def a_twin_is_moot(job: Job, event: Observed) -> bool:
    """A double that waits or was replaced is stopped without asking, a few times; not for another person (A10)."""
    return bool(twins_to_stop(job, event.observation))


def a_twin_runs_too(job: Job, event: Observed) -> bool:
    live = [t for t in event.observation.twins if t.ours and t.phase is Phase.running]
    return not job.is_takeover and any(
        f"twins:{twin.cluster_job_id}" not in job.asked_topics for twin in live
    )


def a_twin_runs_unsaid(job: Job, event: Observed) -> bool:
    """While another question stands, or a stop goes on, none is asked about it: it is said."""
    return not job.is_takeover and bool(twins_to_tell(job, event.observation))


def has_ended(job: Job, event: Observed) -> bool:
    """A positive record of the end. One that still finishes is not over."""
    return event.observation.phase in ENDED and not event.observation.finishing


def is_a_first_look_at_a_loss(job: Job, event: Observed) -> bool:
    """preempted, lost, gone: nothing is believed at the first look, nor before a requeue could show."""
    seen = event.observation
    if seen.phase not in SECOND_LOOK:
        return False
    suspect = job.attempt.suspect
    if suspect is None or suspect.phase is not seen.phase:
        return True
    # Accepted, and no look has shown it yet: a cluster that lags has lost nothing. Counted from the first look that
    # missed it: a clock that steps between the submit and that look has not made anything late.
    unshown = seen.phase is Phase.gone and job.attempt.seen is None
    wait_s = job.policy.unshown_s if unshown else job.policy.second_look_s * 0.9
    return (seen.taken_at - suspect.taken_at).total_seconds() < wait_s


def was_preempted_and_may_restart(job: Job, event: Observed) -> bool:
    return (
        event.observation.phase is Phase.preempted
        and not job.is_takeover
        and job.stop is None
        and job.preemptions < job.request.max_restarts
    )


def was_lost_and_may_be_resubmitted(job: Job, event: Observed) -> bool:
    return (
        event.observation.phase is Phase.lost
        and job.stop is None
        and worth_another_try(job, "node.lost", event.at)
    )


def is_over_without_an_end(job: Job, event: Observed) -> bool:
    """Preempted, lost or gone for good."""
    return event.observation.phase in SECOND_LOOK


ABOUT_WAITING = frozenset({"held", "never-fits", "waits-long", "unreachable"})
"""Questions that are moot once the job moves on."""


def it_runs(job: Job, event: Observed) -> bool:
    return job.doing is State.queued and event.observation.phase is Phase.running


def it_runs_though_a_question_stands(job: Job, event: Observed) -> bool:
    """It starts while a question is open that its start does not answer (twins): the question stays."""
    return it_runs(job, event) and any(q.kind not in ABOUT_WAITING for q in job.open_questions)


def the_wait_is_ordinary_again(job: Job, event: Observed) -> bool:
    """What the open question was about is gone, and the job waits like any other."""
    seen = event.observation
    kinds = {question.kind for question in job.open_questions}
    ordinary = not seen.held and seen.waiting is Waiting.wait and seen.phase in WAITS
    return (
        job.doing is State.queued
        and ordinary
        and bool(kinds)
        and kinds <= {"held", "never-fits", "unreachable"}
    )


def it_answers_again(job: Job, event: Observed) -> bool:
    """The cluster was away and a question was open about that alone."""
    runs = job.doing is State.running and event.observation.phase is Phase.running
    return runs and {question.kind for question in job.open_questions} == {"unreachable"}


def it_was_requeued_between_looks(job: Job, event: Observed) -> bool:
    """It runs as before, but the cluster has counted a restart: another program, perhaps on another node."""
    seen = event.observation
    runs = job.doing is State.running and seen.phase is Phase.running
    return runs and seen.attempt > job.attempt.restarts_seen


def it_waits_again(job: Job, event: Observed) -> bool:
    """Requeued under the same id (PHASES: pending may follow running)."""
    return job.doing is State.running and event.observation.phase in (Phase.pending, Phase.starting)


def is_held(job: Job, event: Observed) -> bool:
    return waits_for(event.observation, Waiting.held) and not_asked(job, "held", event.observation)


def can_never_start(job: Job, event: Observed) -> bool:
    seen = event.observation
    stuck = waits_for(seen, Waiting.never) or waits_for(seen, Waiting.budget)
    return stuck and not_asked(job, "never-fits", seen)


def waits_for_too_long(job: Job, event: Observed) -> bool:
    # This look ends an outage and a suspicion, so what they held back is due with it and not a look later.
    seen, since = event.observation, job.attempt.starting_since
    begins = seen.taken_at if seen.phase is Phase.starting and since is None else since
    due = deadlines(job.but(unreachable_since=None).but_attempt(suspect=None, starting_since=begins))
    return any(name in due and due[name] <= event.at for name in ("queued", "starting"))


def finishes_for_too_long(job: Job, event: Observed) -> bool:
    seen, before = event.observation, job.attempt.seen
    if not (seen.finishing and before is not None and before.finishing):
        return False
    since = job.attempt.ended_at
    late = since is not None and (event.at - since).total_seconds() >= job.policy.finishing_ask_s
    return late and not_asked(job, "finishing", seen)


def the_word_is_new(job: Job, event: Observed) -> bool:
    return event.observation.phase is Phase.unknown and event.observation.native not in job.odd_words


def logs_are_due(job: Job, event: Observed) -> bool:
    return job.doing is State.running and job.logs_at is not None and job.logs_at <= event.at


def was_away_for_too_long(job: Job, event: ClusterUnreachable) -> bool:
    since = job.unreachable_since
    away_s = (event.at - since).total_seconds() if since else 0.0
    return away_s >= job.policy.unreachable_ask_s and f"unreachable:{since}" not in job.asked_topics


def a_word_is_due_that_it_is_away(job: Job, event: ClusterUnreachable) -> bool:
    since = job.unreachable_since
    late = since is not None and (event.at - since).total_seconds() >= job.policy.unreachable_report_s
    return late and not job.unreachable_said


def the_wall_clock_condition_is_met(job: Job, event: WakeDue) -> bool:
    return spent_goal(job, event.at) is not None and "wall" in deadlines(job)
