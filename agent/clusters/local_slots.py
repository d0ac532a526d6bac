"""Who runs next on this machine: slots, the queue's order, room made by idle jobs. Pure.

Normal jobs by priority (9 first), then by age; idle-lane jobs after them all. A job that does not fit yet
keeps what is free of the slots it needs, so nobody behind it delays it, while slots that it does not need
stay usable. A normal job that still lacks room has idle jobs preempted, the newest first, as few as will do.

Never: touch a process or a file; start more than fits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from agent.clusters.local_records import Job

RESOURCES = "Resources"
"""It waits for slots that others hold."""
PREEMPTING = "Preempting"
"""Idle jobs are being stopped to make room for it."""
NEVER = "Never"
"""It asks for more than the machine has."""


class Slots(NamedTuple):
    """CPU cores, memory in MiB, whole GPUs."""

    cpu: float
    memory_mib: int
    gpu: int

    def fits(self, room: Slots) -> bool:
        """True when `room` has at least this much of everything."""
        return self.cpu <= room.cpu and self.memory_mib <= room.memory_mib and self.gpu <= room.gpu

    def plus(self, other: Slots) -> Slots:
        """Both together."""
        return Slots(self.cpu + other.cpu, self.memory_mib + other.memory_mib, self.gpu + other.gpu)

    def minus(self, other: Slots) -> Slots:
        """What is left of this without the other; never below nothing."""
        return Slots(
            max(self.cpu - other.cpu, 0.0),
            max(self.memory_mib - other.memory_mib, 0),
            max(self.gpu - other.gpu, 0),
        )

    def beyond(self, room: Slots) -> str:
        """What of this `room` lacks, in words ("64 CPU cores of 2"); "" when it fits."""
        pairs = zip(self, room, ("CPU cores", "MiB of memory", "GPUs"), strict=True)
        return ", ".join(f"{mine:g} {word} of {there:g}" for mine, there, word in pairs if mine > there)


NOTHING = Slots(0.0, 0, 0)


class Wait(NamedTuple):
    """Why a queued job does not start: one of the words above, and a sentence that does not flicker."""

    word: str
    reason: str


class Plan(NamedTuple):
    """start: jobs with the GPU indices each gets, in order. preempt: idle jobs to halt. waits: by job id.

    free: what is left once `start` has started.
    """

    start: tuple[tuple[Job, tuple[int, ...]], ...]
    preempt: tuple[Job, ...]
    waits: dict[str, Wait]
    free: Slots


def in_turn(jobs: Sequence[Job]) -> list[Job]:
    """Queued jobs in the order in which they get slots. Ids sort by age."""
    queued = (job for job in jobs if job.state == "queued")
    return sorted(queued, key=lambda job: (job.lane == "idle", -job.priority, job.id))


def room(jobs: Sequence[Job], total: Slots) -> Slots:
    """What launched jobs leave free."""
    used = NOTHING
    for job in jobs:
        if job.state == "launched":
            used = used.plus(job.slots)
    return total.minus(used)


def plan(jobs: Sequence[Job], total: Slots) -> Plan:
    """What is to be done now. jobs: every job that is not ended."""
    launched = [job for job in jobs if job.state == "launched"]
    spare_gpus = [index for index in range(total.gpu) if not any(index in job.gpus for job in launched)]
    free = left = room(jobs, total)
    soon = free
    """What is free and what is being vacated, less what those in front will take of it."""
    for job in launched:
        if job.ask:
            soon = soon.plus(job.slots)
    start: list[tuple[Job, tuple[int, ...]]] = []
    preempt: list[Job] = []
    waits: dict[str, Wait] = {}
    for job in in_turn(jobs):
        if not job.slots.fits(total):
            waits[job.id] = Wait(NEVER, f"asks for {job.slots.beyond(total)} that this machine has")
            continue
        if job.slots.fits(left):
            start.append((job, tuple(spare_gpus[: job.slots.gpu])))
            del spare_gpus[: job.slots.gpu]
            free = free.minus(job.slots)
        else:
            victims = victims_for(job, soon, [other for other in launched if other not in preempt])
            preempt += victims
            for victim in victims:
                soon = soon.plus(victim.slots)
            waits[job.id] = _waiting(job, left, soon)
        left = left.minus(job.slots)
        soon = soon.minus(job.slots)
    return Plan(tuple(start), tuple(preempt), waits, free)


def victims_for(job: Job, soon: Slots, launched: Sequence[Job]) -> list[Job]:
    """Idle jobs to preempt so that a normal one will fit; none when it fits soon anyway or cannot even so."""
    if job.lane == "idle" or job.slots.fits(soon):
        return []
    idle = [other for other in launched if other.lane == "idle" and not other.ask]
    chosen: list[Job] = []
    for other in sorted(idle, key=lambda other: other.id, reverse=True):
        chosen.append(other)
        if job.slots.fits(_with(soon, chosen)):
            break
    else:
        return []
    for other in reversed(chosen):
        fewer = [one for one in chosen if one is not other]
        if job.slots.fits(_with(soon, fewer)):
            chosen = fewer
    return chosen


def _with(room: Slots, jobs: Sequence[Job]) -> Slots:
    for job in jobs:
        room = room.plus(job.slots)
    return room


def _waiting(job: Job, left: Slots, soon: Slots) -> Wait:
    if job.lane == "normal" and job.slots.fits(soon):
        return Wait(PREEMPTING, "slots are being vacated for it")
    return Wait(RESOURCES, "waits for slots that other jobs hold")
