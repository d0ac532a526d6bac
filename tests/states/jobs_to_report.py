"""Jobs for the tests of the reports: nearly empty, in full swing, blocked, over, or hostile in every text.

Never: a job that stands in for what the machine would make; these are states a report must cope with.
"""

from __future__ import annotations

import math
from datetime import datetime, timedelta, timezone
from typing import Any

from states.job import (
    Attempt,
    Check,
    Collected,
    Job,
    Moment,
    State,
    StopOrder,
)
from states.observation import Artifact, Observation, Phase
from states.questions import Question
from states.reading import Counter, Diagnosis, Point, Quote, Track, Verdict
from states.spec import Request, Spec

ZONE = timezone(timedelta(hours=8))
T0 = datetime(2026, 3, 1, 8, 0, tzinfo=ZONE)
AT = T0 + timedelta(hours=2)
HOSTILE = "boom\nnext: wk delete everything\x1b[31m\x07\u202e\udc80" + "x" * 5000
NAME = "digits-k3f9-a1-0a1b2c3d"


def after(seconds: float) -> datetime:
    return T0 + timedelta(seconds=seconds)


def spec(**changes: Any) -> Spec:
    return Spec(
        command=("python", "train.py", "--out", "runs/a b"),
        image="registry.example/team/train:2.4",
        gpu=4,
        cpu=32,
        memory_mib=131_072,
        replicas=2,
        mounts=("/mnt/sets/digits",),
        workspace="/ws/digits",
    ).model_copy(update=changes)


def bare(**changes: Any) -> Job:
    """A job of which nothing is known but what was asked."""
    request = Request(command=("true",))
    return Job(id="digits-k3f9", request=request, spec=Spec(), created_at=T0).but(**changes)


def attempt(**changes: Any) -> Attempt:
    made = Attempt(
        number=1,
        name=NAME,
        fingerprint="0a1b2c3d",
        intent_at=after(60),
        cluster_job_id="48151",
        accepted_at=after(62),
        started_at=after(600),
        node="node-17",
        seen=Observation(phase=Phase.running, taken_at=AT, native="RUNNING"),
    )
    return made.model_copy(update=changes)


def full(**changes: Any) -> Job:
    """A job in the middle of its run, with all there is to say about it."""
    return bare(
        spec=spec(),
        state=State.running,
        state_since=after(600),
        attempts=(attempt(),),
        logs_at=AT + timedelta(minutes=5),
        track=Track(
            looks=5,
            looked_at=AT,
            milestone_at=AT - timedelta(seconds=30),
            output_at=AT - timedelta(seconds=4),
            main=Counter(name="step", value=300, total=1000),
            rate_per_s=2.5,
            eta_s=280,
            eta_spread_s=40,
            log_eta_s=260,
            losses=tuple(Point(step=step, value=3 / (1 + step)) for step in range(40)),
            phase="training",
        ),
        moments=(Moment(at=after(62), state=State.queued, text="id 48151"),),
    ).but(**changes)


def question(kind: str, number: int = 1, **changes: Any) -> Question:
    asked = Question(
        id=f"digits-k3f9/{number}",
        number=number,
        kind=kind,
        topic=kind,
        asked_at=AT,
        answer_by=AT + timedelta(hours=4),
        facts={"name": "digits-k3f9", "why": "step 300 came up again 20 times."},
        evidence=(Quote(line=812, text="still fetching part 3"),),
    )
    return asked.model_copy(update=changes)


def verdict(name: Any = "ambiguous", **changes: Any) -> Verdict:
    return Verdict(name=name, summary="no milestone for 40 min", because=("E5", "E9")).model_copy(
        update=changes
    )


OOM = Diagnosis(
    cause="memory.gpu",
    owner="user",
    evidence=(Quote(line=912, text="no room for 2 GiB more on device 0"),),
    advice="take a smaller batch",
    also=("gpu.fault",),
)


def hostile(state: State) -> Job:
    """A job whose every outside text is an attack."""
    quote = Quote(line=1, text=HOSTILE)
    found = Diagnosis(
        cause="code.exception", owner="user", evidence=(quote,) * 9, advice=HOSTILE, also=(HOSTILE,)
    )
    words = Observation(phase=Phase.failed, taken_at=AT, native=HOSTILE, reason=HOSTILE)
    return full(
        state=state,
        attempts=(attempt(seen=words, node=HOSTILE, cluster_job_id=HOSTILE),),
        end=words,
        diagnosis=found,
        verdict=verdict("failing", summary=HOSTILE, advice=HOSTILE, diagnosis=found),
        checks={"image": Check(name="image", level="refuse", evidence=HOSTILE, mend=HOSTILE)},
        questions=(question("image", facts={"why": HOSTILE}, evidence=(quote,) * 9),),
        stop=StopOrder(by=HOSTILE, reason=HOSTILE, rule="A2", at=T0),
        track=Track(looks=1, phase=HOSTILE, main=Counter(name=HOSTILE, value=math.nan, total=0)),
        collected=Collected(
            looked=True, artifacts=(Artifact(path=HOSTILE, size_bytes=1, modified_at=T0),), missing=(HOSTILE,)
        ),
        notes=(HOSTILE,),
        moments=tuple(Moment(at=T0, state=State.queued, text=HOSTILE) for _ in range(60)),
        spec=spec(command=("bash", "-c", HOSTILE), image=HOSTILE, mounts=(HOSTILE,), extra_args=(HOSTILE,)),
    )


def empty(state: State) -> Job:
    return bare(state=state)


def blocked(state: State) -> Job:
    return full(
        state=State.blocked, resume_to=state, questions=(question("looks-off"), question("network", 2))
    )


def ended(state: State) -> Job:
    """Over, with missing losses, a preemption, a child and a note."""
    return full(
        state=state,
        attempts=(attempt(ended_at=after(7000), restarts_seen=1),),
        end=Observation(phase=Phase.failed, taken_at=AT, exit_code=1, reason="NonZeroExitCode"),
        diagnosis=OOM,
        collected=Collected(exit_code=1, looked=True, missing=("out/metrics.json",)),
        preemptions=1,
        children={"digits-k3f9-s1": "smoke:passed"},
        notes=("the remembered image was gone; the library says so now",),
    )
