"""What a cluster says, in the machine's own words: phases, observations, capacity, matches.

Each cluster turns its native words into these by a pure `normalise`; the native words stay beside them.
The meaning of each phase and flag: PHASES (native states of Slurm, Kubernetes, Ray, Brain++).

Never: judge. A missing record is not an outcome, and an unknown word means alive.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from enum import StrEnum

from states.reading import Frozen


class Phase(StrEnum):
    """The normalised phase of a cluster job."""

    pending = "pending"
    starting = "starting"
    running = "running"
    succeeded = "succeeded"
    failed = "failed"
    stopped = "stopped"
    preempted = "preempted"
    lost = "lost"
    gone = "gone"
    """The cluster answered and has no record of the job (never the same as "could not ask")."""
    unknown = "unknown"
    """A word that this cluster's table does not have: the job counts as alive, and the word is reported."""


ENDED = frozenset({Phase.succeeded, Phase.failed, Phase.stopped})
"""Phases that end a job at the first look, when the cluster has a positive record of them."""

SECOND_LOOK = frozenset({Phase.preempted, Phase.lost, Phase.gone})
"""Phases believed only when a second look says the same (a requeue takes seconds to about two minutes)."""


class Waiting(StrEnum):
    """Why a job that does not run yet waits, as far as the cluster tells."""

    wait = "wait"
    """Normal: queue, priority, image pull, scale-up."""
    budget = "budget"
    """The group's budget is spent; it moves when somebody adds to it or a period ends."""
    never = "never"
    """It can never run as asked: a limit of the site or a figure that no node has."""
    held = "held"
    """It will not move without a person (a hold, a missing secret, a failed launch)."""
    unclear = "unclear"


class Match(Frozen):
    """One cluster job that answers to a name. `ours`: owner and fingerprint agree with the attempt."""

    cluster_job_id: str
    name: str
    phase: Phase
    ours: bool = True
    submitted_at: datetime | None = None


class Observation(Frozen):
    """One look at one cluster job.

    native: the cluster's own words, bounded. reason: its reason code or sentence. waiting: class of that reason.
    held: will not move without a person. finishing: the work is over, the outcome not yet known.
    attempt: restarts under the same id (0 = first). exit_code/signal: as the cluster tells (None: it does not).
    confirmed: the job's own wrapper recorded this end. taken_at: when it was seen. node: where it runs, if told.
    twins: other live cluster jobs of the run: under the same name, or of earlier attempts (`beside`).
    """

    phase: Phase
    taken_at: datetime
    native: str = ""
    reason: str = ""
    waiting: Waiting = Waiting.wait
    held: bool = False
    finishing: bool = False
    suspended: bool = False
    attempt: int = 0
    exit_code: int | None = None
    signal: int | None = None
    confirmed: bool = False
    replicas: int | None = None
    replicas_ready: int | None = None
    node: str = ""
    started_at: datetime | None = None
    ended_at: datetime | None = None
    cause: str = ""
    """`layer.cause` where the cluster's own record names one (`scheduling.time_limit`, `memory.host`), else ""."""
    twins: tuple[Match, ...] = ()


def beside(seen: Observation, earlier: Iterable[tuple[str, str, Observation]]) -> Observation:
    """The look with what lives of earlier attempts among its twins. earlier: (name, cluster job id, look at it)."""
    twins = list(seen.twins)
    for name, job_id, other in earlier:
        if other.phase not in ENDED | SECOND_LOOK:
            twins.append(Match(cluster_job_id=job_id, name=name, phase=other.phase))
        twins += other.twins
    return seen if len(twins) == len(seen.twins) else seen.model_copy(update={"twins": tuple(twins)})


class Capacity(Frozen):
    """Free and total of one group, in whole GPUs, CPU cores and MiB; None where the cluster does not tell.

    block_gpu: the largest number of free GPUs on one node.
    """

    group: str = ""
    free_gpu: int | None = None
    free_cpu: float | None = None
    free_memory_mib: int | None = None
    total_gpu: int | None = None
    total_cpu: float | None = None
    total_memory_mib: int | None = None
    block_gpu: int | None = None
    queued: int | None = None


class NativeEvent(Frozen):
    """One scheduling or lifecycle event, as the cluster words it."""

    at: datetime | None
    kind: str
    message: str
    count: int = 1


class Capabilities(Frozen):
    """What a cluster offers, as data that the machine's numbers are chosen by.

    name_is_unique: it refuses a second job of the same name (Kubernetes, Ray). visible_within_s: how long after
    an accepted submit a job may still be missing from `find`. submit_timeout_s: how long one submit call can
    take at most; after it the call can no longer land. wrapper: our wrapper runs around the command.
    lanes: the lanes it has. keeps_ended_s: how long it remembers an ended job (None: for ever).
    """

    name_is_unique: bool = False
    visible_within_s: float = 5.0
    submit_timeout_s: float = 30.0
    wrapper: bool = False
    lanes: tuple[str, ...] = ("normal",)
    keeps_ended_s: float | None = None
    tells_log_time: bool = False
    needs_image: bool = False
    needs_credentials: tuple[str, ...] = ()
    needs_group: bool = False
    own_defaults: bool = False
    """A figure of 0 (cpu, memory_mib) is left to the cluster's own default."""
    idle_preempted_every_s: float | None = None
    """How often a job in the idle lane is preempted on the average, where the cluster tells."""
    poll_s: float | None = None
    """A better interval for the status call than the policy's own (a local process is cheap to look at)."""


class Artifact(Frozen):
    """A file that the run left: path relative to the workspace, size in bytes, last write."""

    path: str
    size_bytes: int
    modified_at: datetime
    declared: bool = False
