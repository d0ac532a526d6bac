"""How a run ended, and whether it deserves another try: from the cluster's record, the wrapper's, the outputs.

Never: succeeded without positive evidence (DESIGN 5, PHASES pitfall 2), resubmitted for a fault of the user's own
code (WALKS 5), or for the same failure twice without a milestone between.
"""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from states.job import Failure, Job, State
from states.observation import Phase

INFRA_CAUSES = frozenset({"node.lost", "node.fault", "gpu.hardware", "comm.error", "mount.stale"})
"""Causes that are the infrastructure's own; a repetition elsewhere plausibly succeeds."""


class Outcome(NamedTuple):
    """state: the terminal state that the evidence says. cause: `layer.cause` or "". why: one sentence."""

    state: State
    cause: str
    why: str


def outcome_of(job: Job) -> Outcome:
    """What the evidence says, strongest first: our own stop, the wrapper's exit code, the cluster's record."""
    end = job.end
    phase = end.phase if end else Phase.unknown
    code = _exit_code(job)
    if (
        job.stop is not None
        and phase is not Phase.succeeded
        and code != 0
        and not _ended_before_the_stop(job)
    ):
        return Outcome(State.stopped, job.diagnosis.cause if job.stop.rule != "A2" else "", job.stop.reason)
    if phase is Phase.stopped:
        return Outcome(State.stopped, "", "it was stopped from outside, not by this run's watch")
    if phase is Phase.failed or (code is not None and code != 0):
        return Outcome(State.failed, failure_cause(job), _failed_why(job, code))
    if phase in (Phase.preempted, Phase.lost):
        cause = "scheduling.preempted" if phase is Phase.preempted else "node.lost"
        return Outcome(State.failed, cause, f"{phase} and not restarted")
    if phase is Phase.succeeded or code == 0:
        return _succeeded(job)
    return Outcome(
        State.unknown, "", "the cluster has no record of how it ended, and nothing under the workspace tells"
    )


def _ended_before_the_stop(job: Job) -> bool:
    """It was over by itself (failed, vanished, stopped from outside), and the stop that was asked for afterwards was
    never sent, so it ended nothing (F6). A run that waited to be started again was ended by it."""
    sent = job.stop is not None and job.stop.tries > 0
    over = job.end is not None and job.end.phase in (Phase.failed, Phase.gone, Phase.stopped)
    return not sent and (over or bool(_exit_code(job)))


def _succeeded(job: Job) -> Outcome:
    missing = job.collected.missing
    if missing:
        return Outcome(
            State.failed, "data.missing", f"it ended with exit code 0, but {', '.join(missing)} is not there"
        )
    if job.diagnosis.fatal and not job.request.outputs:
        return Outcome(
            State.failed,
            job.diagnosis.cause,
            "it ended with exit code 0, but its log ends in a failure that nothing caught",
        )
    return Outcome(
        State.succeeded,
        "",
        "exit code 0" + (" and every declared output is there" if job.request.outputs else ""),
    )


def failure_cause(job: Job) -> str:
    """The cluster's own cause where it names one, else what the log says started it."""
    told = job.end.cause if job.end else ""
    return told or (job.diagnosis.cause if job.diagnosis.cause != "none" else "")


def worth_another_try(job: Job, cause: str, at: datetime) -> bool:
    """Infrastructure's fault, within its own budget, and progress since the same failure (WALKS 5)."""
    if job.is_takeover or job.stop is not None or job.parent:
        return False
    return is_infra(job, cause) and not why_no_further_try(job, cause)


def is_infra(job: Job, cause: str) -> bool:
    """The fault is not the run's own, and a repetition elsewhere plausibly succeeds."""
    read = job.diagnosis
    return cause in INFRA_CAUSES or (cause == read.cause and read.owner == "infra" and read.retryable)


def why_no_further_try(job: Job, cause: str) -> str:
    """What speaks against another try after a fault of the infrastructure, in words; "" if nothing does."""
    if came_again_without_progress(job, cause):
        return f"the same failure ({cause}) came again without progress, so it is not tried another time"
    if job.resubmissions >= job.policy.infra_resubmits_max:
        return f"its {job.policy.infra_resubmits_max} resubmissions after faults of the cluster are spent"
    return ""


def failure_now(job: Job, cause: str) -> Failure:
    """The signature of a failure that has just happened."""
    track, main = job.track, job.track.main
    if main is None:
        return Failure(fingerprint=cause, milestone_at=track.milestone_at)
    furthest = max(main.value, track.highest.get(main.name, main.value))
    return Failure(fingerprint=cause, milestone_at=track.milestone_at, counter=main.name, reached=furthest)


def came_again_without_progress(job: Job, cause: str) -> bool:
    """It failed this way before, and has not come further since: by its main counter where both attempts show the
    same one (a new attempt passes the old steps again), else by whether any milestone came."""
    now = failure_now(job, cause)
    return any(_is_no_further(before, now) for before in job.failures if before.fingerprint == cause)


def _is_no_further(before: Failure, now: Failure) -> bool:
    if before.reached is not None and now.reached is not None and before.counter == now.counter:
        return now.reached <= before.reached
    return now.milestone_at == before.milestone_at


def _exit_code(job: Job) -> int | None:
    """The command's own code: the wrapper's record first, then the cluster's."""
    if job.collected.exit_code is not None:
        return job.collected.exit_code
    return job.end.exit_code if job.end else None


def _failed_why(job: Job, code: int | None) -> str:
    signal = job.collected.signal or (job.end.signal if job.end else None)
    reason = job.end.reason if job.end and job.end.reason else ""
    parts = [f"exit code {code}" if code is not None else "", f"signal {signal}" if signal else "", reason]
    said = dict.fromkeys(part for part in parts if part)  # a cluster's reason often is the exit code again
    return ", ".join(said) or "the cluster says failed"
