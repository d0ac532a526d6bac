"""Predicates of the submit and its answers (DESIGN 4).

Never: change anything, read a clock (the event's `at` is now), or raise on a late event.
"""

from __future__ import annotations

from states.events import (
    Interpreted,
    LogsRead,
    LookedUp,
    Observed,
    StopRequested,
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


def is_no_answer_to_this_submit(job: Job, event: SubmitRejected) -> bool:
    """Of another attempt, or of a call whose answer is known or sought by name: a "no" proves nothing then."""
    attempt = job.attempt
    return event.name != attempt.name or attempt.unclear_since is not None or attempt.resend_at is not None


def a_stop_was_asked(job: Job, event: object) -> bool:
    return job.stop is not None


def may_pass_if_tried_again(job: Job, event: SubmitRejected) -> bool:
    return event.retryable and job.attempt.sends < job.policy.submit_sends_max and job.stop is None


def the_image_is_refused(job: Job, event: SubmitRejected) -> bool:
    return event.cause.startswith("image.") and job.stop is None


def a_person_can_mend_it(job: Job, event: SubmitRejected) -> bool:
    return job.stop is None


def an_earlier_attempt_ran(job: Job, event: SubmitRejected | LookedUp | StopRequested) -> bool:
    """A restart was refused: there is a run to wrap up, so this is no longer "not submitted"."""
    return any(attempt.accepted_at is not None for attempt in job.attempts[:-1])


def a_refused_submit_waits(job: Job, event: object) -> bool:
    """The cluster said no for now, so no job exists; the same name would be sent again later."""
    return job.attempt.resend_at is not None


def a_refused_restart_waits(job: Job, event: StopRequested) -> bool:
    return a_refused_submit_waits(job, event) and an_earlier_attempt_ran(job, event)


def is_not_sought(job: Job, event: LookedUp | Submitted) -> bool:
    """Word of another attempt, or of one whose answer is known."""
    return is_about_another_attempt(job, event) or job.attempt.unclear_since is None


def one_is_there_and_a_stop_was_asked(job: Job, event: LookedUp) -> bool:
    return job.stop is not None and one_of_ours_is_there(job, event)


def one_of_ours_is_there(job: Job, event: LookedUp) -> bool:
    return event.reachable and any(match.ours for match in event.matches)


def the_name_is_taken(job: Job, event: LookedUp) -> bool:
    """A job of that name is there and it is not ours: nothing is adopted, nothing is sent; asked once (G5)."""
    return event.reachable and bool(event.matches) and taken_topic(job) not in job.asked_topics


def is_settled_as_absent(job: Job, event: LookedUp) -> bool:
    """Provably not there, and long enough after the call that it can no longer land (DESIGN 4.3)."""
    return not event.matches and none_of_ours_can_land(job, event)


def none_of_ours_can_land(job: Job, event: LookedUp) -> bool:
    """The cluster was asked, no job carries this run's mark, and the call is over for so long that none will."""
    since = job.attempt.unclear_since
    if not event.reachable or any(match.ours for match in event.matches) or since is None:
        return False
    wait_s = job.capabilities.submit_timeout_s + max(job.policy.settle_s, job.capabilities.visible_within_s)
    return (event.at - since).total_seconds() >= wait_s


def absent_and_stopped_after_a_run(job: Job, event: LookedUp) -> bool:
    """There is a run to wrap up, so this is not "not submitted"."""
    return absent_and_a_stop_was_asked(job, event) and an_earlier_attempt_ran(job, event)


def absent_and_a_stop_was_asked(job: Job, event: LookedUp) -> bool:
    """Also where the name is another's: a stop must not wait for a job that will never be ours."""
    return none_of_ours_can_land(job, event) and job.stop is not None


def may_be_sent_again(job: Job, event: LookedUp) -> bool:
    return is_settled_as_absent(job, event) and job.attempt.sends < job.policy.submit_sends_max


def was_sought_for_too_long(job: Job, event: LookedUp) -> bool:
    since = job.attempt.unclear_since
    too_long = since is not None and (event.at - since).total_seconds() >= job.policy.look_up_s_max
    sends_spent = is_settled_as_absent(job, event) and job.attempt.sends >= job.policy.submit_sends_max
    asked = {unsettled_topic(job), taken_topic(job)} & set(job.asked_topics)
    return (too_long or sends_spent) and not asked


def unsettled_topic(job: Job) -> str:
    """One cause for each send (G5): another one, on a person's word, is asked about anew when its answer is lost."""
    return f"unsettled:{job.attempt.name}:{job.attempt.sends}"


def taken_topic(job: Job) -> str:
    """The same for a name that is another's."""
    return f"taken:{job.attempt.name}:{job.attempt.sends}"


def a_look_up_is_due(job: Job, event: WakeDue) -> bool:
    at = job.attempt.look_up_at if job.attempts else None
    return at is not None and at <= event.at


def a_resend_is_due(job: Job, event: WakeDue) -> bool:
    at = job.attempt.resend_at if job.attempts else None
    return at is not None and at <= event.at
