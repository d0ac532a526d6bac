"""How long nothing may be heard: silence against the cadence of the phase, never a constant alone (E6).

Regular output that stops is hung after about an hour and many cadences; start-up, compiling, a save, an
evaluation, a quiet prediction and an idle service are silent for good reasons and are only asked about (E9).

Never: count the silence of a suspended job; call a silence provable whose cadence was not learnt.
"""

from __future__ import annotations

import re

from states.logs.case import Case, complete, place, span
from states.reading import Verdict

DONE_BUT_RUNS_S = 600.0
"""The log says that the work is complete, yet the job stays on in silence: asked about after this long."""

BOUNDARY_LINES = 3
"""A counter that became full within so many lines of the last milestone: a part of the work just ended."""

_QUIET = re.compile(
    r"sav|checkpoint|load|read|prepar|build|compil|init|start|setup|download|upload|first step|warm|captur|map"
    r"|token|eval|valid|test|predict|generat|infer|merg|export|wait|sync|rendezvous|barrier|idle|install|finish"
    r"|clean|resum|serv",
    re.IGNORECASE,
)


def quiet_phase(case: Case) -> bool:
    """The last phase that the log named, with no counter after it, is one that may be silent."""
    progress = case.progress
    phase = progress.phase or case.track.phase
    return bool(phase and _QUIET.search(phase)) and (
        progress.phase_line == 0 or progress.phase_line >= case.milestone_line
    )


def silent(case: Case) -> Verdict | None:
    """Hung, ambiguous or slow when silence is longer than it should be; None when it is not, or not known."""
    silence_s = case.silence_s
    if silence_s is None or case.scene.suspended:
        return None
    if case.progress.finished is not None:
        return _done_but_runs(case, silence_s)
    if case.progress.throughput_only or case.cadence_s is None or quiet_phase(case) or _at_its_end(case):
        return _silent_for_a_reason(case, silence_s)
    return _overdue(case, silence_s, case.cadence_s)


def _done_but_runs(case: Case, silence_s: float) -> Verdict | None:
    if silence_s < DONE_BUT_RUNS_S:
        return None
    summary = f"The log says that the work is done, but the job runs on in silence for {span(silence_s)} now."
    return case.say("ambiguous", summary, "E9", topic="done-but-runs")


def _silent_for_a_reason(case: Case, silence_s: float) -> Verdict | None:
    if silence_s < case.policy.hung_s:
        return None
    phase = case.progress.phase or case.track.phase
    if case.progress.throughput_only:
        why = "a service without requests is silent too"
    elif case.cadence_s is None:
        why = "no regular output was seen before, so it may be a long phase"
    else:
        why = f"it may be a long phase ({phase})" if phase else "it may be finishing"
    return case.say("ambiguous", f"No output for {span(silence_s)}; {why}.", "E6", "E9", topic="silent")


def _at_its_end(case: Case) -> bool:
    return case.main is not None and complete(case.main)


def _overdue(case: Case, silence_s: float, cadence_s: float) -> Verdict | None:
    policy = case.policy
    many_s = policy.hung_cadences * cadence_s
    usual = f"where something came every {span(cadence_s)}; last: {place(case) or 'output without a counter'}"
    if silence_s >= max(policy.hung_s, many_s):
        summary = f"No output for {span(silence_s)} {usual}."
        sure = (
            not case.digest.fresh
            and _is_sure(case)
            and _seen_s(case, silence_s) >= max(policy.hung_s, many_s)
        )
        return case.say("hung", summary, "E6", topic="hung", provable=sure)
    if silence_s >= max(policy.stuck_s_min, many_s):
        return case.say("hung", f"No output for {span(silence_s)} {usual}.", "E6", "E9", topic="hung")
    if silence_s >= max(policy.stuck_s_min, policy.stuck_cadences * cadence_s):
        return case.say("slow", f"No output for {span(silence_s)} {usual}.", "E6")
    return None


def _seen_s(case: Case, silence_s: float) -> float:
    """Of the silence, what fell into our own looks: what went before the first is known by the cluster's clock alone.
    That may be hours off ours, so it proves nothing."""
    began, heard = case.track.started_at, case.track.output_at
    unseen_s = (began - heard).total_seconds() if began is not None and heard is not None else 0.0
    return silence_s - max(0.0, unseen_s)


def _is_sure(case: Case) -> bool:
    """Regular output was really due: the work's own counter was on its way, not at the end of an epoch or a part,

    where an evaluation or a save that says nothing may follow.
    """
    recent = case.milestone_line - BOUNDARY_LINES
    at_a_boundary = any(complete(one) for one in case.progress.counters if one.line >= recent)
    return case.works and not at_a_boundary
