"""Builders for the tests of the judgement: a run that counts steps, its looks, and trouble.

Never: assert anything.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from states.policy import Policy
from states.reading import Counter, Diagnosis, Digest, Progress, Quote, Scene, Sign, Track, Verdict
from states.verdict import judge

START = datetime(2031, 4, 5, 6, 0, tzinfo=UTC)
POLICY = Policy()
RUNNING = Scene(phase="running")
OLD = Track(
    milestone_at=START, output_at=START, looked_at=START + timedelta(days=3), looks=90, still_looks=80
)
STEP = Counter(name="step", value=400.0, total=1000.0, unit="step", line=90)
FULL_BAR = Counter(name="bar:Epoch #", value=50.0, total=50.0, line=89)


def steps(**known: object) -> Progress:
    """A run that counts steps, one every 30 s."""
    return Progress(**({"main": STEP, "counters": (STEP,), "cadence_s": 30.0} | known))


def digested(progress: Progress, diagnosis: Diagnosis | None = None, last: int = 100) -> Digest:
    return Digest(
        progress=progress,
        diagnosis=diagnosis or Diagnosis(),
        fresh=True,
        lines_read=last,
        excerpt=(Quote(line=last, text="the last line"),),
    )


def judged(
    progress: Progress,
    scene: Scene = RUNNING,
    diagnosis: Diagnosis | None = None,
    track: Track | None = None,
    policy: Policy = POLICY,
    *,
    fresh: bool | None = None,
) -> Verdict:
    """fresh: whether the look found something new; None: unless the scene or the track tells of a silence."""
    known = track or seen_for(600.0, progress)
    if fresh is None:
        fresh = scene.silence_s is None and known.looked_at == known.output_at
    return judge(known, digested(progress, diagnosis).model_copy(update={"fresh": fresh}), scene, policy)


def seen_for(seconds: float, progress: Progress) -> Track:
    """A job watched for so long, with output to the end and no milestone."""
    now = START + timedelta(seconds=seconds)
    return Track(started_at=START, looked_at=now, output_at=now, looks=3, cadence_s=progress.cadence_s)


def quiet_for(seconds: float, phase: str = "running", **known: object) -> Scene:
    return Scene(phase=phase, silence_s=seconds, **known)


def trouble(cause: str, *, line: int = 95, fatal: bool = True, times: int = 1, **known: object) -> Diagnosis:
    quote = Quote(line=line, text=f"something about {cause}")
    sign = Sign(entry=cause, cause=cause, role="root", owner="user", retryable=False, evidence=quote)
    return Diagnosis(cause=cause, evidence=(quote,), signs=(sign,) * times, fatal=fatal, **known)
