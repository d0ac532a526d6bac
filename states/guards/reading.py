"""Predicates of a look at the log: clear cases, concerns, what would settle them (RULES E).

Never: change anything, read a clock (the event's `at` is now), or raise on a late event.
"""

from __future__ import annotations

from states.conditions import met_goal
from states.events import (
    Interpreted,
    LogsRead,
)
from states.guards.parts import (
    concern_of,
    topic_is_new,
)
from states.job import Job, State


def reading_is_over(job: Job, event: object) -> bool:
    """The job is not running any more: a late log says nothing new."""
    return job.doing is not State.running


def the_log_was_not_readable(job: Job, event: LogsRead) -> bool:
    return not event.readable


def the_stop_condition_is_met(job: Job, event: LogsRead) -> bool:
    return met_goal(job, event) is not None


def is_provably_wasted(job: Job, event: LogsRead) -> bool:
    """Hung, diverged, crash loop, looping: clear cases, stopped on its own judgment (E5, E6, E7)."""
    return job.may_stop_alone and job.verdict is not None and job.verdict.provable


def is_a_clear_case_of_another(job: Job, event: LogsRead) -> bool:
    """The same in a job that was only handed over to be watched: asked, not stopped (A10)."""
    return job.verdict is not None and job.verdict.provable and topic_is_new(job)


def more_of_the_log_would_settle_it(job: Job, event: LogsRead) -> bool:
    verdict = job.verdict
    wants = verdict is not None and not verdict.settled and "more_tail" in verdict.wants
    return wants and 0 < event.lines < job.policy.log_lines_max


def the_model_may_settle_it(job: Job, event: LogsRead) -> bool:
    verdict = job.verdict
    wants = verdict is not None and not verdict.settled and "model" in verdict.wants
    return wants and job.interprets < job.policy.interpret_max and topic_is_new(job)


def the_network_is_stuck(job: Job, event: LogsRead) -> bool:
    return concern_of(job) == "network" and topic_is_new(job)


def a_download_drags(job: Job, event: LogsRead) -> bool:
    return concern_of(job) == "download" and topic_is_new(job)


def it_looks_off(job: Job, event: LogsRead) -> bool:
    """Ambiguous, doomed but not provably, or unsettled with nothing left to settle it: ask once per cause."""
    verdict = job.verdict
    if verdict is None or not topic_is_new(job):
        return False
    return not verdict.settled or verdict.name in ("ambiguous", "looping", "hung", "failing")


def the_trouble_is_over(job: Job, event: LogsRead) -> bool:
    """A question about a running job is open and the job moves again: withdrawn with a word why (E9)."""
    verdict = job.verdict
    moves = verdict is not None and verdict.settled and verdict.name in ("progressing", "succeeded")
    about = [q for q in job.open_questions if q.kind in ("looks-off", "network", "download", "clear-case")]
    return job.state is State.blocked and moves and bool(about) and len(about) == len(job.open_questions)


def a_report_is_due(job: Job, event: LogsRead) -> bool:
    since = job.reported_at
    return since is None or (event.at - since).total_seconds() >= job.policy.report_s


def it_is_still_unsettled(job: Job, event: Interpreted) -> bool:
    """What the model was asked about stands; a reading that comes after it was settled or asked is a note (G5)."""
    return job.verdict is not None and not job.verdict.settled and topic_is_new(job)


def the_reading_says_calm(job: Job, event: Interpreted) -> bool:
    """Valid, and it names a slow phase or progress: the job goes on, no question (DESIGN 6)."""
    return (
        not event.failed and event.verdict in ("progressing", "slow", "starting") and event.confidence >= 0.5
    )
