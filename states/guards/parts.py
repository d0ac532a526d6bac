"""What the predicates share.

Never: change anything, read a clock (the event's `at` is now), or raise on a late event.
"""

from __future__ import annotations

from states.events import (
    Answered,
    WakeDue,
)
from states.job import Job
from states.observation import Match, Observation, Phase, Waiting
from states.questions import Question
from states.timers import waiting_topic

WAITS = frozenset({Phase.pending, Phase.starting, Phase.unknown})


def waits_for(seen: Observation, waiting: Waiting) -> bool:
    held = seen.held and waiting is Waiting.held
    return seen.phase in (Phase.pending, Phase.starting) and (seen.waiting is waiting or held)


def not_asked(job: Job, topic: str, seen: Observation) -> bool:
    """Asked once per cause: the reason's words are part of the topic; it must have lasted a second look."""
    before = job.attempt.seen
    lasted = before is not None and before.reason == seen.reason and before.phase is seen.phase
    return lasted and waiting_topic(job, f"{topic}:{seen.reason}") not in job.asked_topics


TWIN_STOPS_MAX = 3
"""Stops of one double. One that outlives them is asked about when it runs; it must not hide the rest."""


def twin_topic(twin: Match) -> str:
    return f"twin:{twin.cluster_job_id}"


def running_twin_topics(twin: Match) -> tuple[str, str]:
    """Of its question, and of its having been said while another question stood."""
    return f"twins:{twin.cluster_job_id}", f"told:{twin.cluster_job_id}"


def twins_to_tell(job: Job, seen: Observation) -> tuple[Match, ...]:
    """Doubles that run, and of which nothing was said yet."""
    live = (twin for twin in seen.twins if twin.ours and twin.phase is Phase.running)
    return tuple(twin for twin in live if not {*running_twin_topics(twin)} & {*job.asked_topics})


def is_of_an_earlier_attempt(job: Job, twin: Match) -> bool:
    """It was given up for lost, and another was sent in its place."""
    return any(attempt.name == twin.name for attempt in job.attempts[:-1])


def twins_to_stop(job: Job, seen: Observation) -> tuple[Match, ...]:
    """Doubles that wait or were replaced, are ours, and were not told to stop too often already (I1)."""
    ours = (twin for twin in seen.twins if twin.ours and not job.is_takeover)
    moot = (twin for twin in ours if twin.phase in WAITS or is_of_an_earlier_attempt(job, twin))
    return tuple(twin for twin in moot if job.asked_topics.count(twin_topic(twin)) < TWIN_STOPS_MAX)


def concern_of(job: Job) -> str:
    return job.verdict.topic if job.verdict is not None else ""


def topic_is_new(job: Job) -> bool:
    return verdict_topic(job) not in job.asked_topics


ABOUT_NUMBERS = frozenset({"nan", "spike", "zero-loss"})
"""Concerns about what the numbers are: the counter moves on under them, so a milestone is no new cause."""


def verdict_topic(job: Job) -> str:
    """The key under which a concern is asked once (G5): a new attempt or a milestone since makes it new."""
    stands = concern_of(job) not in ABOUT_NUMBERS and job.track.milestone_at is not None
    moved = job.track.milestone_at.isoformat() if stands and job.track.milestone_at else ""
    return f"{concern_of(job) or 'odd'}:{job.attempt.number}:{moved}"


def question_at(job: Job, event: Answered | WakeDue) -> Question | None:
    """The open question that this answer, or the earliest passed deadline, is about."""
    if isinstance(event, Answered):
        return next((q for q in job.open_questions if q.number == event.number), None)
    due = [question for question in job.open_questions if question.answer_by <= event.at]
    return min(due, key=lambda question: question.answer_by, default=None)
