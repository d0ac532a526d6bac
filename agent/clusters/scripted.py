"""A cluster whose answers come from a script: what scenarios and simulated worlds plug in for a real one.

It keeps its own truth (jobs, calls, files below the workspace) on the clock it is given, so it outlives the death
of the agent that uses it, as a real cluster does. Which script a submitted job follows is the caller's `casting`.

Never: decide; answer anything that its script, its clock and the calls made do not give.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar

from agent.clock import Clock
from agent.clusters.base import (
    JobLine,
    LogPiece,
    NotThere,
    Ref,
    Refused,
    Submission,
    Submitted,
    Unclear,
    Unreachable,
)
from agent.clusters.scripted_jobs import (
    Away,
    Call,
    JobScript,
    Moment,
    ScriptedJob,
    Stale,
    SubmitFault,
    Written,
    write,
    write_record,
)
from states.observation import ENDED, Capabilities, Capacity, Match, NativeEvent, Observation, Phase
from states.spec import Spec

__all__ = [
    "Away",
    "Call",
    "Casting",
    "JobScript",
    "Moment",
    "ScriptedCluster",
    "ScriptedJob",
    "Stale",
    "SubmitFault",
    "Written",
]

Casting = Callable[[Submission, int], JobScript]
"""(submission, how many jobs were created before) -> what that job will do."""


class ScriptedCluster:
    """The `Cluster` protocol over scripts. faults: by number of the submit call, from 1. previews: (reason, cause) of
    the first previews, which are refused; predicts: what it says of the others. watch: the clock of who looks
    (`taken_at` is by it), where it is not the cluster's own."""

    kind: ClassVar[str] = "scripted"

    def __init__(
        self,
        name: str,
        *,
        clock: Clock,
        casting: Casting,
        capabilities: Capabilities,
        capacity: Sequence[tuple[datetime, Capacity]] = (),
        faults: Mapping[int, SubmitFault] | None = None,
        previews: Sequence[tuple[str, str]] = (),
        predicts: str = "feasible",
        away: Sequence[Away] = (),
        stale: Sequence[Stale] = (),
        watch: Clock | None = None,
    ) -> None:
        self.name = name
        self.capabilities = capabilities
        self.jobs: list[ScriptedJob] = []
        self.calls: list[Call] = []
        self.submissions: list[Submission] = []
        self.sent: set[str] = set()
        """Ids of the jobs that a submit call made, whether it was answered or not."""
        self._clock, self._casting, self._capacity = clock, casting, capacity
        self._watch = watch or clock
        self._previews, self._predicts = tuple(previews), predicts
        self._faults, self._away, self._stale = dict(faults or {}), tuple(away), tuple(stale)

    # --- the protocol ----------------------------------------------------------------------------------------

    def capacity(self, group: str | None = None) -> Capacity:
        now = self._called("capacity", group or "")
        known = [capacity for at, capacity in self._capacity if at <= now]
        return known[-1] if known else Capacity(group=group or "")

    def submit(self, submission: Submission) -> Submitted:
        self._called("submit", submission.name)
        self.submissions.append(submission)
        fault = self._faults.get(self.count("submit"), SubmitFault())
        if fault.takes_s:
            self._clock.sleep(fault.takes_s)
        if fault.answer == "refused":
            raise Refused(fault.reason or "refused", cause=fault.cause, retryable=fault.retryable)
        if fault.answer == "taken":
            self.add(submission.name, JobScript((Moment(0.0, Phase.running),)), owner="somebody-else")
            raise Unclear(fault.reason or "a job of that name is there already")
        if fault.answer == "lost" and not fault.created:
            raise Unreachable(fault.reason or "no answer within the time-out")
        job = self.add(
            submission.name,
            self._casting(submission, len(self.jobs)),
            owner=submission.owner,
            fingerprint=submission.fingerprint,
            spec=submission.spec,
            visible_s=fault.visible_s,
        )
        self.sent.add(job.id)
        if fault.answer == "lost":
            raise Unreachable(fault.reason or "no answer within the time-out")
        return Submitted(job.id)

    def find(self, name: str, *, fingerprint: str = "", owner: str = "") -> Sequence[Match]:
        now = self._called("find", name)
        return [
            self._match(
                job, now, ours=not fingerprint or (job.fingerprint, job.owner) == (fingerprint, owner)
            )
            for job in self.jobs
            if job.name == name and job.is_visible(now)
        ]

    def observe(self, refs: Sequence[Ref]) -> Mapping[str, Observation]:
        now = self._called("observe", ",".join(ref.name for ref in refs))
        age_s = next((stale.age_s for stale in self._stale if stale.since <= now < stale.until), 0.0)
        at, taken_at = (clock - timedelta(seconds=age_s) for clock in (now, self._watch.now()))
        return {ref.name: self._observation(ref, at, taken_at) for ref in refs}

    def list(self, *, everyone: bool = False) -> Sequence[JobLine]:
        now = self._called("list")
        return [
            JobLine(
                cluster_job_id=job.id,
                name=job.name,
                observation=self._observation(Ref(job.name, job.id), now, self._watch.now()),
                ours=job.spec is not None,
            )
            for job in self.jobs
            if job.is_visible(now)
        ]

    def logs(self, ref: Ref, *, lines: int = 200, cursor: str = "", head: bool = False) -> LogPiece:
        now = self._called("logs", ref.name)
        job = self._job(ref, now)
        began = job.began_at()
        if began is None or began > now:
            return LogPiece(text="", ready=False)
        shown = self._printed(job, began, now)
        kept = shown[:lines] if head else shown[-lines:]
        wrote_at = (
            began + timedelta(seconds=kept[-1][0]) if kept and self.capabilities.tells_log_time else None
        )
        text = "".join(f"{line}\n" for _, line in kept)
        return LogPiece(
            text=text, cursor=str(len(shown)), truncated=len(shown) > len(kept), wrote_at=wrote_at
        )

    def events(self, ref: Ref) -> Sequence[NativeEvent]:
        now = self._called("events", ref.name)
        job = self._job(ref, now)
        told = [
            (job.created_at + timedelta(seconds=at_s), kind, text) for at_s, kind, text in job.script.events
        ]
        return [NativeEvent(at=at, kind=kind, message=text) for at, kind, text in told if at <= now]

    def stop(self, ref: Ref) -> None:
        now = self._called("stop", ref.name)
        job = self._job(ref, now)
        job.stops += 1
        over = job.deleted or job.moment(now).phase in ENDED  # a lost one hears it when its node is back
        if over or job.stopped_at is not None or job.stops <= job.script.deaf_stops:
            return
        job.stopped_at = now + timedelta(seconds=job.script.stop_s)

    def delete(self, ref: Ref) -> None:
        now = self._called("delete", ref.name)
        job = self._job(ref, now)
        if not job.is_over(now):
            raise Refused(f"{job.id} has not ended; stop it first", retryable=True)
        job.deleted = True

    def predict(self, submission: Submission) -> str:
        self._called("predict", submission.name)
        asked = self.count("predict")
        if asked <= len(self._previews):
            reason, cause = self._previews[asked - 1]
            raise Refused(reason, cause=cause)
        return self._predicts

    def render(self, submission: Submission) -> str:
        return f"scripted submit {submission.name}"

    # --- the world's side ------------------------------------------------------------------------------------

    def add(
        self,
        name: str,
        script: JobScript,
        *,
        job_id: str = "",
        owner: str = "",
        fingerprint: str = "",
        spec: Spec | None = None,
        visible_s: float = 0.0,
        created_at: datetime | None = None,
    ) -> ScriptedJob:
        """Create a job, whoever it belongs to."""
        job = ScriptedJob(
            id=job_id or f"j{len(self.jobs) + 1}",
            name=name,
            script=script,
            created_at=created_at or self._clock.now(),
            fingerprint=fingerprint,
            owner=owner,
            spec=spec,
            visible_s=visible_s,
        )
        self.jobs.append(job)
        return job

    def count(self, op: str) -> int:
        """How many calls of this kind were made."""
        return sum(call.op == op for call in self.calls)

    def catch_up(self) -> None:
        """Write the files whose time has come: what the jobs did while nobody looked."""
        now = self._clock.now()
        for job in self.jobs:
            if job.spec is None or not job.spec.workspace:
                continue
            until = min(now, job.stopped_at) if job.stopped_at else now
            self._write_files(job, until)
            end = job.own_end()
            if job.script.record is not None and end is not None:
                ended_at = job.created_at + timedelta(seconds=end.at_s)
                if ended_at <= until and "record" not in job.written:
                    job.written.add("record")
                    write_record(job, ended_at, job.script.record)

    def _write_files(self, job: ScriptedJob, until: datetime) -> None:
        assert job.spec is not None
        end = job.own_end()
        for file in job.script.files:
            at_s = file.at_s if file.at_s is not None else (end.at_s if end else None)
            due = None if at_s is None else job.created_at + timedelta(seconds=at_s)
            if due is None or due > until or file.path in job.written:
                continue
            job.written.add(file.path)
            write(Path(job.spec.workspace) / file.path, file.text, due)

    def _called(self, op: str, name: str = "") -> datetime:
        now = self._clock.now()
        self.calls.append(Call(op, now, name))
        for away in self._away:
            if away.since <= now < away.until and (not away.calls or op in away.calls):
                raise Unreachable(f"{self.name} does not answer")
        return now

    def _job(self, ref: Ref, now: datetime) -> ScriptedJob:
        for job in self.jobs:
            fits = job.id == ref.cluster_job_id if ref.cluster_job_id else job.name == ref.name
            if fits and job.is_visible(now):
                return job
        raise NotThere(f"{self.name} has no job {ref.cluster_job_id or ref.name}")

    def _match(self, job: ScriptedJob, now: datetime, *, ours: bool) -> Match:
        phase = job.moment(now).phase
        return Match(
            cluster_job_id=job.id, name=job.name, phase=phase, ours=ours, submitted_at=job.created_at
        )

    def _observation(self, ref: Ref, at: datetime, taken_at: datetime) -> Observation:
        try:
            job = self._job(ref, at)
        except NotThere:
            return Observation(phase=Phase.gone, taken_at=taken_at, reason="no record of this job")
        moment, began = job.moment(at), job.began_at()
        since = job.created_at + timedelta(seconds=moment.at_s)
        confirmed = job.script.record is not None and moment.phase in ENDED and job.stopped_at is None
        twins = [
            self._match(twin, at, ours=(twin.fingerprint, twin.owner) == (job.fingerprint, job.owner))
            for twin in self.jobs
            if twin is not job and twin.name == job.name and twin.is_visible(at) and not twin.is_over(at)
        ]
        told: dict[str, Any] = {
            "phase": moment.phase,
            "taken_at": taken_at,
            "native": str(moment.phase),
            "started_at": began if began is not None and began <= at else None,
            "ended_at": since if moment.phase in ENDED else None,
            "confirmed": confirmed,
            "twins": tuple(twins),
        }
        return Observation(**{**told, **moment.fields})

    def _printed(self, job: ScriptedJob, began: datetime, now: datetime) -> Sequence[tuple[float, str]]:
        """The lines printed by now; none after its end."""
        end = job.own_end()
        until = min(
            [now]
            + ([job.stopped_at] if job.stopped_at else [])
            + ([job.created_at + timedelta(seconds=end.at_s)] if end else [])
        )
        seconds = (until - began).total_seconds()
        return job.script.log[: bisect_right(job.script.log, seconds, key=lambda item: item[0])]
