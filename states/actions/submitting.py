"""Verbs of the submit and its answers: adopt, look by name, send again under the same name (DESIGN 4).

Never: set the state (the row does), read the world, or decide whether to act (the guard did).
"""

from __future__ import annotations

from states import reports
from states.actions.asking import close_by, open_questions, withdraw_all
from states.actions.change import (
    Change,
    after,
    purpose_of,
    tell,
)
from states.actions.hints import admitted, remembered
from states.actions.parts import (
    end_run,
    oldest_of_ours,
    stop_now,
    submit_effect,
    submit_reports,
    with_acceptance,
)
from states.effects import (
    FindByName,
    Remember,
)
from states.events import (
    Answered,
    LookedUp,
    StopRequested,
    SubmitRejected,
    Submitted,
    SubmitUnclear,
    WakeDue,
)
from states.guards.submitting import taken_topic, unsettled_topic
from states.job import TOPICS_MAX, Job, State
from states.timers import look_up_pause_s


def note_accepted(job: Job, event: Submitted) -> Change:
    """Report what was submitted and record the config that was used (C14, C15)."""
    accepted = with_acceptance(job, event.at, event.cluster_job_id).with_note(event.note)
    withdrawn, tells = withdraw_all(accepted, event.at, "the cluster accepted the job")
    return Change(withdrawn, (*tells, *submit_reports(withdrawn, event.at)), f"id {event.cluster_job_id}")


def note_accepted_and_stop(job: Job, event: Submitted) -> Change:
    """It was accepted while a stop was waiting for it: stop it now (WISHES 7)."""
    return stop_now(with_acceptance(job, event.at, event.cluster_job_id), event.at)


def resend_later(job: Job, event: SubmitRejected) -> Change:
    """A refusal that may pass: nothing is there, so the same name is sent again in a while."""
    at = after(event.at, job.policy.submit_retry_s)
    return Change(job.but_attempt(resend_at=at), (), event.reason)


def send_again(job: Job, event: WakeDue | LookedUp | Answered) -> Change:
    """Submit once more under the SAME name: provably not there, or a person said so."""
    attempt = job.attempt
    lost = (attempt.lost_topic,) if attempt.unclear_since is not None else ()
    changed = job.but(asked_topics=(*job.asked_topics, *lost)[-TOPICS_MAX:]).but_attempt(
        sends=attempt.sends + 1, unclear_since=None, look_up_at=None, resend_at=None, intent_at=event.at
    )
    closed, tells = close_by(changed, event)
    return Change(
        closed, (*tells, submit_effect(closed)), "provably not there" if isinstance(event, LookedUp) else ""
    )


def ask_for_image(job: Job, event: SubmitRejected) -> Change:
    """The image cannot be used: ask for a known-good one, never try another tag (C5); a remembered one is stale."""
    facts = {"name": job.id, "why": event.reason}
    stale = Remember(
        what="stale", purpose=purpose_of(job), values={"image": job.spec.image}, note=event.reason
    )
    if "image" in remembered(job):
        job, (stale,) = admitted(job, {"image": job.spec.image}, event.reason)
    asked = open_questions(job, event.at, [("image", f"image:{job.spec.image}", facts, ())])
    return Change(asked.job, (stale, *asked.effects), event.reason)


def ask_about_refusal(job: Job, event: SubmitRejected) -> Change:
    """The cluster refused the spec: no job exists, the person decides (default: don't submit)."""
    facts = {"name": job.id, "why": event.reason}
    return open_questions(
        job, event.at, [("rejected", f"rejected:{job.attempt.name}:{job.attempt.sends}", facts, ())]
    )


def end_unsubmitted(
    job: Job, event: SubmitRejected | LookedUp | Answered | WakeDue | StopRequested
) -> Change:
    """Nothing was submitted, and nothing will be."""
    why = getattr(event, "reason", "") or "it was given up before anything was submitted"
    closed, tells = close_by(job, event)
    ended = end_run(closed, event.at, State.not_submitted, why)
    return Change(ended.job, (*tells, *ended.effects), why)


def seek(job: Job, event: SubmitUnclear) -> Change:
    """The answer was lost: look by name after a pause, never send blindly (DESIGN 4.2)."""
    changed = job.but_attempt(
        unclear_since=event.at, look_up_at=after(event.at, job.policy.look_up_s), resend_at=None
    )
    report = tell("submit-unclear", reports.submit_unclear(changed, event.reason))
    return Change(changed, (report,), event.reason)


def look_up(job: Job, event: WakeDue) -> Change:
    """Ask by name."""
    attempt = job.attempt
    effect = FindByName(name=attempt.name, fingerprint=attempt.fingerprint, owner=job.owner)
    later = after(event.at, max(job.policy.look_up_s, job.capabilities.submit_timeout_s))
    return Change(job.but_attempt(look_up_at=later), (effect,), "looking by name")


def adopt(job: Job, event: LookedUp) -> Change:
    """It is there: adopt the oldest of ours (name, fingerprint and owner agree) as this attempt's job."""
    match = oldest_of_ours(event.matches)
    accepted = with_acceptance(job, event.at, match.cluster_job_id)
    withdrawn, tells = withdraw_all(accepted, event.at, "the job was found on the cluster")
    return Change(
        withdrawn, (*tells, *submit_reports(withdrawn, event.at)), f"found by name: {match.cluster_job_id}"
    )


def adopt_and_stop(job: Job, event: LookedUp) -> Change:
    """It is there, and a stop was waiting for it."""
    return stop_now(with_acceptance(job, event.at, oldest_of_ours(event.matches).cluster_job_id), event.at)


def keep_seeking(job: Job, event: LookedUp) -> Change:
    """Not there yet, or not to be asked: look again, ever more rarely."""
    said = event.reason if not event.reachable else "not there yet"
    return Change(job.but_attempt(look_up_at=after(event.at, look_up_pause_s(job, event.at))), (), said)


def ask_about_submit(job: Job, event: LookedUp) -> Change:
    """Not settled within the bound: ask (default: keep looking, don't submit)."""
    why = event.reason if not event.reachable else f"{job.attempt.sends} sends, and no job of that name shows"
    facts = {"name": job.id, "why": why}
    asked = open_questions(job, event.at, [("unsettled", unsettled_topic(job), facts, ())])
    return asked._replace(job=asked.job.but_attempt(look_up_at=after(event.at, job.policy.look_up_s)))


def ask_about_name(job: Job, event: LookedUp) -> Change:
    """A job of that name is there and is not ours: nothing is adopted."""
    why = f"a job named {job.attempt.name} is on the cluster and does not carry this run's mark"
    return open_questions(job, event.at, [("unsettled", taken_topic(job), {"name": job.id, "why": why}, ())])
