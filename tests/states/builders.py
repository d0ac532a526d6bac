"""Jobs and events for the tests of the machine: jobs are led into their states by events, never set into them.

Times are seconds after T0; an event without a time of its own happens one second after the one before.

Never: a job that the machine itself could not have made.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from states import events as happened
from states.events import AnyEvent
from states.job import Check, CheckLevel, Collected, Job
from states.machine import Step, step
from states.observation import Capabilities, Match, Observation, Phase
from states.reading import Counter, Diagnosis, Digest, Point, Progress, Quote, Sign
from states.spec import Existing, Request, draft

T0 = datetime(2026, 3, 1, 8, 0, tzinfo=UTC)
CHECKS = ("image", "capacity")

Teller = Callable[[Job, datetime], AnyEvent]
"""What happens next, given the job as it is and the moment."""


def after(seconds: float) -> datetime:
    return T0 + timedelta(seconds=seconds)


def request(**changes: Any) -> Request:
    values: dict[str, Any] = {
        "command": ("python", "train.py"),
        "name": "digits",
        "gpu": 1,
        "image": "reg/a:1",
    }
    return Request(**{**values, **changes})


def new_job(**changes: Any) -> Job:
    """A job that nothing has happened to. `existing=True` is one handed over, `may_stop=True` with leave to stop."""
    existing, may_stop = changes.pop("existing", False), changes.pop("may_stop", False)
    asked = request(**changes.pop("request", {}))
    if existing or may_stop:
        taken = Existing(name="theirs", cluster_job_id="77", may_stop=may_stop)
        asked = asked.model_copy(update={"existing": taken, "max_restarts": 0})
    job = Job(
        id="digits-k3f9",
        request=asked,
        spec=draft(asked, workspace="ws"),
        created_at=T0,
        owner="kim",
        capabilities=Capabilities(submit_timeout_s=30.0, visible_within_s=5.0),
    )
    return job.but(**changes)


def at_of(job: Job) -> datetime:
    """A second after the last thing that is known to have happened."""
    return (job.moments[-1].at if job.moments else job.created_at) + timedelta(seconds=1)


def take(job: Job, event: AnyEvent) -> Step:
    """One step, with the counting that the store does."""
    taken = step(job, event)
    return taken._replace(job=taken.job.but(seq=job.seq + 1))


def led(job: Job, *tellers: Teller | AnyEvent, start_s: float = 1.0, every_s: float = 1.0) -> Job:
    """The job after these events, `every_s` seconds apart."""
    at = after(start_s)
    for teller in tellers:
        event = teller if isinstance(teller, happened.Event) else teller(job, at)
        at = max(at, event.at)
        job = take(job, event).job
        at += timedelta(seconds=every_s)
    return job


# --- tellers -----------------------------------------------------------------------------------------------


def delegated(*checks: str) -> Teller:
    return lambda job, at: happened.Delegated(at=at, by="kim", checks=checks)


def check_is(name: str, level: CheckLevel = "fine", question: str = "", **found: Any) -> Teller:
    row = Check(name=name, level=level, evidence=f"{name} is {level}", question=question, found=found)
    return lambda job, at: happened.CheckFinished(at=at, check=row)


def submitted(cluster_job_id: str = "41") -> Teller:
    return lambda job, at: happened.Submitted(at=at, name=name_of(job), cluster_job_id=cluster_job_id)


def rejected(cause: str = "", *, retryable: bool = False) -> Teller:
    return lambda job, at: happened.SubmitRejected(
        at=at, name=name_of(job), reason="no", cause=cause, retryable=retryable
    )


def unclear() -> Teller:
    return lambda job, at: happened.SubmitUnclear(at=at, name=name_of(job), reason="timed out")


def looked_up(*matches: Match, reachable: bool = True) -> Teller:
    reason = "" if reachable else "no answer"
    return lambda job, at: happened.LookedUp(
        at=at, name=name_of(job), reachable=reachable, matches=matches, reason=reason
    )


def match(cluster_job_id: str = "41", phase: Phase = Phase.pending, *, ours: bool = True) -> Match:
    return Match(cluster_job_id=cluster_job_id, name="", phase=phase, ours=ours, submitted_at=T0)


def seen(phase: Phase, **more: Any) -> Teller:
    """One look at the present attempt."""
    return lambda job, at: happened.Observed(
        at=at, name=name_of(job), observation=Observation(**{"phase": phase, "taken_at": at, **more})
    )


def away() -> Teller:
    return lambda job, at: happened.ClusterUnreachable(at=at, reason="refused connection")


def log(read: Digest, *, lines: int = 200, final: bool = False, readable: bool = True) -> Teller:
    return lambda job, at: happened.LogsRead(
        at=at, name=name_of(job), digest=read, lines=lines, final=final, readable=readable, reason=""
    )


def interpreted(verdict: str = "", *, failed: str = "") -> Teller:
    return lambda job, at: happened.Interpreted(
        at=at, name=name_of(job), verdict=verdict, confidence=0.9, summary="a reading", failed=failed
    )


def answered(reply: str, number: int | None = None) -> Teller:
    """An answer to the first open question, or to the one of this number."""

    def tell(job: Job, at: datetime) -> AnyEvent:
        first = job.open_questions[0].number if job.open_questions else 1
        return happened.Answered(at=at, number=number or first, reply=reply, by="kim")

    return tell


def woken() -> Teller:
    """The job's own timer, at its own time."""
    return lambda job, at: happened.WakeDue(at=max(at, job.wake_at or at))


def deadline_passed() -> Teller:
    """The last deadline of the open questions has come."""
    return lambda job, at: happened.WakeDue(at=max([at, *(q.answer_by for q in job.open_questions)]))


def stop_asked_for() -> Teller:
    return lambda job, at: happened.StopRequested(at=at, by="kim", reason="enough")


def collected(**found: Any) -> Teller:
    return lambda job, at: happened.OutputsCollected(at=at, collected=Collected(looked=True, **found))


def child_is(ok: bool, purpose: str = "smoke") -> Teller:
    def tell(job: Job, at: datetime) -> AnyEvent:
        child = next((key for key, what in job.children.items() if what == purpose), "digits-k3f9-s1")
        return happened.ChildFinished(at=at, child=child, purpose=purpose, ok=ok, summary=f"it ended {ok}")

    return tell


def given_up(effect: str, name: str = "") -> Teller:
    return lambda job, at: happened.EffectGivenUp(at=at, effect=effect, name=name, reason="it kept failing")


def name_of(job: Job) -> str:
    return job.attempts[-1].name if job.attempts else "none"


# --- what stands in a log ----------------------------------------------------------------------------------

STEP = Counter(name="step", value=400.0, total=1000.0, unit="step", line=99)


def moving(value: float = 400.0) -> Digest:
    """Steps that come."""
    main = STEP.model_copy(update={"value": value})
    return Digest(
        progress=Progress(main=main, counters=(main,)), fresh=True, lines_read=100, fingerprint=f"{value}"
    )


def nan_for(steps: int) -> Digest:
    """The loss was a number once, and is none for so many steps: with enough of them, provably wasted."""
    progress = Progress(main=STEP, counters=(STEP,), losses=(Point(step=1, value=2.0),), loss_nan_run=steps)
    return Digest(progress=progress, fresh=True, lines_read=100, fingerprint="nan")


def trouble(cause: str, *, fatal: bool = False, repeats: int = 0) -> Digest:
    """A cause stands in the log, perhaps the end of a process, perhaps again and again."""
    quote = Quote(line=98, text="failed, retrying")
    told = Diagnosis(cause=cause, owner="infra", evidence=(quote,), fatal=fatal)
    progress = Progress(repeats=repeats, repeated=quote) if repeats else Progress()
    return Digest(progress=progress, diagnosis=told, fresh=True, lines_read=100, fingerprint=cause)


def puzzling() -> Digest:
    """Only the consequences are in sight: neither the rules nor this piece settle it."""
    quote = Quote(line=98, text="peer closed the connection")
    sign = Sign(
        entry="peer", cause="comm.error", role="cascade", owner="infra", retryable=True, evidence=quote
    )
    return Digest(diagnosis=Diagnosis(signs=(sign,)), fresh=True, lines_read=100, fingerprint="odd")


# --- jobs that were led into their states ------------------------------------------------------------------


def in_preflight(**changes: Any) -> Job:
    """Two checks are under way."""
    return led(new_job(**changes), delegated(*CHECKS))


def in_submitting(**changes: Any) -> Job:
    """The first submit is out."""
    return led(new_job(**changes), delegated("image"), check_is("image"))


def in_queued(**changes: Any) -> Job:
    """Accepted, and seen to wait."""
    return led(in_submitting(**changes), submitted(), seen(Phase.pending), start_s=10)


def in_running(**changes: Any) -> Job:
    """Seen to run, and its log read once."""
    return led(in_queued(**changes), seen(Phase.running), log(moving(300)), start_s=20)


def in_stopping(**changes: Any) -> Job:
    return led(in_running(**changes), stop_asked_for(), start_s=30)


def in_collecting(phase: Phase = Phase.succeeded, **changes: Any) -> Job:
    return led(in_running(**changes), seen(phase), start_s=30)


def taken_over(**changes: Any) -> Job:
    """Somebody else's job, seen to run."""
    handed = new_job(existing=True, **changes)
    return led(handed, delegated(), seen(Phase.running), log(moving(300)))
