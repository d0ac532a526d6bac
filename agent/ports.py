"""What the loop needs of the outside, as one value: store, clock, clusters, reader, library. `app.py` fills it;
scenarios and simulation fill it with their own.

Never: a concrete cluster, clock or channel named here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from agent.clock import Clock
from agent.clusters.base import Cluster, Ref
from agent.store import Store
from states.effects import AnyEffect, Interpret, Remember
from states.events import Interpreted
from states.job import Check, Job
from states.logs.signatures import Signatures


class Reader(Protocol):
    """The model that reads logs (I2: it decides nothing)."""

    def interpret(self, job: Job, effect: Interpret, log: str) -> Interpreted: ...


class Library(Protocol):
    """The config library."""

    def remember(self, effect_id: str, effect: Remember, at: Any) -> None: ...

    def best(self, purpose: str, field: str) -> Any: ...


CheckFunction = Callable[[Job, "Ports"], Check]


@dataclass(frozen=True)
class Ports:
    """Everything that a turn may touch.

    redact: applied to every text that comes from outside. checks: preflight checks by name.
    announce: called with a job's id after its state may have changed (live views, channels); must not raise.
    """

    store: Store
    clock: Clock
    clusters: Mapping[str, Cluster]
    redact: Callable[[str], str] = str
    reader: Reader | None = None
    signatures: Signatures | None = None
    """The person's own log signatures beside the built-in ones; None: the built-in alone."""
    library: Library | None = None
    checks: Mapping[str, CheckFunction] = field(default_factory=dict)
    delegate_child: Callable[[Job, str, Any], None] | None = None
    announce: Callable[[str], None] = lambda job_id: None
    before_effect: Callable[[AnyEffect], None] = lambda effect: None
    """Passed before each performance; what it raises is the effect's own failure. Stories break effects here."""

    def cluster_of(self, job: Job) -> Cluster:
        """The job's cluster. KeyError with what to do when it is no longer configured."""
        try:
            return self.clusters[job.cluster]
        except KeyError:
            raise KeyError(
                f"{job.id} is on the cluster {job.cluster!r}, which is not configured here; add it to `clusters:`"
            ) from None


def ref_of(job: Job) -> Ref:
    """How the present attempt is known to its cluster."""
    attempt = job.attempt
    return Ref(attempt.name, attempt.cluster_job_id, attempt.intent_at)
