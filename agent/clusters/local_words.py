"""A local job in the machine's own words: its observation, its match. Pure but for one look at the
wrapper's record.

Never: say more than a record says; a job between its launch and the wrapper's start is starting, not running.
"""

from __future__ import annotations

from datetime import datetime

from agent.clusters import wrapper
from agent.clusters.local_records import Job
from agent.clusters.local_schedule import Board, folder_of
from agent.clusters.local_slots import NEVER
from states.observation import Match, Observation, Phase, Waiting

ASKED = {
    "": "",
    "stop": "stopping on request",
    "preempt": "being preempted by a normal job",
    "limit": "its time limit is over",
}


def _phase(job: Job) -> Phase:
    if job.end is not None:
        return Phase(job.end.phase)
    return Phase.pending if job.state == "queued" else Phase.starting


def match(job: Job, ours: bool = True) -> Match:
    return Match(
        cluster_job_id=job.id, name=job.name, phase=_phase(job), ours=ours, submitted_at=job.submitted_at
    )


def observation(job: Job | None, board: Board, at: datetime, twins: tuple[Match, ...] = ()) -> Observation:
    """No node is named: there is none but this machine, and a lost job that is to begin again could not avoid it."""
    if job is None:
        return Observation(phase=Phase.gone, taken_at=at, reason="no record of this job")
    if job.end is not None:
        end = job.end
        return Observation(
            phase=Phase(end.phase), taken_at=at, native=end.phase, reason=end.reason, attempt=job.attempt,
            exit_code=end.exit_code, signal=end.signal, confirmed=end.confirmed, cause=end.cause, replicas=1,
            started_at=job.started_at, ended_at=end.at, twins=twins,
        )  # fmt: skip
    if job.state == "queued":
        wait = board.waits.get(job.id)
        return Observation(
            phase=Phase.pending, taken_at=at, native=f"queued: {wait.word}" if wait else "queued",
            reason=wait.reason if wait else "", attempt=job.attempt, replicas=1, replicas_ready=0,
            twins=twins, waiting=Waiting.never if wait and wait.word == NEVER else Waiting.wait,
        )  # fmt: skip
    found = wrapper.record(folder_of(job))
    if found is not None and found.id != job.id:
        found = None  # a namesake's
    return Observation(
        phase=Phase.running if found else Phase.starting, taken_at=at, native=job.ask or job.state,
        reason=ASKED[job.ask], finishing=bool(found and found.ended_at), attempt=job.attempt, replicas=1,
        replicas_ready=int(found is not None), twins=twins,
        started_at=found.started_at if found else None,
    )  # fmt: skip
