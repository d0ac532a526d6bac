"""The first and the last line of a run that is over: what became of it, and the next safe action.

Both follow the evidence that `outcome` weighed; the wording is all that is added here (F2, F4).

Never: advise a delete (A7), or a second run where the first may still be alive without a look first (I1, F6).
"""

from __future__ import annotations

from states.job import Check, Job, State
from states.observation import Phase
from states.outcome import failure_cause, outcome_of
from states.reading import Diagnosis, Owner
from states.words.wording import plain, say

STANDING = frozenset({"refuse", "ask", "could_not"})
"""Levels of a check that kept a run from being submitted."""

OWN = "watchkeeper"
"""Who ordered a stop that no person asked for."""

OWNERS: dict[str, Owner] = {
    "image": "image",
    "mount": "data",
    "storage": "data",
    "data": "data",
    "network": "network",
    "download": "network",
    "node": "infra",
    "gpu": "infra",
    "scheduling": "infra",
}
"""Whose a cause is that only the cluster's record names: by its layer; the run's own otherwise."""

NEXT_BY_CAUSE = {
    "scheduling.time_limit": "next.time_limit",
    "scheduling.preempted": "next.preempted",
    "memory.host": "next.memory",
    "memory.gpu": "next.gpu_memory",
}


def diagnosis_of(job: Job) -> Diagnosis:
    """What the log says: the triaged cause of the end if there is one, else that of the latest verdict."""
    if job.diagnosis.cause == "none" and job.verdict:
        return job.verdict.diagnosis
    return job.diagnosis


def cause_of(job: Job) -> str:
    """`layer.cause` of the end, the cluster's own record before the log's; "" if none."""
    found = diagnosis_of(job).cause
    weighed = outcome_of(job).cause if job.state is State.failed else failure_cause(job)
    return weighed or (found if found != "none" else "")


def owner_of(job: Job) -> Owner:
    """Whose the cause is: the log's reading where it is the same cause, else by the layer of the code."""
    cause, found = cause_of(job), diagnosis_of(job)
    if not cause or cause == found.cause:
        return found.owner
    return OWNERS.get(cause.partition(".")[0], "user")


def has_cause(job: Job) -> bool:
    """Whether a cause belongs in the report of the end: not after a success, nor after a wanted stop."""
    if job.state is State.stopped and job.stop is not None:
        return job.stop.by == OWN and job.stop.rule != "E8"
    return job.state in {State.failed, State.stopped, State.unknown}


def unproved_checks(job: Job) -> list[Check]:
    """What the submit went ahead without: checks that could not look; what a person answered is told as answered."""
    return [check for check in job.checks.values() if check.level == "could_not"]


def standing_checks(job: Job) -> list[Check]:
    """The checks that stood in the way, refusals first."""
    found = [check for check in job.checks.values() if check.level in STANDING]
    return sorted(
        (check for check in found if check.name not in job.overridden),
        key=lambda check: check.level != "refuse",
    )


def outcome_line(job: Job) -> str:
    """What became of the run, as one sentence with its id."""
    if not job.is_terminal:
        return _tell(job, "outcome.live", state=_tell(job, f"state.{job.state}"))
    why = plain(job.outcome)
    if job.id in why:
        return why
    # The machine's own sentence is English; in Chinese it only fills in for what can't be told otherwise.
    told_first = job.language == "en" or job.state is State.not_submitted
    detail = (why or _detail(job)) if told_first else (_detail(job) or why)
    cause = cause_of(job) if job.state is State.failed else ""
    parts = [part for part in (cause if cause not in detail else "", detail.rstrip(".。")) if part]
    return _tell(job, f"outcome.{job.state}", detail=": " + ", ".join(parts) if parts else "")


def next_action(job: Job) -> str:
    """The next safe action, as one sentence (F2)."""
    if job.next_action:
        return plain(job.next_action)
    if job.open_questions:
        return _tell(job, "next.answer", id=job.open_questions[0].id)
    again = _tell(job, "again.takeover" if job.is_takeover else "again.own")
    workspace = plain(job.spec.workspace) or _tell(job, "its_workspace")
    return _tell(job, _next_phrase(job), workspace=workspace, again=again)


def exit_words(job: Job) -> str:
    """How the program ended, as the wrapper recorded it, else as the cluster tells; "" if neither does."""
    for source in (job.collected, job.end):
        if source and source.signal:
            return _tell(job, "signal", number=str(source.signal))
        if source and source.exit_code is not None:
            return _tell(job, "exit", code=str(source.exit_code))
    return ""


def _tell(job: Job, phrase: str, **facts: str) -> str:
    return say(job.language, phrase, **{"job": job.id, **facts})


def _detail(job: Job) -> str:
    """Why it ended so, from the record."""
    phase = job.end.phase if job.end else Phase.unknown
    reason = plain(job.end.reason) if job.end else ""
    match job.state:
        case State.failed if job.collected.missing:
            return _tell(job, "outputs_missing", exit=exit_words(job) or phase.value)
        case State.failed if phase in {Phase.preempted, Phase.lost}:
            return _tell(job, "not_restarted")
        case State.failed:
            return ", ".join(part for part in (exit_words(job), reason) if part)
        case State.stopped:
            return plain(job.stop.reason) if job.stop else _tell(job, "stopped_outside")
        case State.not_submitted:
            standing = standing_checks(job)
            return plain(f"{standing[0].name}: {standing[0].evidence}").rstrip(": ") if standing else ""
        case State.unknown:
            return _tell(job, "no_record")
        case _:
            return exit_words(job)


def _next_phrase(job: Job) -> str:
    """Which action fits: by outcome, and for a failure by its cause or whose it is."""
    match job.state:
        case State.succeeded if job.collected.missing:
            return "next.missing"
        case State.failed if not cause_of(job):
            return "next.failed"
        case State.failed:
            by_owner = f"next.{owner_of(job)}" if owner_of(job) != "unknown" else "next.failed"
            return NEXT_BY_CAUSE.get(cause_of(job), by_owner)
        case State.stopped:
            return _next_stopped(job)
        case _:
            return f"next.{job.state}" if job.is_terminal else "next.live"


def _next_stopped(job: Job) -> str:
    order = job.stop
    if order is None:
        return "next.stopped_outside"
    if order.rule == "E8":
        return "next.stopped_met"
    return "next.stopped_own" if order.by == OWN else "next.stopped"
