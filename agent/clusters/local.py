"""The local cluster: this machine, its slots and its queue; jobs are real detached processes that outlive the agent.

Everything true about them is on the disk (`local_records`), every call that comes by does one scheduling step
(`local_schedule`), and each job's launcher does one more at its end, so the queue moves on with no agent alive.

Options (all may be left out): `root` (state folder; default below the XDG state folder), `cpu`, `memory_mib`, `gpu`
(the machine's own when not given), `stop_grace_s`, `requeue_preempted`.

Never: give a job the agent's own environment; refuse a name that is taken (like Slurm: twins are told, not hidden).
"""

from __future__ import annotations

import contextlib
import os
import platform
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import platformdirs
from pydantic import Field

from agent.clusters import logfile, wrapper
from agent.clusters.base import JobLine, LogPiece, NotThere, Ref, Refused, Submission, Submitted, Unreachable
from agent.clusters.local_machine import job_environment, machine
from agent.clusters.local_records import Habits, Job, Store, id_and_name
from agent.clusters.local_schedule import Board, ask, cancel, folder_of, step
from agent.clusters.local_slots import NEVER, Slots, plan
from agent.clusters.local_time import now
from states.observation import Capabilities, Capacity, Match, NativeEvent, Observation, Phase, Waiting
from states.reading import Frozen
from states.spec import Spec

SAFE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
LISTED_MAX = 200
"""Ended jobs that `list` tells, the newest."""


class Options(Frozen):
    """What the settings may say of a local cluster. Figures of None are the machine's own; grace in seconds."""

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
        """Every job of that name, oldest first, ended ones included. A fingerprint or owner left out agrees."""
        with self._board() as (store, board):
            jobs = _ended(store, name=name) + [job for job in board.jobs if job.name == name]
        return tuple(
            _match(job, ours=fingerprint in ("", job.fingerprint) and owner in ("", job.owner)) for job in jobs
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
            twins = tuple(_match(other) for other in namesakes.get(ref.name, ()) if found and other.id != found.id)
            seen[ref.name] = _observation(found, board, at, twins)
        return seen

    def list(self, *, everyone: bool = False) -> Sequence[JobLine]:
        """Every job that is not ended and the newest ended ones. There is nobody else on this cluster."""
        with self._board() as (store, board):
            files = store.ended_files()[-LISTED_MAX:]
            jobs = [*filter(None, map(store.read_ended, files)), *board.jobs]
        at = now()
        return tuple(JobLine(cluster_job_id=job.id, name=job.name, observation=_observation(job, board, at)) for job in jobs)

    def logs(self, ref: Ref, *, lines: int = 200, cursor: str = "", head: bool = False) -> LogPiece:
        """From `<workspace>/.watchkeeper/<name>/log`; the cursor is a byte offset and lives as long as the file."""
        job = self._job(ref)
        with _answered(self.name):
            path = folder_of(job) / "log"
            return logfile.read(path, lines=lines, cursor=cursor, head=head, ended=job.state == "ended", now=now())

    def events(self, ref: Ref) -> Sequence[NativeEvent]:
        """The job's story from the queue to the end."""
        return tuple(
            NativeEvent(at=event.at, kind=event.kind, message=event.message) for event in self._job(ref).events
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
