"""What a cluster's tests share: the bench that each driver provides, the commands, the steps of a test."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from agent.clock import SystemClock, serial
from agent.clusters.base import Cluster, Ref, Submission
from states.naming import attempt_name, fingerprint, job_id
from states.observation import ENDED, Observation, Phase
from states.spec import Spec

OVER = ENDED | {Phase.preempted, Phase.lost, Phase.gone}
OWNER = "someone"
HOSTILE = "a \"b\" 'c' $(touch nested) `touch ticked` $HOME \\n; & | > <\n\ttwo  lines 中文 é \U0001f600 %s *"

Eventually = Callable[..., Any]


class Bench(Protocol):
    """One cluster to be tested, empty at first.

    wait_s: seconds within which a short job has run to its end. without: contract tests that it cannot
    pass, with the reason. whole: the figures of a job that leaves no room for another (fields of Spec).
    """

    wait_s: float
    without: Mapping[str, str]
    whole: Mapping[str, Any]

    def client(self) -> Cluster:
        """Another client of the same cluster, as after a restart of the agent."""
        ...

    def severed(self) -> Cluster:
        """A client that cannot reach the cluster."""
        ...

    def spec(self, *command: str, **changes: Any) -> Spec:
        """The smallest spec that runs there."""
        ...

    def calls(self) -> int:
        """Calls that all clients have made to the cluster so far."""
        ...


# --- commands ----------------------------------------------------------------------------------------------


def ends(code: int) -> tuple[str, ...]:
    """Ends at once with that code."""
    return ("sh", "-c", f"exit {code}")


def prints(count: int, then: str = "") -> tuple[str, ...]:
    """Prints `line 1` to `line <count>`, then does as told."""
    return ("sh", "-c", f'i=0; while [ $i -lt {count} ]; do i=$((i+1)); echo "line $i"; done; {then}')


def sleeps() -> tuple[str, ...]:
    """Says `ready`, and ends only when it is stopped."""
    return ("sh", "-c", "echo ready; exec sleep 600")


def ignores_term() -> tuple[str, ...]:
    """As `sleeps`, but TERM does not end it."""
    return ("sh", "-c", "trap '' TERM; echo ready; while :; do sleep 600; done")


# --- the steps of the tests --------------------------------------------------------------------------------


def submission(spec: Spec, name: str = "") -> Submission:
    name = name or attempt_name(job_id("contract", serial()), 0, spec)
    return Submission(name=name, fingerprint=fingerprint(spec), owner=OWNER, spec=spec)


def submit(cluster: Cluster, spec: Spec, name: str = "") -> Ref:
    """Submit under a new name (or a given one) and say how to find it again."""
    sent = submission(spec, name)
    return Ref(sent.name, cluster.submit(sent).cluster_job_id, SystemClock().now())


def look(cluster: Cluster, ref: Ref) -> Observation:
    return cluster.observe([ref])[ref.name]
