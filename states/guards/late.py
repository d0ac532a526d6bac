"""Predicates of what shows after the end: a send that was taken for lost and landed after all.

Never: change anything, read a clock (the event's `at` is now), or raise on a late event.
"""

from __future__ import annotations

from datetime import timedelta

from states.events import LookedUp, Submitted
from states.job import Job
from states.observation import ENDED, Match

LOOKS = timedelta(days=1)
"""How long after the end it is looked again: what heeds no stop for a day was told of, and is a person's."""


def is_a_job_too_many(job: Job, event: Submitted) -> bool:
    """A call that was taken for lost was carried out after all (its sender slept), and the run has ended without it.
    It would run over the results."""
    return _is_of_the_run(job, event) and event.cluster_job_id not in _known_ids(job)


def late_jobs(job: Job, event: LookedUp) -> tuple[Match, ...]:
    """Ours, alive, and of none of the run's sends that were answered. Of a job that was handed over, none is ours."""
    if not event.reachable or job.is_takeover or not _is_of_the_run(job, event):
        return ()
    alive = (match for match in event.matches if match.ours and match.phase not in ENDED)
    return tuple(match for match in alive if match.cluster_job_id not in _known_ids(job))


def a_late_job_is_there(job: Job, event: LookedUp) -> bool:
    return bool(late_jobs(job, event))


def a_late_look_is_owed(job: Job, event: LookedUp) -> bool:
    """The cluster could not be asked, so it is not known what there is."""
    return not event.reachable and _is_of_the_run(job, event) and is_looked_for(job, event)


def is_looked_for(job: Job, event: LookedUp) -> bool:
    return job.state_since is not None and event.at < job.state_since + LOOKS


def _is_of_the_run(job: Job, event: Submitted | LookedUp) -> bool:
    return any(attempt.name == event.name for attempt in job.attempts)


def _known_ids(job: Job) -> set[str]:
    return {attempt.cluster_job_id for attempt in job.attempts}
