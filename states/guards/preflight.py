"""Predicates of the gate before the submit.

Never: change anything, read a clock (the event's `at` is now), or raise on a late event.
"""

from __future__ import annotations

from states.events import (
    ChildFinished,
)
from states.job import Job, State
from states.preflight import is_settled, needs_preview, needs_smoke, refusals, unanswered
from states.staging import failed_runs, look_again_due, preparation_due


def is_the_first(job: Job, event: object) -> bool:
    """Nothing has happened to this job before."""
    return job.seq == 0


def is_a_takeover(job: Job, event: object) -> bool:
    """The first event of a job that somebody else submitted."""
    return is_the_first(job, event) and job.is_takeover


def a_check_refuses(job: Job, event: object) -> bool:
    return not job.checks_open and bool(refusals(job))


def something_is_missing(job: Job, event: object) -> bool:
    return not job.checks_open and bool(unanswered(job))


def a_preview_is_due(job: Job, event: object) -> bool:
    return is_settled(job) and needs_preview(job)


def a_preparation_is_due(job: Job, event: object) -> bool:
    """Something is missing that a run of its own can put in place."""
    return is_settled(job) and bool(preparation_due(job))


def a_second_look_is_due(job: Job, event: object) -> bool:
    """A preparation is over: what it was to put in place is looked at again."""
    return is_settled(job) and bool(look_again_due(job))


def the_children_failed_too_often(job: Job, event: ChildFinished) -> bool:
    most = job.policy.smoke_runs_max if event.purpose == "smoke" else job.policy.prepare_runs_max
    return the_child_failed(job, event) and failed_runs(job, event.purpose) >= most


def a_smoke_run_is_due(job: Job, event: object) -> bool:
    return is_settled(job) and needs_smoke(job)


def all_is_settled(job: Job, event: object) -> bool:
    return is_settled(job)


def preflight_is_under_way(job: Job, event: object) -> bool:
    """Blocked in preflight: what comes back meanwhile is kept, and judged once all that is open is answered (G3)."""
    return job.doing is State.preflight


def the_child_failed(job: Job, event: ChildFinished) -> bool:
    """A smoke or build run of ours failed: the real submit is not spent on it (D4); asked once per run."""
    ours = job.children.get(event.child, "").endswith(":failed")
    row = job.checks.get(event.purpose)
    settled = row is not None and row.level != "ask"
    return ours and not settled and f"child:{event.child}" not in job.asked_topics
