"""Predicates of the submit and its answers (DESIGN 4).

Never: change anything, read a clock (the event's `at` is now), or raise on a late event.
"""

from __future__ import annotations

from states.events import (
    Interpreted,
    LogsRead,
    LookedUp,
    Observed,
    SubmitRejected,
    Submitted,
    SubmitUnclear,
    WakeDue,
)
from states.job import Job


def is_about_another_attempt(
    job: Job, event: Submitted | SubmitRejected | SubmitUnclear | LookedUp | Observed | LogsRead | Interpreted
) -> bool:
    return not job.attempts or event.name != job.attempt.name


def a_stop_was_asked(job: Job, event: object) -> bool:
    return job.stop is not None


def may_pass_if_tried_again(job: Job, event: SubmitRejected) -> bool:
    return event.retryable and job.attempt.sends < job.policy.submit_sends_max and job.stop is None


def the_image_is_refused(job: Job, event: SubmitRejected) -> bool:
    return event.cause.startswith("image.") and job.stop is None


def a_person_can_mend_it(job: Job, event: SubmitRejected) -> bool:
    return job.stop is None


def an_earlier_attempt_ran(job: Job, event: SubmitRejected) -> bool:
    """A restart was refused: there is a run to wrap up, so this is no longer "not submitted"."""
    return any(attempt.accepted_at is not None for attempt in job.attempts[:-1])


def is_not_sought(job: Job, event: LookedUp) -> bool:
    """A look-up of another attempt, or of one whose answer is known."""
    return is_about_another_attempt(job, event) or job.attempt.unclear_since is None


def one_is_there_and_a_stop_was_asked(job: Job, event: LookedUp) -> bool:
    return job.stop is not None and one_of_ours_is_there(job, event)


def one_of_ours_is_there(job: Job, event: LookedUp) -> bool:
    return event.reachable and any(match.ours for match in event.matches)


def the_name_is_taken(job: Job, event: LookedUp) -> bool:
    """A job of that name is there and it is not ours: nothing is adopted, nothing is sent."""
    return event.reachable and bool(event.matches)


def is_settled_as_absent(job: Job, event: LookedUp) -> bool:
    """Provably not there, and long enough after the call that it can no longer land (DESIGN 4.3)."""
    since = job.attempt.unclear_since
    if not event.reachable or event.matches or since is None:
        return False
    wait_s = job.capabilities.submit_timeout_s + max(job.policy.settle_s, job.capabilities.visible_within_s)
    return (event.at - since).total_seconds() >= wait_s


def absent_and_a_stop_was_asked(job: Job, event: LookedUp) -> bool:
    return is_settled_as_absent(job, event) and job.stop is not None


def may_be_sent_again(job: Job, event: LookedUp) -> bool:
    return is_settled_as_absent(job, event) and job.attempt.sends < job.policy.submit_sends_max


def was_sought_for_too_long(job: Job, event: LookedUp) -> bool:
    since = job.attempt.unclear_since
    too_long = since is not None and (event.at - since).total_seconds() >= job.policy.look_up_s_max
    sends_spent = is_settled_as_absent(job, event) and job.attempt.sends >= job.policy.submit_sends_max
    return (too_long or sends_spent) and f"unsettled:{job.attempt.name}" not in job.asked_topics


def a_look_up_is_due(job: Job, event: WakeDue) -> bool:
    at = job.attempt.look_up_at if job.attempts else None
    return at is not None and at <= event.at


def a_resend_is_due(job: Job, event: WakeDue) -> bool:
    at = job.attempt.resend_at if job.attempts else None
    return at is not None and at <= event.at
