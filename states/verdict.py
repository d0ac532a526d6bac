"""The judgement on one job: phase, milestones over time, causes and exit code become a verdict with reasons.

`judge` asks a short list of views in a fixed order; the first that has something to say decides. Start-up is
never failure (E1); what ended is judged by its record and its outputs (`ending`); what runs is judged by
milestones, not by output (E5), and silence by the cadence of its phase (E6). `provable` is true only where
stopping without a person is right, never on a guess: a wrong stop is the worst fault here. The rest is asked
(E9), and trouble of a job that runs is believed at the second look.

Never: read a clock (times are in the track and the scene); let a word of the log alone stop anything (I2).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from states.digest import digest_lines
from states.logs.case import Case, Want, complete, first_words, place, span
from states.logs.divergence import diverged
from states.logs.ending import ended
from states.logs.repeating import crash_loops, drags, loops
from states.logs.signatures import Signatures
from states.logs.silence import quiet_phase, silent
from states.policy import Policy
from states.progress import advance
from states.reading import Diagnosis, Digest, Line, Scene, Track, Verdict

_TRANSIENT = frozenset(
    {"none", "scheduling.capacity", "scheduling.quota", "scheduling.preempted", "download.slow"}
)
_WORKING = frozenset({"evaluating", "serving", "saving checkpoint", "uploading"})
"""Phases of the work itself; it may print no counter in them."""

_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)

ONCE = {"stuck_s_min": 10.0, "second_look_s": 0.0}
"""A person who looks once is told of a suspicion at once; a watch looks twice and waits before it asks."""


class Looked(NamedTuple):
    """One file, read once: what stands in it, what that adds to earlier looks, and the verdict."""

    digest: Digest
    track: Track
    verdict: Verdict


def judge(track: Track, digest: Digest, scene: Scene, policy: Policy) -> Verdict:
    """The verdict on what one look showed; `advance` has put it into the track before.

    Nothing known: "unsettled", with what would settle it. Every verdict names the rules it rests on.
    """
    case = Case(track, digest, scene, policy)
    return next((verdict for view in _VIEWS if (verdict := view(case)) is not None), _unsettled(case))


def look(
    found: Sequence[Line],
    scene: Scene,
    policy: Policy,
    *,
    before: Track,
    fingerprint: str,
    bytes_read: int,
    signatures: Signatures | None = None,
) -> Looked:
    """Reads and judges lines without a watch behind them: `wk read`, the benchmarks, a report on a file.

    Cadence and rates come from the lines alone; `before` is what an earlier look left, or an empty track.
    """
    seen = digest_lines(
        found,
        before=before,
        reasons=scene.reasons,
        exit_code=scene.exit_code,
        signal=scene.signal,
        fingerprint=fingerprint,
        bytes_read=bytes_read,
        signatures=signatures,
    )
    at = before.looked_at or _EPOCH
    track = advance(before, seen.progress, at, fresh=seen.fresh, wrote_at=None, fingerprint=fingerprint)
    return Looked(seen, track, judge(track, seen, scene, policy.model_copy(update=ONCE)))


def _not_started(case: Case) -> Verdict | None:
    """Waiting and image pulls are start-up (E1), unless the cluster names what never passes by itself (E3)."""
    if case.scene.phase not in ("pending", "starting"):
        return None
    told = case.diagnosis
    if told.cause in _TRANSIENT or told.retryable:
        return case.say("starting", f"Still starting ({case.scene.phase}). {first_words(case)}".strip(), "E1")
    return case.say(
        "failing", f"It cannot start: {first_words(case)}", "E3", "E9", topic=f"start:{told.cause}"
    )


def _died(case: Case) -> Verdict | None:
    """A process ended of its trouble. While the job runs it is failing, and hung when silence confirms it."""
    if not case.died or not case.lasts:
        return None
    finished = case.progress.finished
    if finished is not None and finished.line > case.evidence_line:
        return None
    if case.runs and (confirmed := silent(case)) is not None and confirmed.provable:
        return confirmed
    where = f" at {place(case)}" if place(case) else ""
    summary = f"A process ended{where}: {first_words(case)}"
    if case.runs:
        return case.say("failing", summary, "E3", "E9", topic=f"fatal:{case.cause}")
    if case.cause.startswith("hang.") and case.main is not None and case.main.value == 0:
        return case.say(
            "hung", f"It was ended without having made one step: {place(case)}.", "E6", "F1", topic="hung"
        )
    return case.say("failed", summary, "E3", "F1", topic=f"fatal:{case.cause}")


def _done(case: Case) -> Verdict | None:
    """The text says that the work is complete, or all counters are full and nobody says that it runs."""
    finished = case.progress.finished
    if finished is not None and not _goes_on_after(case, finished.line):
        where = f" Last: {place(case)}." if place(case) else ""
        summary = f"The log says that the work is complete: {finished.text[:140]}.{where}"
        return case.say("succeeded", summary, "F1", "F4", diagnosis=Diagnosis())
    if not case.runs and case.cause == "none" and _shut_down(case):
        return case.say("succeeded", "It shut down in order, and nothing in the log went wrong.", "F1", "F4")
    if case.scene.phase == "unknown" and _all_counted(case):
        summary = f"Every counter has reached its total: {place(case)}."
        return case.say("succeeded", summary, "E5", "F4", diagnosis=Diagnosis())
    return None


def _goes_on_after(case: Case, line: int) -> bool:
    """Another piece of work was begun after the sentence (an evaluation after the training)."""
    return case.progress.phase == "evaluating" and case.progress.phase_line > line


def _shut_down(case: Case) -> bool:
    return case.progress.phase == "cleaning up" and case.progress.phase_line >= case.milestone_line


def _all_counted(case: Case) -> bool:
    main = case.main
    if main is None or not main.unit or not case.works or case.progress.phase_line > case.milestone_line:
        return False
    return all(
        complete(one) for one in (main, *case.progress.counters) if one.total is not None and one.line
    ) and complete(main)


def _stuck(case: Case) -> Verdict | None:
    """Output flows, but no milestone came for many cadences (E5, E9)."""
    still_s, cadence_s, policy = case.still_s, case.cadence_s, case.policy
    if still_s is None or cadence_s is None or case.progress.throughput_only or case.scene.suspended:
        return None
    calm = quiet_phase(case) or bool(case.progress.losses)
    limit_s = max(policy.hung_s if calm else policy.stuck_s_min, policy.stuck_cadences * cadence_s)
    if still_s < limit_s or case.track.still_looks < 2:
        return None
    summary = (
        f"Output flows, but no milestone came for {span(still_s)} where one came every {span(cadence_s)}."
    )
    return case.say("ambiguous", f"{summary} Last: {place(case)}.", "E5", "E9", topic="stuck")


def _starting(case: Case) -> Verdict | None:
    """No counter of the work yet, and nothing that frightens. After an hour of that, it says too little."""
    phase = case.progress.phase or ("getting ready" if case.digest.lines_read else "no output yet")
    if case.works or case.progress.throughput_only or phase in _WORKING or _consequences_only(case):
        return None
    if not case.digest.lines_read and not case.runs:
        return None
    if case.runs and not case.progress.phase and case.age_s >= case.policy.starting_ask_s:
        return None
    return case.say("starting", f"Still starting: {phase}.", "E1", diagnosis=Diagnosis())


def _consequences_only(case: Case) -> bool:
    """Processes were taken down, but what began it is not in this piece."""
    return case.cause == "none" and any(
        sign.role in ("cascade", "confirmation") for sign in case.diagnosis.signs
    )


def _moving(case: Case) -> Verdict | None:
    phase = case.progress.phase
    if not case.works and not case.progress.throughput_only and phase not in _WORKING:
        return None
    eta_s = case.track.eta_s
    left = f", about {span(eta_s)} left" if eta_s else ""
    what = place(case) or (phase if phase in _WORKING else "a service that reports its throughput")
    end = " (complete)" if case.main is not None and complete(case.main) else ""
    return case.say("progressing", f"Progressing: {what}{end}{left}.", "E5", diagnosis=Diagnosis())


def _unsettled(case: Case) -> Verdict:
    wants: tuple[Want, ...] = (
        ("more_tail", "events", "model") if _consequences_only(case) else ("head", "events", "model")
    )
    return case.say("unsettled", "The log says too little to judge.", "I3", topic="unclear", wants=wants)


_VIEWS: tuple[Callable[[Case], Verdict | None], ...] = (
    _not_started,
    ended,
    crash_loops,
    loops,
    _died,
    diverged,
    silent,
    _done,
    drags,
    _stuck,
    _starting,
    _moving,
)
