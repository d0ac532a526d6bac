"""First learn, then decide: what an event teaches is put into the job before the table is asked.

So guards and actions read the job alone, and a verdict is judged once per look.

Never: change the state, ask for an effect.
"""

from __future__ import annotations

from states.conditions import plateaus
from states.events import AnyEvent, CheckFinished, ChildFinished, Interpreted, LogsRead, OutputsCollected
from states.job import Check, Job
from states.observation import Observation, Phase
from states.policy import Policy
from states.preflight import built_environment, with_values
from states.progress import advance
from states.reading import Diagnosis, Digest, Scene
from states.staging import COPY, with_child_row
from states.verdict import judge


def take_in(job: Job, event: AnyEvent) -> Job:
    """The job with the event's knowledge in it. Log reads bring a track and a verdict; the rest is as it was."""
    if isinstance(event, LogsRead) and event.readable and job.attempts and event.name == job.attempt.name:
        return _take_in_log(job, event)
    match event:
        case CheckFinished():
            return take_in_check(job, event.check)
        case ChildFinished():
            return take_in_child(job, event)
        case Interpreted():
            return job.but(interprets=job.interprets + 1)
        case OutputsCollected():
            return job.but(collected=event.collected)
    return job


def take_in_check(job: Job, check: Check) -> Job:
    """The check's row, and what it settled in the spec."""
    still_open = tuple(name for name in job.checks_open if name != check.name)
    spec = with_values(job.spec, check.found)
    noted = job.but(checks={**job.checks, check.name: check}, checks_open=still_open, spec=spec)
    return noted.with_note(check.facts.get("note", ""))


def take_in_child(job: Job, event: ChildFinished) -> Job:
    """The end of a smoke run is a row of the report; a built environment is the one that the run uses.
    A run that is not waited for (another's, or one whose end is known) teaches nothing."""
    if ":" in job.children.get(event.child, ":"):
        return job
    children = {**job.children, event.child: f"{event.purpose}:{'passed' if event.ok else 'failed'}"}
    noted = job.but(children=children)
    if event.purpose == "build" and event.ok:
        return noted.but(spec=with_values(job.spec, {"environment": built_environment(job)}))
    if COPY in event.found:  # a copy on a cluster path is mounted, not fetched (E11, D1)
        noted = noted.but(spec=with_values(noted.spec, {COPY: event.found[COPY]}))
    return with_child_row(noted, event)


def _take_in_log(job: Job, event: LogsRead) -> Job:
    digest = with_expected_total(event.digest, job.request.steps_total)
    track = advance(
        job.track,
        digest.progress,
        event.at,
        fresh=digest.fresh,
        wrote_at=digest.wrote_at,
        fingerprint=digest.fingerprint,
    )
    seen = job.end if event.final and job.end else job.attempt.seen
    told_at = event.asked_at or event.at
    silence_s = max((told_at - track.output_at).total_seconds(), 0.0) if track.output_at else None
    track = track.model_copy(update={"bests": plateaus(job, track, event)})
    verdict = judge(track, digest, scene(seen, silence_s), expecting(job))
    return job.but(track=track, verdict=verdict, diagnosis=best_diagnosis(job, digest, final=event.final))


def with_expected_total(digest: Digest, steps_total: float | None) -> Digest:
    """The look with the total that the request states, where the log counts steps and tells none (E12)."""
    main = digest.progress.main
    if steps_total is None or main is None or main.total is not None or main.unit not in ("step", ""):
        return digest
    if main.value > steps_total:
        return digest
    counted = main.model_copy(update={"total": steps_total})
    return digest.model_copy(update={"progress": digest.progress.model_copy(update={"main": counted})})


def expecting(job: Job) -> Policy:
    """The numbers, with the cadence that the person expects: who says that milestones come every two hours must
    not be told of a silence after one (E6). It makes the watch more patient, never less."""
    cadence_s, policy = job.request.cadence_s, job.policy
    if cadence_s is None or policy.stuck_cadences * cadence_s <= policy.hung_s:
        return policy
    patient_s = policy.stuck_cadences * cadence_s
    return policy.model_copy(update={"hung_s": patient_s, "stuck_s_min": max(patient_s, policy.stuck_s_min)})


def best_diagnosis(job: Job, digest: Digest, *, final: bool) -> Diagnosis:
    """The newest diagnosis that names a cause; a final read without one keeps the earlier (the root may have
    scrolled out of the bounded tail)."""
    return digest.diagnosis if digest.diagnosis.cause != "none" or not final else job.diagnosis


def scene(seen: Observation | None, silence_s: float | None) -> Scene:
    """What is known besides the log."""
    if seen is None:
        return Scene(phase=Phase.unknown, silence_s=silence_s)
    return Scene(
        phase=seen.phase,
        reasons=tuple(text for text in (seen.reason, seen.native) if text),
        exit_code=seen.exit_code,
        signal=seen.signal,
        silence_s=silence_s,
        suspended=seen.suspended,
    )
