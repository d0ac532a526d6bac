"""Verbs of what shows after the end: looked for by name, stopped, and said aloud (I1).

A send whose answer was lost may be carried out later than its cluster promises, and nobody watches an ended run.

Never: set the state (the row does), read the world, or decide whether to act (the guard did).
"""

from __future__ import annotations

from datetime import datetime

from states import reports
from states.actions.change import Change, after, tell
from states.effects import AnyEffect, FindByName, StopJob
from states.events import LookedUp, Submitted
from states.guards.late import is_looked_for, late_jobs
from states.job import TOPICS_MAX, Attempt, Job
from states.timers import late_looks


def look_for_late_jobs(job: Job, at: datetime) -> list[AnyEffect]:
    """What a run that ends now still owes."""
    return [_look(job, attempt, when) for attempt, when in late_looks(job, at)]


def stop_the_late_one(job: Job, event: Submitted) -> Change:
    """A call that was taken for lost answers: its job is stopped now, and looked for until it is over."""
    return _stop(job, event, (event.cluster_job_id,))


def stop_late_jobs(job: Job, event: LookedUp) -> Change:
    """They are there: stopped, told of once, and looked for again."""
    return _stop(job, event, tuple(match.cluster_job_id for match in late_jobs(job, event)))


def look_once_more(job: Job, event: LookedUp) -> Change:
    """The cluster could not be asked: later."""
    return Change(job, (_again(job, event),), event.reason)


def _stop(job: Job, event: Submitted | LookedUp, ids: tuple[str, ...]) -> Change:
    topics = {one: f"late:{one}" for one in ids}
    stops = [StopJob(name=event.name, cluster_job_id=one, twin=True) for one in ids]
    tells = [
        tell("twin", reports.late_job_stopped(job, one), must_not_miss=True)
        for one in ids
        if topics[one] not in job.asked_topics
    ]
    noted = job.but(asked_topics=tuple(dict.fromkeys((*job.asked_topics, *topics.values())))[-TOPICS_MAX:])
    goes_on = isinstance(event, Submitted) or is_looked_for(job, event)
    return Change(
        noted, (*stops, *tells, *([_again(job, event)] if goes_on else [])), f"late job {', '.join(ids)}"
    )


def _again(job: Job, event: Submitted | LookedUp) -> FindByName:
    named = next(attempt for attempt in job.attempts if attempt.name == event.name)
    return _look(job, named, after(event.at, job.policy.late_look_retry_s))


def _look(job: Job, attempt: Attempt, when: datetime) -> FindByName:
    return FindByName(name=attempt.name, fingerprint=attempt.fingerprint, owner=job.owner, not_before=when)
