"""The local cluster: this machine, its slots, its queue; jobs are detached processes that outlive the agent.

Everything true about them is on the disk (`local_records`), every call that comes by does one scheduling step
(`local_schedule`), and each job's launcher does one more at its end: the queue moves on with no agent alive.

Options (all may be left out): `root` (state folder; default below the XDG state folder), `cpu`,
`memory_mib`, `gpu` (the machine's own when not given), `stop_grace_s`, `requeue_preempted`.

Never: give a job the agent's own environment; refuse a name that is taken (as with Slurm, twins are told).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from pydantic import Field

from agent.clusters import logfile, wrapper
from agent.clusters.base import JobLine, LogPiece, NotThere, Ref, Refused, Submission, Submitted, Unreachable
from agent.clusters.local_machine import default_root, machine
from agent.clusters.local_records import Habits, Job, Store, id_and_name
from agent.clusters.local_request import check, job_of, note, rendered
from agent.clusters.local_schedule import Board, ask, cancel, folder_of, step
from agent.clusters.local_slots import Slots, plan
from agent.clusters.local_time import now
from agent.clusters.local_words import match, observation
from states.observation import Capabilities, Capacity, Match, NativeEvent, Observation
from states.reading import Frozen

LISTED_MAX = 200
"""Ended jobs that `list` tells, the newest."""


class Options(Frozen):
    """What the settings may say of a local cluster. None: the machine's own figure; grace in seconds."""

    root: Path | None = None
    cpu: float | None = Field(default=None, ge=0)
    memory_mib: int | None = Field(default=None, ge=0)
    gpu: int | None = Field(default=None, ge=0)
    stop_grace_s: float = Field(default=10.0, ge=0)
    requeue_preempted: bool = False


class LocalCluster:
    """The `Cluster` protocol on this machine. Raises Unreachable where the state folder cannot be used.

    Preempted jobs stay ended unless `requeue_preempted`, which puts them back under the same id, attempt + 1.
    """

    kind: ClassVar[str] = "local"
    capabilities = Capabilities(
        name_is_unique=False,
        visible_within_s=0.0,
        submit_timeout_s=10.0,
        wrapper=True,
        lanes=("normal", "idle"),
        tells_log_time=True,
        poll_s=2.0,
    )

    def __init__(self, name: str = "local", options: Mapping[str, Any] | None = None) -> None:
        self.name = name
        self.options = Options.model_validate(options or {})

    # --- asking about jobs ---------------------------------------------------------------------------------

    def find(self, name: str, *, fingerprint: str = "", owner: str = "") -> Sequence[Match]:
        """Every job of that name, ended ones first. A fingerprint or owner left out agrees with any."""
        with self._board() as (store, board):
            jobs = _ended(store, name=name) + [job for job in board.jobs if job.name == name]
        return tuple(
            match(job, ours=fingerprint in ("", job.fingerprint) and owner in ("", job.owner)) for job in jobs
        )

    def observe(self, refs: Sequence[Ref]) -> Mapping[str, Observation]:
        """One scheduling step and one look at the folder, whatever the number of jobs."""
        with self._board() as (store, board):
            jobs = _resolve(store, board, refs)
        namesakes: dict[str, list[Job]] = {}
        for job in board.jobs:
            namesakes.setdefault(job.name, []).append(job)
        at = now()
        seen = {}
        for ref in refs:
            found = jobs[ref]
            twins = tuple(
                match(other) for other in namesakes.get(ref.name, ()) if found and other.id != found.id
            )
            seen[ref.name] = observation(found, board, at, twins)
        return seen

    def list(self, *, everyone: bool = False) -> Sequence[JobLine]:
        """Every job that is not ended and the newest ended ones. There is nobody else on this cluster."""
        with self._board() as (store, board):
            files = store.ended_files()[-LISTED_MAX:]
            jobs = [*filter(None, map(store.read_ended, files)), *board.jobs]
        at = now()
        return tuple(
            JobLine(cluster_job_id=job.id, name=job.name, observation=observation(job, board, at))
            for job in jobs
        )

    def logs(self, ref: Ref, *, lines: int = 200, cursor: str = "", head: bool = False) -> LogPiece:
        """From `<workspace>/.watchkeeper/<name>/log`; the cursor is a byte offset in it (`logfile.read`)."""
        job = self._job(ref)
        with _answered(self.name):
            path = folder_of(job) / "log"
            return logfile.read(
                path, lines=lines, cursor=cursor, head=head, ended=job.state == "ended", now=now()
            )

    def events(self, ref: Ref) -> Sequence[NativeEvent]:
        """The job's story from the queue to the end."""
        return tuple(
            NativeEvent(at=event.at, kind=event.kind, message=event.message)
            for event in self._job(ref).events
        )

    def capacity(self, group: str | None = None) -> Capacity:
        """This machine; groups mean nothing here."""
        with self._board() as (_, board):
            pass
        return Capacity(
            group=group or "",
            free_gpu=board.free.gpu,
            free_cpu=board.free.cpu,
            free_memory_mib=board.free.memory_mib,
            total_gpu=board.total.gpu,
            total_cpu=board.total.cpu,
            total_memory_mib=board.total.memory_mib,
            block_gpu=board.free.gpu,
            queued=sum(job.state == "queued" for job in board.jobs),
        )

    # --- acting on jobs ------------------------------------------------------------------------------------

    def submit(self, submission: Submission) -> Submitted:
        """Write the job down, then let it start if it fits. A crash in between leaves a job that waits."""
        spec = submission.spec
        check(submission)
        with self._locked() as store:
            total = store.habits().total
            job = job_of(submission, store.next_id(store.active()), total)
            try:
                wrapper.stage(job.workspace)
            except OSError as error:
                reason = f"the workspace {job.workspace} cannot be written: {error.strerror}"
                raise Refused(f"{reason}; make it, or give another one") from None
            store.save(job.tell("Queued", f"{spec.lane}, priority {spec.priority}"))
            step(store)
        return Submitted(job.id, note(spec))

    def stop(self, ref: Ref) -> None:
        """A queued job is cancelled at once; a running one's launcher sees to TERM, the grace and KILL."""
        with self._board() as (store, board):
            job = _resolve(store, board, [ref])[ref]
            if job is None:
                raise NotThere(f"no job {_called(ref)} on {self.name}")
            if job.state == "queued":
                cancel(store, job.tell("StopAsked"))
            elif job.state == "launched":
                ask(store, job, "stop")
            step(store)

    def delete(self, ref: Ref) -> None:
        """Forget an ended job; what it left in its workspace stays. Refused until it ended."""
        with self._board() as (store, board):
            job = _resolve(store, board, [ref])[ref]
            if job is None:
                raise NotThere(f"no job {_called(ref)} on {self.name}")
            if job.state != "ended":
                raise Refused(f"job {job.id} ({job.name}) has not ended; stop it first", retryable=True)
            store.remove_ended(job)

    # --- before a job --------------------------------------------------------------------------------------

    def predict(self, submission: Submission) -> str:
        """Whether it would start at once, wait, or never run here."""
        check(submission)
        with self._board() as (store, board):
            job = job_of(submission, store.next_id(board.jobs), board.total)
            wait = plan([*board.jobs, job], board.total).waits.get(job.id)
        return "it would start at once" if wait is None else f"it would wait: {wait.reason}"

    def render(self, submission: Submission) -> str:
        """What would be run and with what, without the values of variables. Creates nothing."""
        check(submission)
        return rendered(submission, self._habits.total)

    # --- the folder ----------------------------------------------------------------------------------------

    @cached_property
    def _habits(self) -> Habits:
        options, here = self.options, machine()
        total = Slots(
            here.cpu if options.cpu is None else options.cpu,
            here.memory_mib if options.memory_mib is None else options.memory_mib,
            here.gpu if options.gpu is None else options.gpu,
        )
        return Habits(total, options.stop_grace_s, options.requeue_preempted)

    @contextlib.contextmanager
    def _locked(self) -> Iterator[Store]:
        """The store under its lock; whatever the disk refuses is "could not ask"."""
        store = Store(self.options.root or default_root(self.name))
        with _answered(self.name):
            store.prepare()
            with store.locked():
                store.adopt(self._habits)
                yield store

    @contextlib.contextmanager
    def _board(self) -> Iterator[tuple[Store, Board]]:
        """The store under its lock, and what a scheduling step left."""
        with self._locked() as store:
            yield store, step(store)

    def _job(self, ref: Ref) -> Job:
        with self._board() as (store, board):
            job = _resolve(store, board, [ref])[ref]
        if job is None:
            raise NotThere(f"no job {_called(ref)} on {self.name}")
        return job


@contextlib.contextmanager
def _answered(name: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise Unreachable(f"the state of local cluster {name} cannot be used: {error}") from error


# --- looking jobs up ---------------------------------------------------------------------------------------


def _ended(store: Store, *, name: str) -> list[Job]:
    files = (file for file in store.ended_files() if id_and_name(file)[1] == name)
    return [job for job in map(store.read_ended, files) if job is not None]


def _resolve(store: Store, board: Board, refs: Sequence[Ref]) -> dict[Ref, Job | None]:
    """The job of each ref: by id where it has one, else the oldest live of its name, else the newest ended.

    The folder of ended jobs is listed once, and only when a ref is not among the live ones.
    """
    live: dict[str, Job] = {}
    for job in board.jobs:
        live[job.id] = job
        live.setdefault(f"~{job.name}", job)
    found = {ref: live.get(ref.cluster_job_id or f"~{ref.name}") for ref in refs}
    missing = [ref for ref, job in found.items() if job is None]
    if missing:
        ended: dict[str, str] = {}
        for file in store.ended_files():
            job_id, name = id_and_name(file)
            ended[job_id] = ended[f"~{name}"] = file
        for ref in missing:
            file_ = ended.get(ref.cluster_job_id or f"~{ref.name}")
            found[ref] = None if file_ is None else store.read_ended(file_)
    return found


def _called(ref: Ref) -> str:
    return f"{ref.cluster_job_id} ({ref.name})" if ref.cluster_job_id else ref.name
