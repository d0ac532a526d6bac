"""What is known of one Job at a look, and the small questions that every judgement of it asks.

Never: read a clock or the API; decide a phase.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from agent.clusters.kubernetes_objects import (
    Object,
    condition,
    count,
    field,
    main_container,
    name_of,
    started,
    text,
)
from agent.clusters.kubernetes_waits import evictions


class Native(NamedTuple):
    """What is known of one Job. events: oldest first. nodes, workload: None when not read or not there."""

    job: Object
    places: Sequence[Sequence[Object]]
    events: Sequence[Object]
    nodes: Sequence[Object] | None
    workload: Object | None


def is_over(pod: Object) -> bool:
    """Whether nothing of this pod runs any more, as far as the API server knows."""
    phase = text(pod, "status", "phase")
    forced = (
        field(pod, "metadata", "deletionTimestamp")
        and field(pod, "metadata", "deletionGracePeriodSeconds") == 0
    )
    return phase in ("Succeeded", "Failed") or bool(forced)


def went_well(pod: Object) -> bool:
    return text(pod, "status", "phase") == "Succeeded"


def is_lost(pod: Object, nodes: Sequence[Object] | None) -> bool:
    """To be deleted, and its node does not answer: nobody will ever update it (PHASES 2)."""
    node = text(pod, "spec", "nodeName")
    return bool(
        node and nodes is not None and field(pod, "metadata", "deletionTimestamp") and is_away(node, nodes)
    )


def is_away(name: str, nodes: Sequence[Object]) -> bool:
    """Not Ready, or no longer among the nodes."""
    found = [node for node in nodes if name_of(node) == name]
    return not found or condition(found[0], "Ready") is None


def attempt(found: Native) -> int:
    """Pods made after the first of a place, failures the Job counts, and restarts in the pod; or the number of times
    that Kueue took the Job back, whose pods are gone then."""
    replaced = max((len(place) - 1 for place in found.places), default=0)
    restarts = max((count(main_container(place[-1]), "restartCount") for place in found.places), default=0)
    if (
        len(found.places) == 1
        and not condition(found.job, "Failed")
        and not condition(found.job, "FailureTarget")
    ):
        newest_failed = text(found.places[0][-1], "status", "phase") == "Failed"
        replaced = max(replaced, count(found.job, "status", "failed") - newest_failed)
    return max(replaced + restarts, evictions(found.workload))


def began(found: Native) -> datetime | None:
    begins = [when for place in found.places if (when := started(place[-1])) is not None]
    return min(begins, default=None)


def where(pods: Sequence[Object]) -> dict[str, Any]:
    return {"node": next((node for pod in pods if (node := text(pod, "spec", "nodeName"))), "")}


def part(fields: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: fields[name] for name in names if name in fields}
