"""The verdict on a job that is over: the cluster's record, the exit code, the outputs, and what the log says.

None of them is believed alone: exit code 0 can stand on failed work, "finished" can follow failure, and a
line that frightens can follow success (F4). Where they contradict each other, that is said.

Never: call a job over that the cluster does not call over; call it succeeded against the evidence.
"""

from __future__ import annotations

from states.logs.case import Case, Want, first_words, place
from states.reading import Diagnosis, Verdict, VerdictName

OVER = frozenset({"succeeded", "failed", "stopped", "preempted", "lost", "gone"})
_CAUSE_OF = {"preempted": "scheduling.preempted", "lost": "node.lost", "stopped": "process.killed"}
_HOW = {"preempted": "It was preempted", "lost": "Its node was lost", "stopped": "It was stopped"}
_ALIVE = frozenset({"pending", "starting", "running"})


def ended(case: Case) -> Verdict | None:
    """Succeeded, failed or ambiguous for a job that is over; None for one that is not.

    An exit code alone ends a job whose phase is not known; one beside a phase of life is of an earlier start.
    """
    phase, code = case.scene.phase, case.scene.exit_code
    if phase == "gone":
        summary = "The cluster has no record of the job any more."
        return case.say("ambiguous", summary, "F6", topic="gone", wants=("events",))
    if phase == "succeeded" or (phase not in OVER | _ALIVE and code == 0):
        return _went_well(case)
    if phase in OVER or (phase not in _ALIVE and (code or case.scene.signal)):
        return _went_wrong(case)
    return None


def _went_well(case: Case) -> Verdict:
    outputs = case.scene.outputs_ok
    failure = case.died and not _finished_after(case)
    if outputs is False:
        name: VerdictName = "failed" if failure else "ambiguous"
        summary = "It ended without an error code, but declared outputs are missing." + _said(case)
        return case.say(name, summary, "F1", "F4")
    if failure and outputs is None:
        summary = "It ended without an error code, but the log ends in a failure." + _said(case)
        return case.say("ambiguous", summary, "F1", "F4")
    return case.say("succeeded", _sentence("It ended well", case), "F1", "F2", diagnosis=Diagnosis())


def _went_wrong(case: Case) -> Verdict:
    if case.scene.outputs_ok and _finished_after(case) and case.scene.phase == "failed":
        summary = "The work is done and its outputs are there, but the cluster calls it failed." + _said(case)
        return case.say("ambiguous", summary, "F1", "F4")
    phase, code, told = case.scene.phase, case.scene.exit_code, case.diagnosis
    if told.cause == "none" and phase in _CAUSE_OF:
        told = Diagnosis(cause=_CAUSE_OF[phase], owner="infra", retryable=phase != "stopped")
    how = _HOW.get(phase, f"It failed with exit code {code}" if code else "It failed")
    wants: tuple[Want, ...] = ("events",) if told.cause in ("none", "process.killed") else ()
    return case.say("failed", _sentence(how, case) + _said(case), "E3", "F1", diagnosis=told, wants=wants)


def _finished_after(case: Case) -> bool:
    """The log says that the work is complete, and says so after the evidence of trouble."""
    finished = case.progress.finished
    return finished is not None and finished.line > case.evidence_line


def _sentence(how: str, case: Case) -> str:
    at = place(case)
    return f"{how} at {at}." if at else f"{how}."


def _said(case: Case) -> str:
    words = first_words(case)
    return f" Cause: {case.cause}: {words}" if words and case.cause != "none" else ""
