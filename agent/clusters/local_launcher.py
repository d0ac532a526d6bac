"""Stands by one local job: starts its wrapper, halts it when asked or when its time is over, settles its end.

Run as `python -m agent.clusters.local_launcher ROOT JOB_ID`, detached, one for each launched job, about 12
MB. If it is killed, the next scheduling step starts another, which takes over the processes that are there.

Never: import pydantic or anything else heavy; hold the lock while it waits; start the command a second time.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
from pathlib import Path

from agent.clusters import wrapper
from agent.clusters.local_process import Process, alive, identify, signal_group
from agent.clusters.local_records import Job, Store
from agent.clusters.local_schedule import conclude, fail, folder_of, leader_of, over, step
from agent.clusters.local_time import monotonic_s, now

LOOK_S = 5.0
"""Between two looks at the record, should a nudge have been missed."""
ADOPTED_LOOK_S = 0.5
"""Between two looks at processes that are not this launcher's children, whose end no signal tells."""
KILL_AGAIN_S = 1.0


def main(arguments: list[str]) -> int:
    """Stand by the job until it ended, then do a scheduling step for those that wait."""
    root, job_id = arguments
    store = Store(Path(root))
    woken = wake_on_signals()
    job = claim(store, job_id)
    if job is None:
        return 0
    child: subprocess.Popen[bytes] | None = None
    if job.group is None and not job.ask:
        try:
            child = start(job)
        except OSError as error:
            return finish(store, job_id, trouble=f"the command could not be started: {error}")
        # Gone already? Its id stays taken until this launcher, its parent, has asked for its status.
        job = enter(store, job, identify(child.pid) or Process(child.pid, "ended at once"))
    if job.group is None:
        return finish(store, job_id)
    code = watch(store, job, job.group, child, woken)
    elder = leader_of(job._replace(group=None)) if code == wrapper.REFUSED_CODE else None
    if elder is not None and elder.pid != job.group.pid:
        # A launcher that was killed had started the wrapper already, unseen: that one has the run.
        code = watch(store, enter(store, job, elder), elder, None, woken)
    return finish(store, job_id, code)


def wake_on_signals() -> int:
    """A file descriptor that becomes readable when a child ended or a nudge came.

    Whoever forked this process from a shell left INT and QUIT ignored; the command is to have them as usual.
    """
    read_end, write_end = os.pipe()
    os.set_blocking(read_end, False)
    os.set_blocking(write_end, False)
    signal.set_wakeup_fd(write_end, warn_on_full_buffer=False)
    for number in (signal.SIGCHLD, signal.SIGUSR1):
        signal.signal(number, lambda *_: None)
    for number in (signal.SIGINT, signal.SIGQUIT):
        signal.signal(number, signal.SIG_DFL)
    return read_end


def claim(store: Store, job_id: str) -> Job | None:
    """Enter this process as the job's launcher; None when it needs none (another lives, or it is over)."""
    with store.locked():
        job = store.read(job_id)
        if job is None or job.state != "launched" or alive(job.launcher):
            return None
        return store.save(job._replace(launcher=identify(os.getpid()), group=leader_of(job)))


def start(job: Job) -> subprocess.Popen[bytes]:
    """Start the wrapper as leader of its own group, with the job's environment only. Raises OSError."""
    script = wrapper.stage(job.workspace)
    restart = job.attempt > 0
    return subprocess.Popen(
        wrapper.argv(script, folder_of(job), job.command, whole_group=True, log=True, restart=restart),
        env=environment(job),
        cwd=job.workspace,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def environment(job: Job) -> dict[str, str]:
    """The job's environment and what only its start could tell."""
    env = {**job.env, wrapper.ID_VARIABLE: job.id}
    return {**env, "CUDA_VISIBLE_DEVICES": ",".join(map(str, job.gpus))} if job.gpus else env


def enter(store: Store, job: Job, group: Process) -> Job:
    """Write down which process group the job is."""
    with store.locked():
        job = store.read(job.id) or job
        return store.save(job._replace(group=group, started_at=now()).tell("Started", f"process {group.pid}"))


def watch(
    store: Store, job: Job, group: Process, child: subprocess.Popen[bytes] | None, woken: int
) -> int | None:
    """Wait for the end of the job's processes, halting them when that is due.

    Returns the wrapper's exit status where this launcher is its parent. A wrapper that was killed does not
    end the job: its command may live on, and is waited for.
    """
    code = None
    limit_at = over_at(job)
    kill_at: float | None = None
    while True:
        if child is not None and (code := child.poll()) is not None:
            child = None
            if code >= 0:
                break
        if child is None and over(job, group):
            break
        now_s = monotonic_s()
        seen = store.read(job.id)
        if kill_at is None and (now_s >= limit_at or (seen is not None and seen.ask)):
            kill_at = halt(store, job, group)
        elif kill_at is not None and now_s >= kill_at:
            signal_group(group, signal.SIGKILL)
            kill_at = now_s + KILL_AGAIN_S
        longest = LOOK_S if child else ADOPTED_LOOK_S
        until = limit_at if kill_at is None else kill_at
        select.select([woken], [], [], max(0.0, min(longest, until - monotonic_s())))
        drain(woken)
    # What the command left running in its group has no job any more.
    signal_group(group, signal.SIGKILL)
    return code


def over_at(job: Job) -> float:
    """The time limit on the monotonic clock, so that a step of the wall clock never cuts a run short."""
    if job.time_limit_s is None:
        return float("inf")
    ran_s = (now() - job.started_at).total_seconds() if job.started_at else 0.0
    return monotonic_s() + job.time_limit_s - min(max(ran_s, 0.0), job.time_limit_s)


def halt(store: Store, job: Job, group: Process) -> float:
    """TERM to the whole group, after the record says why; returns when KILL is due (monotonic seconds)."""
    with store.locked():
        job = store.read(job.id) or job
        if not job.signalled:
            job = store.save(
                job._replace(ask=job.ask or "limit", signalled=True).tell("Terminating", job.ask)
            )
            signal_group(group, signal.SIGTERM)
    return monotonic_s() + store.habits().stop_grace_s


def drain(woken: int) -> None:
    """Take the wake-ups that came."""
    with contextlib.suppress(BlockingIOError):
        os.read(woken, 4096)


def finish(store: Store, job_id: str, code: int | None = None, *, trouble: str = "") -> int:
    """Settle the end and let the queue move on; nothing when somebody else has the job by now."""
    with store.locked():
        job = store.read(job_id)
        if job is None or job.launcher != identify(os.getpid()):
            return 0
        if trouble:
            fail(store, job, trouble)
        else:
            conclude(store, job, code)
        step(store)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
