"""One scheduling step of the local cluster: settle what ended, start what fits, preempt what must make room.

There is no resident scheduler. Whoever comes by (a client's call, the launcher of an ending job) takes the
lock and does one step, so the queue moves on although no agent lives.

Never: tell an outcome by guess (a job that vanished without a record is lost); start a second launcher for
a job whose launcher lives.
"""

from __future__ import annotations

import os
import signal
import sys
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

import agent
from agent.clusters import wrapper
from agent.clusters.local_process import Process, alive, born_about, detach, group_alive, nudge, signal_group
from agent.clusters.local_records import Ask, End, Job, Store
from agent.clusters.local_slots import Slots, Wait, plan
from agent.clusters.local_time import now
from agent.clusters.wrapper import WrapperRecord

LAUNCHER = "agent.clusters.local_launcher"
LAUNCHER_START = timedelta(seconds=2)
"""A launcher that has not come up after this long is started again; should both come, the second leaves."""
SPAWNS_MAX = 20


class Board(NamedTuple):
    """What a step left: every job that is not ended, why queued ones wait, the slots that are free."""

    jobs: tuple[Job, ...]
    waits: dict[str, Wait]
    free: Slots
    total: Slots


def step(store: Store) -> Board:
    """Do what is to be done; the lock is held. Cheap when that is nothing: one read a job."""
    habits = store.habits()
    jobs = {job.id: job for job in store.active()}
    for job in list(jobs.values()):
        tended = tend(store, job) if job.state == "launched" else job
        if tended.state == "ended":
            del jobs[job.id]
        else:
            jobs[job.id] = tended
    todo = plan(list(jobs.values()), habits.total)
    for job in todo.preempt:
        jobs[job.id] = ask(store, job, "preempt")
    for job, gpus in todo.start:
        jobs[job.id] = spawn(store, job._replace(state="launched", gpus=gpus).tell("Launched", _gpus(gpus)))
    return Board(tuple(jobs.values()), todo.waits, todo.free, habits.total)


def ask(store: Store, job: Job, why: Ask) -> Job:
    """Note that a launched job must halt, and wake its launcher. Once; but a stop overrides a preemption."""
    if job.ask and not (why == "stop" and job.ask == "preempt"):
        return job
    told = job.tell("StopAsked") if why == "stop" else job.tell("Preempting", "a normal job needs its slots")
    job = store.save(told._replace(ask=why, ask_at=now()))
    nudge(job.launcher)
    return job


def tend(store: Store, job: Job) -> Job:
    """See to a launched job whose launcher may be gone: start another while it lives, else settle it."""
    if alive(job.launcher):
        return job
    leader = leader_of(job)
    if leader is not None and over(job, leader):
        signal_group(leader, signal.SIGKILL)
        return conclude(store, job._replace(group=leader))
    if job.spawned_at is not None and abs(now() - job.spawned_at) < LAUNCHER_START and job.launcher is None:
        return job
    if job.spawns >= SPAWNS_MAX and leader is None:
        log = store.root / "launcher.log"
        return fail(store, job, f"its launcher did not come up in {SPAWNS_MAX} tries (see {log})")
    return spawn(store, job)


def over(job: Job, leader: Process) -> bool:
    """True when the wrapper is gone and has recorded the end, or nobody of its group is left."""
    if alive(leader):
        return False
    found = wrapper.record(folder_of(job))
    recorded = found is not None and found.id == job.id and found.ended_at is not None
    return recorded or not group_alive(leader)


def leader_of(job: Job) -> Process | None:
    """The wrapper's process, also when a crash came between its start and its entry in the record."""
    if job.group is not None:
        return job.group
    found = wrapper.record(folder_of(job))
    if found is None or found.id != job.id:
        return None
    return born_about(found.pid, found.started_at) or Process(found.pid, "gone")


def spawn(store: Store, job: Job) -> Job:
    """Start a launcher for the job, after its record says so."""
    job = store.save(job._replace(spawned_at=now(), spawns=job.spawns + 1, launcher=None))
    argv = [sys.executable, "-s", "-m", LAUNCHER, str(store.root), job.id]
    # The launcher needs this package and nothing else of the caller's environment.
    env = {"PATH": os.environ.get("PATH", os.defpath), "PYTHONPATH": str(Path(agent.__file__).parents[1])}
    detach(argv, env=env, log=store.root / "launcher.log")
    return job


def conclude(store: Store, job: Job, code: int | None = None) -> Job:
    """Write down the end of a job whose processes are gone, or put a preempted one back in the queue.

    code: the wrapper's own exit status where its parent saw it (negative: a signal killed the wrapper).
    """
    found = wrapper.record(folder_of(job))
    if found is not None and found.id == job.id:
        job = job._replace(started_at=found.started_at)  # from the same clock as the end
    end = ending(job, found, code)
    if end.phase == "preempted" and store.habits().requeue_preempted:
        wrapper.forget(folder_of(job))
        again = job._replace(
            state="queued", attempt=job.attempt + 1, gpus=(), spawned_at=None, spawns=0, launcher=None,
            group=None, started_at=None, ask="", ask_at=None, signalled=False,
        )  # fmt: skip
        return store.save(again.tell("Preempted", end.reason).tell("Requeued", f"attempt {again.attempt}"))
    return _ended(store, job, end)


def ending(job: Job, found: WrapperRecord | None, code: int | None) -> End:
    """What is known of the end. Pure: the wrapper's record first, then what its parent saw, else lost."""
    mine = found is not None and found.id == job.id
    if code == wrapper.REFUSED_CODE and not mine:
        return End("failed", now(), reason="did not run: its folder holds a run of the same name")
    if found is not None and mine and found.exit_code is not None:
        end = End("", found.ended_at or now(), found.exit_code, found.signal, confirmed=True)
    elif code is None or code < 0:
        end = End("", now(), signal=None if code is None else -code)
    else:
        end = End("", now(), code, code - 128 if code > 128 else None)
    if job.ask and (job.signalled or end.exit_code is None):
        return _halted(job, end)
    if end.exit_code is None:
        reason = "its processes are gone and left no record of the end (killed, or the machine restarted)"
        return end._replace(phase="lost", reason=reason)
    if end.exit_code == 0:
        return end._replace(phase="succeeded")
    cause = "process.killed" if end.signal == signal.SIGKILL else ""
    reason = f"killed by signal {end.signal}" if end.signal else f"exit code {end.exit_code}"
    return end._replace(phase="failed", reason=reason, cause=cause)


def _halted(job: Job, end: End) -> End:
    """An end that was asked for: by the person, by a normal job, or by its own time limit."""
    if job.ask == "stop":
        return end._replace(phase="stopped", reason="stopped on request")
    if job.ask == "preempt":
        return end._replace(phase="preempted", reason="preempted by a normal job")
    reason = f"stopped at its time limit of {job.time_limit_s or 0:g} s"
    return end._replace(phase="failed", reason=reason, cause="scheduling.time_limit")


def cancel(store: Store, job: Job) -> Job:
    """End a queued job."""
    return _ended(store, job, End("stopped", now(), reason="cancelled before it started"))


def fail(store: Store, job: Job, reason: str) -> Job:
    """End a job whose command could not be started."""
    return _ended(store, job, End("failed", now(), reason=reason))


def _ended(store: Store, job: Job, end: End) -> Job:
    kind = {"preempted": "Preempted", "lost": "Lost"}.get(end.phase, "Ended")
    return store.save(job._replace(state="ended", end=end, env={}).tell(kind, end.reason or end.phase))


def folder_of(job: Job) -> Path:
    """Where the job's wrapper keeps its record and log."""
    return wrapper.run_dir(job.workspace, job.name)


def _gpus(gpus: tuple[int, ...]) -> str:
    return f"GPUs {', '.join(map(str, gpus))}" if gpus else ""
