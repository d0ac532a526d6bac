"""Predicates of a stop and of the end, by the evidence.

Never: change anything, read a clock (the event's `at` is now), or raise on a late event.
"""

from __future__ import annotations

from states.events import (
    DeleteRequested,
    EffectGivenUp,
    Observed,
    OutputsCollected,
    WakeDue,
)
from states.job import Job, State
from states.outcome import outcome_of, worth_another_try
from states.timers import deadlines


def nothing_can_be_there(job: Job, event: object) -> bool:
    """No submit was made, or the cluster said no to it: no job exists."""
    refused = bool(job.attempts) and job.doing is State.submitting and job.attempt.unclear_since is None
    return job.doing is State.preflight or (refused and job.attempt.accepted_at is None)


def the_answer_is_still_out(job: Job, event: object) -> bool:
    """The submit is under way: the stop is kept and carried out when it is known what there is (WISHES 7)."""
    return job.doing is State.submitting


def a_retry_is_due(job: Job, event: WakeDue | Observed) -> bool:
    return job.stop is not None and job.stop.retry_at is not None and job.stop.retry_at <= event.at


def checks_are_late(job: Job, event: WakeDue) -> bool:
    due = deadlines(job).get("checks")
    return bool(job.checks_open) and due is not None and due <= event.at


def collecting_is_late(job: Job, event: WakeDue) -> bool:
    return job.collect_at is not None and job.collect_at <= event.at


def collecting_took_too_long(job: Job, event: WakeDue) -> bool:
    return collecting_is_late(job, event) and job.collect_tries >= job.policy.collect_tries_max


def deserves_another_try(job: Job, event: OutputsCollected) -> bool:
    """The infrastructure's fault, within the budget, and not the same way twice without a milestone."""
    outcome = outcome_of(job)
    return outcome.state is State.failed and worth_another_try(job, outcome.cause, event.at)


def it_succeeded(job: Job, event: object) -> bool:
    return outcome_of(job).state is State.succeeded


def it_failed(job: Job, event: object) -> bool:
    return outcome_of(job).state is State.failed


def it_was_stopped(job: Job, event: object) -> bool:
    return outcome_of(job).state is State.stopped


def late_and_it_succeeded(job: Job, event: WakeDue) -> bool:
    """The wrap-up's reads do not answer: what is known decides."""
    return collecting_took_too_long(job, event) and it_succeeded(job, event)


def late_and_it_failed(job: Job, event: WakeDue) -> bool:
    return collecting_took_too_long(job, event) and it_failed(job, event)


def late_and_it_was_stopped(job: Job, event: WakeDue) -> bool:
    return collecting_took_too_long(job, event) and it_was_stopped(job, event)


def the_name_is_spelled_out(job: Job, event: DeleteRequested) -> bool:
    names = {job.id, *(attempt.name for attempt in job.attempts)}
    return event.name in names and bool(job.attempts)


def a_check_was_given_up(job: Job, event: EffectGivenUp) -> bool:
    return event.effect == "run_check" and event.name in job.checks_open


def a_child_was_given_up(job: Job, event: EffectGivenUp) -> bool:
    """A smoke or preparation run that could not even be delegated, and is waited for."""
    return event.effect == "delegate" and ":" not in job.children.get(event.name, ":")
