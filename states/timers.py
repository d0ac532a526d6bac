"""When a job must be woken: its deadlines, and its next look at the cluster.

`deadline` is the earliest moment at which something besides a look is due; `next_look` is the next status look.
The store keeps `wake_at = min(both)`; that column IS the timer. Every live state has one.

Never: read the clock (the moment comes in with the event).
"""

from __future__ import annotations

from datetime import datetime, timedelta

from states.conditions import budget_ends_at
from states.job import Attempt, Job, State


def deadlines(job: Job) -> dict[str, datetime]:
    """Every pending deadline by name. Empty for terminal jobs."""
    found: dict[str, datetime | None] = {}
    if job.is_terminal:
        return {}
    for question in job.open_questions:
        found[f"answer:{question.number}"] = question.answer_by
    match job.doing:
        case State.preflight:
            found["checks"] = _preflight(job)
        case State.submitting:
            found["look_up"] = job.attempt.look_up_at
            found["resend"] = job.attempt.resend_at if job.state is State.submitting else None
        case State.queued if _a_look_tells(job) and job.state is State.queued:
            found |= _queued(job)
        case State.running:
            found["logs"] = job.logs_at if _a_look_tells(job) else None
            found |= _running(job)
        case State.stopping:
            found["stop"] = job.stop.retry_at if job.stop and _a_look_tells(job) else None
        case State.collecting:
            found["collect"] = job.collect_at
    if job.unreachable_since is not None:
        found["unreachable"] = _unreachable(job)
    return {name: at for name, at in found.items() if at is not None}


def deadline(job: Job) -> datetime | None:
    """The earliest of `deadlines`."""
    return min(deadlines(job).values(), default=None)


def pause_s(job: Job, now: datetime) -> tuple[float, float] | None:
    """Seconds to the next status look, and the most that quiet looks may stretch it to; None: nothing to look at.

    A queued job is looked at a little later each time (E1); an unreachable cluster ever more rarely.
    """
    if job.is_terminal or not job.attempts or job.doing not in (State.queued, State.running, State.stopping):
        return None
    policy = job.policy
    if job.unreachable_since is not None:
        away_s = (now - job.unreachable_since).total_seconds()
        pause = _between(policy.poll_s, away_s / 4, policy.unreachable_poll_s_max)
        return pause, policy.unreachable_poll_s_max
    if job.doing is State.queued:
        since = job.attempt.accepted_at or job.attempt.intent_at
        waited_s = (now - since).total_seconds()
        first_s = min(policy.queued_poll_s_first, policy.poll_s)
        return _between(first_s, waited_s / 8, policy.queued_poll_s_max), policy.queued_poll_s_max
    return policy.poll_s, policy.poll_s


def next_look(job: Job, now: datetime) -> datetime | None:
    """When the cluster is asked about this job again. A first look at a loss is followed by the second after
    `second_look_s`, not sooner: a requeue takes that long to show."""
    pause = pause_s(job, now)
    if pause is None:
        return None
    if job.attempt.suspect is not None and job.unreachable_since is None:
        # A cluster that lags tells of the past: the second look is still to come, whatever time the first one bears.
        second = _in(job.attempt.suspect.taken_at, job.policy.second_look_s)
        return max(second, _in(now, min(pause[0], job.policy.second_look_s)))
    return _in(now, pause[0])


def wake_at(job: Job, now: datetime) -> datetime | None:
    """The job's timer: the earlier of its deadline and its next look; None only for terminal jobs.

    A live job that waits for its own effects alone (a smoke run, a check) is swept once per `preflight_s`.
    """
    if job.is_terminal:
        return None
    times = [at for at in (deadline(job), next_look(job, now)) if at is not None]
    return min(times, default=_in(now, job.policy.preflight_s))


def look_s(job: Job) -> float:
    """Seconds until the log is read again (E4): a few milestones of the learnt cadence, between the policy's
    bounds; twice the last pause while nothing is known."""
    policy = job.policy
    cadence_s = job.track.cadence_s or job.request.cadence_s
    if cadence_s is not None:
        return _between(policy.look_s_min, cadence_s * policy.looks_per_cadence, policy.look_s_max)
    return _between(
        policy.look_s_first, policy.look_s_first * 2.0 ** min(job.track.looks, 20), policy.look_s_max
    )


def look_up_pause_s(job: Job, now: datetime) -> float:
    """Seconds to the next look by name: soon after the submit, ever more rarely while nothing settles it."""
    since = job.attempt.unclear_since or now
    policy = job.policy
    return _between(policy.look_up_s, (now - since).total_seconds() / 8, policy.unreachable_poll_s_max)


def late_looks(job: Job, at: datetime) -> list[tuple[Attempt, datetime]]:
    """What a run that ends now owes: a look by name for each send that may land yet, and when. Until now its own
    looks saw what there was."""
    due = ((one, _in(one.intent_at, job.policy.late_look_s)) for one in job.lost_sends)
    return [(attempt, when) for attempt, when in due if when > at]


def _a_look_tells(job: Job) -> bool:
    """What waits for a look at the cluster is due with the next one: not sooner while the cluster is away, nor
    while a first look at a loss waits for its second. A deadline that nothing can serve would spin."""
    return job.unreachable_since is None and job.attempt.suspect is None


def _preflight(job: Job) -> datetime | None:
    """Checks without an answer are asked again; with all answered and no child run under way, it goes on now.
    While a question is open its answer comes first."""
    if job.state is State.blocked:
        return None
    if job.checks_open:
        return _later(job.checks_at, job.policy.preflight_s)
    waits = any(":" not in purpose for purpose in job.children.values())
    return None if waits else job.checks_at


def _queued(job: Job) -> dict[str, datetime | None]:
    attempt = job.attempt
    if attempt.starting_since is not None:
        topic, since, limit_s = "starting", attempt.starting_since, job.policy.starting_ask_s
    else:
        topic, since, limit_s = "queued", attempt.accepted_at or attempt.intent_at, job.policy.queued_ask_s
    asked = waiting_topic(job, topic) in job.asked_topics
    return {topic: None if asked else _later(since, limit_s)}


def waiting_topic(job: Job, topic: str) -> str:
    """The key under which a long wait is asked about, once per attempt (G5)."""
    return f"{topic}:{job.attempt.number}.{job.attempt.restarts_seen}"


def _unreachable(job: Job) -> datetime | None:
    """When the silence of the cluster is told, and then, once, when it is asked about."""
    since, policy = job.unreachable_since, job.policy
    if not job.unreachable_said:
        return None if job.state is State.stopping else _later(since, policy.unreachable_report_s)
    asks = job.state in (State.queued, State.running) and f"unreachable:{since}" not in job.asked_topics
    return _later(since, policy.unreachable_ask_s) if asks else None


def _running(job: Job) -> dict[str, datetime | None]:
    return {"wall": budget_ends_at(job)}


def _later(since: datetime | None, seconds: float) -> datetime | None:
    return None if since is None else _in(since, seconds)


def _in(now: datetime, seconds: float) -> datetime:
    return now + timedelta(seconds=seconds)


def _between(low: float, value: float, high: float) -> float:
    return max(low, min(value, high)) if low <= high else high
