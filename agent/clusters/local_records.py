"""The local cluster's memory: one small JSON file a job in a folder, changed under one lock.

    <root>/cluster.json          slots and habits, as the last client with options wrote them
    <root>/lock                  held for every change, by clients and launchers alike
    <root>/jobs/<id>~<name>.json     queued and launched jobs
    <root>/ended/<id>~<name>.json    ended ones: listed only when somebody asks for one, so they cost nothing

A record is on the disk (fsync) before anything it speaks of is done. Standard library only: each job's
launcher carries this module for as long as the job runs.

Never: keep a truth outside these files; keep an ended job's environment values.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, NamedTuple

from agent.clusters.local_process import Process
from agent.clusters.local_slots import Slots
from agent.clusters.local_time import monotonic_s, now, pause

LOCK_WAIT_S = 10.0
EVENTS_MAX = 100

State = Literal["queued", "launched", "ended"]
Ask = Literal["", "stop", "preempt", "limit"]


class Happened(NamedTuple):
    """One event of a job's story."""

    at: datetime
    kind: str
    message: str


class End(NamedTuple):
    """How a job ended. phase: a word of `Phase`. confirmed: the wrapper's own record says so."""

    phase: str
    at: datetime
    exit_code: int | None = None
    signal: int | None = None
    confirmed: bool = False
    reason: str = ""
    cause: str = ""


class Job(NamedTuple):
    """One local job. env: the whole environment of its command, gone once it ended; env_names stay.

    gpus: indices it was given. ask: why it must halt, from when; signalled: TERM was sent for that.
    launcher: who stands by it; group: its wrapper, leader of the process group. spawned_at: when a
    launcher was last started, spawns: how often. attempt: restarts under this id.
    """

    id: str
    name: str
    fingerprint: str
    owner: str
    command: tuple[str, ...]
    env: Mapping[str, str]
    env_names: tuple[str, ...]
    workspace: str
    slots: Slots
    lane: str
    priority: int
    submitted_at: datetime
    time_limit_s: float | None = None
    state: State = "queued"
    attempt: int = 0
    gpus: tuple[int, ...] = ()
    spawned_at: datetime | None = None
    spawns: int = 0
    launcher: Process | None = None
    group: Process | None = None
    started_at: datetime | None = None
    ask: Ask = ""
    ask_at: datetime | None = None
    signalled: bool = False
    end: End | None = None
    events: tuple[Happened, ...] = ()

    def tell(self, kind: str, message: str = "") -> Job:
        """The job with one more event (the first and the newest are kept when there are many)."""
        events = (*self.events, Happened(now(), kind, message))
        if len(events) > EVENTS_MAX:
            events = (*events[:10], *events[len(events) - EVENTS_MAX + 10 :])
        return self._replace(events=events)


class Habits(NamedTuple):
    """What the cluster has and how it behaves; on the disk, because launchers act on it too."""

    total: Slots
    stop_grace_s: float = 10.0
    requeue_preempted: bool = False


class Store:
    """The folder. Whatever writes a file is called with the lock held; OSError where the disk says no."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.jobs = root / "jobs"
        self.ended = root / "ended"

    def prepare(self) -> None:
        """Make the folders, the person's own (mode 700). Needs no lock."""
        for folder in (self.root, self.jobs, self.ended):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def adopt(self, habits: Habits) -> None:
        """Write the habits down where they differ."""
        if self._habits() != habits:
            _write(self.root / "cluster.json", _jsonable(habits))

    def habits(self) -> Habits:
        """The habits in force. Raises OSError when the folder was never prepared."""
        habits = self._habits()
        if habits is None:
            raise OSError(f"{self.root / 'cluster.json'} cannot be read")
        return habits

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the one lock. TimeoutError after LOCK_WAIT_S: somebody holds it and does not move."""
        until = monotonic_s() + LOCK_WAIT_S
        with (self.root / "lock").open("ab") as file:
            while True:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if monotonic_s() > until:
                        raise TimeoutError(f"{file.name} has been held for {LOCK_WAIT_S:g} s") from None
                    pause(0.005)
            yield

    def active(self) -> list[Job]:
        """Jobs that are not ended, oldest first; an end that a crash left here is put away."""
        found = []
        for file in sorted(entry for entry in os.listdir(self.jobs) if entry.endswith(".json")):
            job = _read(self.jobs / file)
            if job is None:
                continue
            if job.state == "ended":
                (self.jobs / file).rename(self.ended / file)
            else:
                found.append(job)
        return found

    def read(self, job_id: str) -> Job | None:
        """One job that is not ended."""
        for file in self.jobs.glob(f"{job_id}~*.json"):
            return _read(file)
        return None

    def ended_files(self) -> list[str]:
        """File names of ended jobs, oldest first: `<id>~<name>.json` (see `id_and_name`)."""
        return sorted(entry for entry in os.listdir(self.ended) if entry.endswith(".json"))

    def read_ended(self, file: str) -> Job | None:
        """One ended job; None when it was deleted meanwhile."""
        return _read(self.ended / file)

    def save(self, job: Job) -> Job:
        """Write the record through to the disk; an ended one moves to its folder (in that order)."""
        path = self.jobs / f"{job.id}~{job.name}.json"
        _write(path, _jsonable(job))
        if job.state == "ended":
            path.rename(self.ended / path.name)
        return job

    def remove_ended(self, job: Job) -> None:
        """Forget an ended job; what it left in its workspace stays."""
        (self.ended / f"{job.id}~{job.name}.json").unlink(missing_ok=True)

    def next_id(self, active: Sequence[Job]) -> str:
        """A new id: eight letters and digits that sort by the time they were given out."""
        newest = max((int(job.id, 36) for job in active), default=0)
        taken = {id_and_name(file)[0] for file in self.ended_files()}
        number = max(int(now().timestamp() * 1000), newest + 1)
        while (new := _base36(number)) in taken:
            number += 1
        return new

    def _habits(self) -> Habits | None:
        try:
            found = json.loads((self.root / "cluster.json").read_bytes())
            return Habits(Slots(*found["total"]), found["stop_grace_s"], found["requeue_preempted"])
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            return None


def id_and_name(file: str) -> tuple[str, str]:
    """What a record's file name says."""
    job_id, _, name = file.removesuffix(".json").partition("~")
    return job_id, name


# --- one record as JSON ------------------------------------------------------------------------------------


def _jsonable(record: Job | Habits) -> bytes:
    return json.dumps(record._asdict(), default=datetime.isoformat).encode()


def _read(path: Path) -> Job | None:
    """The record in a file; None when it is not there or none of ours (records are written in one step)."""
    try:
        return _job(json.loads(path.read_bytes()))
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None


def _job(found: dict[str, Any]) -> Job:
    end = found["end"]
    times = ("submitted_at", "spawned_at", "started_at", "ask_at")
    return Job(
        **{
            **found,
            **{key: _time(found[key]) for key in times},
            "command": tuple(found["command"]),
            "env_names": tuple(found["env_names"]),
            "slots": Slots(*found["slots"]),
            "gpus": tuple(found["gpus"]),
            "launcher": Process(*found["launcher"]) if found["launcher"] else None,
            "group": Process(*found["group"]) if found["group"] else None,
            "end": None if end is None else End(end[0], datetime.fromisoformat(end[1]), *end[2:]),
            "events": tuple(Happened(datetime.fromisoformat(at), *rest) for at, *rest in found["events"]),
        }
    )


def _time(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


def _write(path: Path, data: bytes) -> None:
    """Replace a file in one step, through to the disk."""
    draft = path.with_name(f".{path.name}.draft")
    with open(draft, "wb", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _base36(number: int) -> str:
    digits = ""
    while number:
        number, digit = divmod(number, 36)
        digits = "0123456789abcdefghijklmnopqrstuvwxyz"[digit] + digits
    return digits
