"""How much room there is: nodes less what their pods ask for, within the namespace's quota; or the quota alone.

Ordinary accounts may often not read nodes or other people's pods. Then the ResourceQuota of the namespace tells, and
what nobody tells stays None.

Never: count a node that takes no pods; take what a pod uses for what it asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from agent.clusters.base import Refused
from agent.clusters.kubernetes_api import Api, Said
from agent.clusters.kubernetes_objects import Object, condition, field, items, job_of, name_of, quantity, text
from agent.clusters.kubernetes_waits import wanted
from states.observation import Capacity

MIB = 1 << 20
LIVE_PODS = "status.phase!=Succeeded,status.phase!=Failed"

Amounts = dict[str, float]


def capacity(api: Api, namespace: str, group: str, gpu: str, tolerated: frozenset[str]) -> Capacity:
    """Free and total for a namespace. Raises Refused when neither nodes nor quota may be read, and as Api."""
    nodes = allowed(api, "/api/v1/nodes")
    quotas = allowed(api, f"/api/v1/namespaces/{namespace}/resourcequotas")
    if nodes is None and quotas is None:
        raise Refused(f"neither the nodes nor the quota of {namespace} may be read with this account")
    pods = allowed(api, "/api/v1/pods", fieldSelector=LIVE_PODS) if nodes is not None else None
    if pods is None:
        mine = allowed(api, f"/api/v1/namespaces/{namespace}/pods", fieldSelector=LIVE_PODS)
    else:
        mine = [pod for pod in pods if text(pod, "metadata", "namespace") == namespace]
    free: dict[str, Amounts] | None = None
    total: Amounts = {}
    if nodes is not None:
        open_nodes = [node for node in nodes if takes_pods(node, tolerated | {gpu})]
        total = _sum(_offer(node) for node in open_nodes)
        free = None if pods is None else left_on(open_nodes, pods)
    return _told(group, gpu, total, free, _quota(quotas or ()), waiting_in(mine))


def allowed(api: Api, path: str, **query: Any) -> Sequence[Object] | None:
    """The list, or None when this account may not read it (or there is no such thing). Raises as Api."""
    try:
        return api.list(path, **query)
    except Said as error:
        if error.code in (403, 404):
            return None
        raise error.refused() from None


def takes_pods(node: Object, tolerated: frozenset[str]) -> bool:
    """Ready, not cordoned, and without a taint that our pods do not tolerate (GPU taints are the GPU's own name)."""
    if condition(node, "Ready") is None or field(node, "spec", "unschedulable") is True:
        return False
    taints = items(node, "spec", "taints")
    return all(taint.get("effect") == "PreferNoSchedule" or taint.get("key") in tolerated for taint in taints)


def left_on(nodes: Sequence[Object], pods: Iterable[Object]) -> dict[str, Amounts]:
    """What is left on each node after the requests of the pods on it; never below 0."""
    left = {name_of(node): dict(_offer(node)) for node in nodes}
    for pod in pods:
        there = left.get(text(pod, "spec", "nodeName"))
        if there is None or text(pod, "status", "phase") in ("Succeeded", "Failed"):
            continue
        for kind, amount in wanted(field(pod, "spec")).items():
            there[kind] = max(0.0, there.get(kind, 0.0) - amount)
    return left


def waiting_in(pods: Sequence[Object] | None) -> int | None:
    """How many jobs have a pod that no node was found for."""
    if pods is None:
        return None
    waits = [
        pod for pod in pods if not text(pod, "spec", "nodeName") and text(pod, "status", "phase") == "Pending"
    ]
    return len({job_of(pod) or name_of(pod) for pod in waits})


def _told(
    group: str,
    gpu: str,
    total: Amounts,
    free: Mapping[str, Amounts] | None,
    quota: tuple[Amounts, Amounts],
    queued: int | None,
) -> Capacity:
    hard, left = quota
    room = _sum(free.values()) if free is not None else None

    def of(kind: str) -> tuple[float | None, float | None]:
        on_nodes = total.get(kind, 0.0) if total else None
        left_there = room.get(kind, 0.0) if total and room is not None else None
        frees = [amount for amount in (left_there, left.get(kind)) if amount is not None]
        totals = [amount for amount in (on_nodes, hard.get(kind)) if amount is not None]
        return min(frees, default=None), min(totals, default=None)

    (free_gpu, total_gpu), (free_cpu, total_cpu), (free_memory, total_memory) = (
        of(gpu),
        of("cpu"),
        of("memory"),
    )
    block = None if free is None else max((node.get(gpu, 0.0) for node in free.values()), default=0.0)
    if block is not None and free_gpu is not None:
        block = min(block, free_gpu)
    return Capacity(
        group=group,
        free_gpu=_whole(free_gpu),
        free_cpu=free_cpu,
        free_memory_mib=_whole(free_memory, MIB),
        total_gpu=_whole(total_gpu),
        total_cpu=total_cpu,
        total_memory_mib=_whole(total_memory, MIB),
        block_gpu=_whole(block),
        queued=queued,
    )


def _quota(quotas: Iterable[Object]) -> tuple[Amounts, Amounts]:
    """Hard limits and what is left of them, the tightest of all quotas; `requests.` counts, else `limits.`."""
    hard: Amounts = {}
    left: Amounts = {}
    for one in quotas:
        if field(one, "spec", "scopes") or field(one, "spec", "scopeSelector"):
            continue  # for some pods only
        limits = field(one, "status", "hard") or {}
        for key, value in limits.items():
            kind = str(key).removeprefix("requests.")
            amount, used = quantity(value), quantity(field(one, "status", "used", key)) or 0.0
            if kind.startswith("limits.") or amount is None:
                continue
            hard[kind] = min(amount, hard.get(kind, amount))
            left[kind] = max(0.0, min(amount - used, left.get(kind, amount - used)))
    return hard, left


def _offer(node: Object) -> Amounts:
    offers = field(node, "status", "allocatable") or {}
    return {kind: amount for kind, value in offers.items() if (amount := quantity(value)) is not None}


def _sum(amounts: Iterable[Mapping[str, float]]) -> Amounts:
    together: Amounts = {}
    for one in amounts:
        for kind, amount in one.items():
            together[kind] = together.get(kind, 0.0) + amount
    return together


def _whole(amount: float | None, unit: int = 1) -> int | None:
    return None if amount is None else int(amount // unit)
