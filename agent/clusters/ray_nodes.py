"""Ray's nodes as the state API tells them: what each has, what is free, and whether a request can ever fit.

A request is a mapping of Ray's resource names (`CPU`, `GPU`, `memory` in bytes, custom ones) to amounts. It must fit
on one node: an entrypoint is one process.

Never: an answer from a node that is not alive.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from agent.clusters.base import Unclear
from states.observation import Capacity

MIB = 1 << 20
UNITS: Mapping[str, str] = {"CPU": "CPU cores", "GPU": "GPUs"}


class Node(NamedTuple):
    """One node. name: as given at its start, else its address. total: resource -> amount."""

    id: str
    name: str
    alive: bool
    head: bool
    total: Mapping[str, float]
    started_at: datetime | None = None


def nodes(answer: Any) -> list[Node]:
    """From the answer of `/api/v0/nodes?detail=1`. Raises Unclear."""
    try:
        rows = answer["data"]["result"]["result"]
        return [
            Node(
                id=row["node_id"],
                name=row.get("node_name") or row.get("node_ip") or row["node_id"],
                alive=row["state"] == "ALIVE",
                head=bool(row.get("is_head_node")),
                total={str(key): float(value) for key, value in (row.get("resources_total") or {}).items()},
                started_at=moment(row.get("start_time_ms")),
            )
            for row in rows
        ]
    except (KeyError, TypeError, ValueError, AttributeError):
        raise Unclear("Ray's list of nodes cannot be read") from None


def used_by_autoscaler(answer: Any) -> dict[str, dict[str, float]]:
    """Node id -> resource -> amount in use, from `/api/cluster_status`; {} where no monitor runs. It is the monitor's
    last note, some seconds old."""
    status = (answer.get("data") or {}).get("clusterStatus") or {}
    by_node = (status.get("loadMetricsReport") or {}).get("usageByNode") or {}
    return {
        node: {resource: float(pair[0]) for resource, pair in usage.items() if pair}
        for node, usage in by_node.items()
    }


def capacity(
    all_: Sequence[Node],
    told: Mapping[str, Mapping[str, float]],
    running: Iterable[tuple[str, Mapping[str, float]]],
    queued: int,
) -> Capacity:
    """Free and total over the nodes alive. told: what the monitor noted as used. running: node id and request of each
    entrypoint that runs, which is known at once. The larger of the two counts as used."""
    entrypoints: dict[str, dict[str, float]] = {}
    for node_id, request in running:
        sums = entrypoints.setdefault(node_id, {})
        for resource, amount in request.items():
            sums[resource] = sums.get(resource, 0.0) + amount
    alive = [node for node in all_ if node.alive]

    def free(node: Node, resource: str) -> float:
        used = max(source.get(node.id, {}).get(resource, 0.0) for source in (told, entrypoints))
        return max(0.0, node.total.get(resource, 0.0) - used)

    return Capacity(
        free_gpu=int(sum(free(node, "GPU") for node in alive)),
        free_cpu=sum(free(node, "CPU") for node in alive),
        free_memory_mib=int(sum(free(node, "memory") for node in alive)) // MIB,
        total_gpu=int(sum(node.total.get("GPU", 0.0) for node in alive)),
        total_cpu=sum(node.total.get("CPU", 0.0) for node in alive),
        total_memory_mib=int(sum(node.total.get("memory", 0.0) for node in alive)) // MIB,
        block_gpu=max((int(free(node, "GPU")) for node in alive), default=0),
        queued=queued,
    )


def too_large(request: Mapping[str, float], totals: Sequence[Mapping[str, float]]) -> str:
    """Why the request fits on no node, in words; "" if it fits on one (as far as totals tell) or there is none."""
    if not totals or any(_fits(request, total) for total in totals):
        return ""
    for resource, amount in request.items():
        most = max(total.get(resource, 0.0) for total in totals)
        if amount > most:
            return f"asks for {shown(resource, amount)}; the largest node has {shown(resource, most)}"
    return f"asks for {', '.join(shown(*part) for part in request.items())}; no node has all of it"


def avoided(names: Iterable[str], request: Mapping[str, float], all_: Sequence[Node]) -> list[str]:
    """Ids of the nodes alive that have one of these names (or ids); none of them if no other node could take the
    request, since the job would then wait for ever."""
    unwanted = {node.id for node in all_ if node.alive and {node.id, node.name} & set(names)}
    others = [node.total for node in all_ if node.alive and node.id not in unwanted]
    return sorted(unwanted) if any(_fits(request, total) for total in others) else []


def shown(resource: str, amount: float) -> str:
    """`2 CPU cores`, `512 MiB of memory`."""
    if resource == "memory":
        return f"{amount / MIB:.0f} MiB of memory"
    return f"{amount:g} {UNITS.get(resource, resource)}"


def moment(milliseconds: Any) -> datetime | None:
    """From milliseconds since 1970; None for 0 and for what is no number."""
    if isinstance(milliseconds, (int, float)) and milliseconds > 0:
        return datetime.fromtimestamp(milliseconds / 1000, UTC)
    return None


def _fits(request: Mapping[str, float], total: Mapping[str, float]) -> bool:
    return all(total.get(resource, 0.0) >= amount for resource, amount in request.items())
