"""What must hold after every step, whatever came before (RULES I, A7, A10, E, G; RELIABILITY 5).

A promise is a sentence; `broken` names those that a step does not keep.

Never: a promise that rests on how the machine is written.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Literal, NamedTuple, Self

from states import events as happened
from states.effects import AnyEffect, Ask, DeleteJob, FindByName, Report, StopJob, Submit
from states.events import AnyEvent
from states.job import TERMINAL, Check, Collected, Job, State, restored, snapshot
from states.machine import Ignored, Step, step
from states.observation import SECOND_LOOK, Observation, Phase
from states.timers import pause_s

Fate = Literal["out", "unclear", "refused", "absent", "taken", "there", "over"]
"""What the world has said of a submit: out (asked, no answer), unclear, refused (no job), absent (provably not
there), taken (a job of somebody else), there (accepted or found), over (its end is on record or believed)."""

MAY_BE_THERE = frozenset({"out", "unclear", "there", "taken"})


class Ledger(NamedTuple):
    """name of an attempt -> its fate, in order of the first submit; since: when an unclear answer became known."""

    fates: tuple[tuple[str, Fate], ...] = ()
    since: datetime | None = None

    def __hash__(self) -> int:
        return hash(self.fates)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Ledger) and self.fates == other.fates

    @classmethod
    def of(cls, job: Job) -> Self:
        """What is known of a job that a test starts with."""
        fates: list[tuple[str, Fate]] = []
        for attempt in job.attempts:
            fate: Fate = "out"
            if attempt is not job.attempts[-1] or job.end is not None:
                fate = "over"
            elif attempt.accepted_at:
                fate = "there"
            elif attempt.unclear_since:
                fate = "unclear"
            elif attempt.resend_at:
                fate = "refused"
            fates.append((attempt.name, fate))
        return cls(tuple(fates), job.attempts[-1].unclear_since if job.attempts else None)

    def fate(self, name: str) -> Fate | None:
        return dict(self.fates).get(name)

    def with_fate(self, name: str, fate: Fate, since: datetime | None = None) -> Self:
        return type(self)(tuple({**dict(self.fates), name: fate}.items()), since or self.since)

    def noting(self, before: Job, event: AnyEvent, taken: Step) -> Self:
        """What the event says of the submits, then what the step asked for."""
        ledger = self._told(before, event, taken)
        for effect in taken.effects:
            if isinstance(effect, Submit):
                ledger = ledger.with_fate(effect.name, "out")
        return ledger

    def _told(self, before: Job, event: AnyEvent, taken: Step) -> Self:
        name = getattr(event, "name", "")
        fate = self.fate(name)
        match event:
            case happened.Submitted() if fate in ("out", "unclear", "taken"):
                return self.with_fate(name, "there")
            case happened.SubmitRejected() if fate == "out":
                return self.with_fate(name, "refused")
            case happened.SubmitUnclear() if fate == "out":
                return self.with_fate(name, "unclear", event.at)
            case happened.LookedUp(reachable=True) if fate in ("unclear", "taken"):
                if any(match.ours for match in event.matches):
                    return self.with_fate(name, "there")
                if event.matches:
                    return self.with_fate(name, "taken")
                wait_s = before.capabilities.submit_timeout_s + before.policy.settle_s
                settled = self.since is not None and event.at - self.since >= timedelta(seconds=wait_s)
                return self.with_fate(name, "absent") if settled else self
            case happened.Observed() if fate == "there" and not isinstance(taken.outcome, Ignored):
                return self.with_fate(name, "over") if _is_believed(before, event) else self
        return self


def _is_believed(before: Job, event: happened.Observed) -> bool:
    """A positive record of the end, or a loss that a second look has confirmed."""
    seen = event.observation
    if seen.phase in ("succeeded", "failed", "stopped"):
        return not seen.finishing
    suspect = before.attempt.suspect if before.attempts else None
    if seen.phase not in SECOND_LOOK or suspect is None or suspect.phase is not seen.phase:
        return False
    return (seen.taken_at - suspect.taken_at).total_seconds() >= before.policy.second_look_s * 0.9


def broken(before: Job, event: AnyEvent, taken: Step, ledger: Ledger) -> Iterator[str]:
    """The promises that this step does not keep."""
    if isinstance(taken.outcome, Ignored):
        if taken.job is not before or taken.effects:
            yield "an ignored event changes nothing"
        if not taken.outcome.reason:
            yield "what is ignored says why"
        return
    told = ledger.noting(before, event, taken._replace(effects=()))
    yield from _ends(before, event, taken)
    yield from _timers(taken.job, event)
    yield from _submits(before, event, taken, told)
    yield from _stops(before, event, taken)
    yield from _questions(before, event, taken)
    if not taken.rule or not taken.action:
        yield "every decision names its rule and its action (I5)"


def _ends(before: Job, event: AnyEvent, taken: Step) -> Iterator[str]:
    if before.state in TERMINAL and taken.job.state is not before.state:
        yield "the end is final"
    late = all(_is_about_a_late_job(effect, before, event) for effect in taken.effects)
    if before.state in TERMINAL and not late and any(not isinstance(e, DeleteJob) for e in taken.effects):
        yield "an ended run asks for nothing but the delete that a person named, or the stop of a late job"
    if taken.job.state in TERMINAL and not (taken.job.outcome and taken.job.next_action):
        yield "an ended run says its outcome and the next action (F2)"
    ran = any(attempt.accepted_at is not None for attempt in taken.job.attempts)
    if taken.job.state is State.not_submitted and ran:
        yield "a run of which an attempt ran is not called unsubmitted (F4)"
    for effect in taken.effects:
        if isinstance(effect, DeleteJob) and not _names(event, before):
            yield "only a person who spells the name deletes (A7)"


def _is_about_a_late_job(effect: AnyEffect, job: Job, event: AnyEvent) -> bool:
    """A stop of what the event tells of and no send of the run is known to have made; its report; a look for more."""
    if isinstance(event, happened.Submitted):
        told = {event.cluster_job_id}
    elif isinstance(event, happened.LookedUp):
        told = {match.cluster_job_id for match in event.matches if match.ours}
    else:
        return False
    if isinstance(effect, StopJob):
        known = {attempt.cluster_job_id for attempt in job.attempts}
        return effect.twin and effect.cluster_job_id in told - known
    return isinstance(effect, Report | FindByName)


def _names(event: AnyEvent, job: Job) -> bool:
    names = {job.id, *(attempt.name for attempt in job.attempts)}
    return isinstance(event, happened.DeleteRequested) and event.name in names


def _timers(job: Job, event: AnyEvent) -> Iterator[str]:
    if job.is_terminal:
        if job.wake_at is not None:
            yield "an ended run has no timer"
        return
    if job.wake_at is None:
        yield "every live run has a timer"
    elif job.wake_at <= event.at:
        for name, seen in (("answers", True), ("is away", False)):
            if not _comes_to_rest(job, event.at, cluster_answers=seen):
                yield f"a timer that is due leads on, it does not spin (cluster {name})"


def _comes_to_rest(job: Job, at: datetime, *, cluster_answers: bool) -> bool:
    """Waves at this one moment: after a few of them nothing is due any more."""
    for _ in range(6):
        if job.wake_at is None or job.wake_at > at:
            return True
        job = step(job, happened.WakeDue(at=at)).job
        if job.is_terminal or pause_s(job, at) is None:
            continue
        attempt = job.attempt
        if cluster_answers and attempt.seen is not None:
            same = Observation.model_validate({**attempt.seen.model_dump(), "taken_at": at})
            job = step(job, happened.Observed(at=at, name=attempt.name, observation=same)).job
        else:
            job = step(job, happened.ClusterUnreachable(at=at, reason="no answer")).job
    return job.wake_at is None or job.wake_at > at


def _submits(before: Job, event: AnyEvent, taken: Step, told: Ledger) -> Iterator[str]:
    submits = [effect for effect in taken.effects if isinstance(effect, Submit)]
    if len(submits) > 1:
        yield "one submit at a time (I1)"
    for effect in submits:
        by_person = isinstance(event, happened.Answered)
        if before.is_takeover:
            yield "somebody else's job is never submitted again (A10)"
        if before.stop is not None and not by_person:
            yield "nothing is submitted once a stop was asked (A2)"
        fate = told.fate(effect.name)
        if fate in MAY_BE_THERE and not by_person:
            yield f"no submit under a name whose job may be there: {fate} (I1)"
        if any(other in MAY_BE_THERE for name, other in told.fates if name != effect.name):
            yield "no new attempt while an earlier one may be there (I1)"
        if effect.name != taken.job.attempt.name:
            yield "a submit is of the present attempt"
    names = [attempt.name for attempt in taken.job.attempts]
    if len(set(names)) != len(names):
        yield "a new attempt is a new name (I1)"


def _stops(before: Job, event: AnyEvent, taken: Step) -> Iterator[str]:
    job = taken.job
    for effect in taken.effects:
        if not isinstance(effect, StopJob):
            continue
        if effect.twin:
            if effect.cluster_job_id == job.attempt.cluster_job_id:
                yield "the attempt's own job is no twin"
            continue
        if job.stop is None:
            yield "a job is stopped only for a reason that is written down"
        elif before.is_takeover and not before.may_stop_alone and job.stop.rule not in ("A2", "E8", "G2"):
            yield "somebody else's job is not stopped on our own judgment (A10)"
    stop_kept = job.state in (State.stopping, State.collecting, State.submitting) or job.is_terminal
    if job.stop is not None and not stop_kept and job.doing is not State.submitting:
        yield "a stop that was asked is not forgotten (A2)"
    if isinstance(event, happened.StopRequested) and job.stop is None and not job.is_terminal:
        yield "a stop that was asked is taken down (A2)"


def _questions(before: Job, event: AnyEvent, taken: Step) -> Iterator[str]:
    job = taken.job
    if (job.state is State.blocked) != bool(job.open_questions):
        yield "blocked means that a question is open, and no question is open elsewhere (G1)"
    if (job.state is State.blocked) != (job.resume_to is not None):
        yield "blocked remembers what it was doing, and only blocked does"
    if job.resume_to in (State.blocked, State.stopping, State.collecting):
        yield "nothing is blocked in the middle of a stop or a wrap-up"
    for question in job.open_questions:
        if question.answer_by <= question.asked_at or not question.default:
            yield "an open question has a default and a deadline after it was asked (G1)"
    open_topics = [question.topic for question in job.open_questions]
    if len(set(open_topics)) != len(open_topics):
        yield "one cause is one open question (G5)"
    for effect in taken.effects:
        yield from _asked(before, effect)
    closed_before = {q.number: q for q in before.questions if not q.is_open}
    if any(closed_before.get(q.number, q) != q for q in job.questions):
        yield "a closed question stays as it was closed (G4)"


def _asked(before: Job, effect: AnyEffect) -> Iterator[str]:
    if not isinstance(effect, Ask):
        return
    if not effect.questions:
        yield "a message that asks holds a question"
    for question in effect.questions:
        looked_again = question.topic.startswith("check:")  # asked anew only after a fresh look at the world
        if question.topic in before.asked_topics and not looked_again:
            yield f"the same cause is asked once: {question.kind} (G5)"


def ends_in_a_calm_world(job: Job, at: datetime, *, waves: int = 60) -> bool:
    """From here on everything is answered, and answered well: the run must come to its end (liveness)."""
    for _ in range(waves):
        if job.is_terminal:
            return True
        at = max(at, job.wake_at or at) + timedelta(seconds=1)
        for event in (happened.WakeDue(at=at), *_calm(job, at)):
            taken = step(job, event)
            job = taken.job.but(seq=job.seq + 1)
    return job.is_terminal


def _calm(job: Job, at: datetime) -> Iterator[AnyEvent]:
    """What a world without trouble would tell next."""
    for name in job.checks_open:
        yield happened.CheckFinished(at=at, check=Check(name=name, level="fine"))
    for child, purpose in job.children.items():
        if ":" not in purpose:
            yield happened.ChildFinished(at=at, child=child, purpose=purpose, ok=True)
    if not job.attempts:
        return
    name = job.attempt.name
    if job.doing is State.submitting and job.attempt.unclear_since is not None:
        yield happened.LookedUp(at=at, name=name, reachable=True)
    elif job.doing is State.submitting and job.attempt.resend_at is None:
        yield happened.Submitted(at=at, name=name, cluster_job_id="41")
    seen = Observation(phase=Phase.succeeded, taken_at=at, exit_code=0)
    yield happened.Observed(at=at, name=name, observation=seen)
    if job.state is State.collecting:
        yield happened.OutputsCollected(at=at, collected=Collected(exit_code=0, looked=True))


def survives_storage(job: Job) -> bool:
    """The snapshot gives back the same job."""
    columns = {"seq": job.seq, "seen_at": job.seen_at, "wake_at": job.wake_at}
    return restored(snapshot(job), **columns) == job
