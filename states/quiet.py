"""Quiet jobs: nothing changed and nothing falls due, so a look costs neither a journal row nor a turn.

The store keeps two columns per job for this, the `story` of its newest observation and its earliest `deadline`;
with them thousands of jobs are judged without loading one snapshot.

Never: decide anything else. Whatever is not quiet takes a full turn.
"""

from __future__ import annotations

import hashlib
from datetime import datetime

from states.guards.parts import twins_to_stop
from states.job import Job, State
from states.observation import SECOND_LOOK, Observation, Waiting
from states.timers import waiting_topic

STUCK = frozenset({Waiting.held, Waiting.never, Waiting.budget})
"""Reasons to wait that no waiting cures."""


def story(seen: Observation) -> str:
    """Sixteen hex digits over everything in a look that a decision could rest on."""
    parts = (
        seen.phase,
        seen.reason,
        seen.waiting,
        seen.held,
        seen.finishing,
        seen.suspended,
        seen.attempt,
        seen.exit_code,
        seen.confirmed,
        seen.replicas_ready,
        [(twin.cluster_job_id, twin.phase) for twin in seen.twins],
    )
    return hashlib.blake2b(repr(parts).encode(), digest_size=8).hexdigest()


def story_of(job: Job) -> str:
    """The story column of a job: "" where no look may be quiet (a second look is pending, the cluster was away,
    a double is to be stopped once more)."""
    if not job.attempts or job.attempt.seen is None or job.unreachable_since is not None:
        return ""
    if job.attempt.suspect is not None or job.attempt.seen.phase in SECOND_LOOK:
        return ""
    if twins_to_stop(job, job.attempt.seen) or _is_to_be_asked_about(job, job.attempt.seen):
        return ""
    return story(job.attempt.seen)


def _is_to_be_asked_about(job: Job, seen: Observation) -> bool:
    """It will not move by itself, and a second look that says the same is what the question waits for (E3, C3)."""
    if job.state is not State.queued or not (seen.held or seen.waiting in STUCK):
        return False
    topics = (waiting_topic(job, f"{kind}:{seen.reason}") for kind in ("held", "never-fits"))
    return not any(topic in job.asked_topics for topic in topics)


def is_quiet(known_story: str, deadline: datetime | None, seen: Observation, now: datetime) -> bool:
    """True when this look tells nothing new and no deadline has come."""
    if deadline is not None and deadline <= now:
        return False
    return bool(known_story) and known_story == story(seen)
