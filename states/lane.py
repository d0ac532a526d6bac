"""Which lane a run belongs in: by what a preemption costs, not by whether it "has checkpoints" (RULES C8).

A preemption kills the job; what it costs is the way back to where it hit: at most the time between two saved states,
or the whole run where none is saved. Minutes: the idle lane will do. Hours, or nobody knows: normal. The default is
normal; an explicit lane is kept, with a warning where it contradicts this. `lane: auto` leaves the choice to us: idle
only when the normal lane has no room; `lane: cheap`: idle wherever it costs minutes.

Never: change a lane that was named; call a cost cheap that nobody gave.
"""

from __future__ import annotations

from typing import NamedTuple

from states.cost import length_s
from states.job import Check, CheckLevel, Job
from states.words.wording import duration


class Preemption(NamedTuple):
    """lost_s: the most that one throws away (None: not known). cheap: it costs minutes. why: the arithmetic."""

    lost_s: float | None
    cheap: bool
    why: str


def preemption(job: Job) -> Preemption:
    """What a preemption of this run would cost (policy `idle_restart_s_max` bounds what counts as minutes)."""
    request, whole_s = job.request, length_s(job.request)
    known = [seconds for seconds in (request.checkpoint_every_s, whole_s) if seconds is not None]
    if not known:
        said = (
            "what a preemption costs is not known: give checkpoint_every_s, or how long it runs (expected_s)"
        )
        return Preemption(None, False, said)
    lost_s = min(known)
    why = f"a preemption costs up to {_time(job, lost_s)}" + (f" of {_time(job, whole_s)}" if whole_s else "")
    if request.checkpoint_every_s is None:
        why += ", since nothing says that it saves its state on the way"
    if objection := _objection(job, lost_s, whole_s):
        return Preemption(lost_s, False, f"{why}; {objection}")
    often = job.capabilities.idle_preempted_every_s
    if often and whole_s:
        why += (
            f"; one about every {_time(job, often)} makes {_time(job, lost_s / 2 * whole_s / often)} in all"
        )
    return Preemption(lost_s, True, why)


def _objection(job: Job, lost_s: float, whole_s: float | None) -> str:
    """Why the idle lane would not do in spite of its price; "" if it would."""
    request, often = job.request, job.capabilities.idle_preempted_every_s
    if lost_s > job.policy.idle_restart_s_max:
        return f"that is more than {_time(job, job.policy.idle_restart_s_max)}"
    if request.max_restarts == 0:
        return "and it is not to be started again (max_restarts: 0)"
    if often and often <= lost_s:
        return f"one comes about every {_time(job, often)}, so it would seldom reach its next saved state"
    if often and whole_s and whole_s / often > request.max_restarts:
        return f"one comes about every {_time(job, often)}, more often than {request.max_restarts} restarts allow"
    return ""


def may_go_idle(job: Job) -> bool:
    """The choice is ours, the cluster has an idle lane, and a preemption costs minutes (C8)."""
    return (
        job.request.lane in ("auto", "cheap") and "idle" in job.capabilities.lanes and preemption(job).cheap
    )


def lane_row(job: Job) -> Check:
    """The preflight row `lane`. found: the idle lane, where it is preferred and cheap; left to us, it is taken by
    the row `capacity`, when the normal lane has no room."""
    cost = preemption(job)
    match job.request.lane:
        case "idle":
            return _kept_idle(job, cost)
        case "normal":
            return _row("fine", f"normal, as asked; {cost.why}")
        case "cheap" if may_go_idle(job):
            said = f"idle, as it is preferred where it is cheap: {cost.why}"
            return _row("fine", said).model_copy(update={"found": {"lane": "idle"}})
        case "auto" | "cheap":
            open_door = "idle if there is no room now" if may_go_idle(job) else _why_not(job)
            said = f"normal, {open_door}: {cost.why}"
            return _row("fine", said, told=True)
    return _row("fine", f"normal, the default; {cost.why}")


def _kept_idle(job: Job, cost: Preemption) -> Check:
    """An explicit idle lane is kept; a warning where it contradicts the rule."""
    if "idle" not in job.capabilities.lanes:
        mend = "Leave `lane` out, or name another cluster."
        return _row("warn", "idle was asked for, and this cluster has no idle lane", mend=mend, told=True)
    if cost.cheap:
        return _row("fine", f"idle, as asked: {cost.why}", told=True)
    mend = "Use `lane: normal`, or save the state more often and say so in checkpoint_every_s."
    return _row("warn", f"idle is kept, as asked, but {cost.why}", mend=mend, told=True)


def _why_not(job: Job) -> str:
    return "since this cluster has no other" if "idle" not in job.capabilities.lanes else "not idle"


def _row(level: CheckLevel, evidence: str, *, mend: str = "", told: bool = False) -> Check:
    """told: it stands in the report of the submit too."""
    facts = {"note": f"lane: {evidence}" + (f". {mend}" if mend else "")} if told else {}
    return Check(name="lane", level=level, evidence=evidence, mend=mend, rule="C8", facts=facts)


def _time(job: Job, seconds: float) -> str:
    return duration(seconds, job.language)
