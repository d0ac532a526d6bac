"""Capacity from `brainctl get queues -o json`: the one queue of a group, matched exactly, in our units.

The list is one of Volcano queues; a group's queue is `<namespace>-<group with _ as ->` (RJOB 4). Answers are
sometimes cut short, so the caller asks again while `parse` gives None.

Never: take a queue whose name only begins like the group's; pass on a GPU ceiling that a CPU group cannot use.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from states.credentials import Pair
from states.observation import Capacity

BYTES_MIN = 200
"""A shorter answer is not a whole list."""
GPU = "nvidia.com/gpu"
MIB = 2.0**20

_QUANTITY = re.compile(r"([-+]?\d{1,30}(?:\.\d{0,30})?(?:[eE][-+]?\d{1,3})?)(m|[KMGTPE]i?|k)?")
_SCALE = {
    "m": 1e-3, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18,
    "Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40, "Pi": 2.0**50, "Ei": 2.0**60,
}  # fmt: skip


def quantity(value: object) -> float | None:
    """A Kubernetes quantity (`1500m`, `32Gi`, `7`) as a number; None for what is none."""
    match = _QUANTITY.fullmatch(str(value).strip()) if isinstance(value, (str, int, float)) else None
    return None if match is None else float(match[1]) * _SCALE.get(match[2] or "", 1.0)


def parse(text: str) -> list[dict[str, Any]] | None:
    """The queues; None for an answer that is cut short or is no list of queues."""
    if len(text) < BYTES_MIN:
        return None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    items = found.get("items") if isinstance(found, dict) else found
    return [item for item in items if isinstance(item, dict)] if isinstance(items, list) else None


def queue_name(pair: Pair) -> str:
    return f"{pair.namespace}-{pair.group.replace('_', '-')}"


def capacity_of(queues: list[dict[str, Any]], pair: Pair) -> Capacity | None:
    """Free and total of the pair's group; None if it has no queue. Kinds without a ceiling are not told.

    GPUs are told only where some are in use or the group's name says gpu: CPU groups carry a ceiling of GPUs
    that they cannot use. How many are free on one node the queue does not say.
    """
    name = queue_name(pair)
    queue = next((queue for queue in queues if _of(queue, "metadata").get("name") == name), None)
    if queue is None:
        return None
    ceiling, status = _of(_of(queue, "spec"), "capability"), _of(queue, "status")
    used = _of(status, "allocated")
    total = {kind: quantity(ceiling.get(kind)) for kind in (GPU, "cpu", "memory")}
    taken = {kind: quantity(used.get(kind)) or 0.0 for kind in total}
    if not taken[GPU] and "gpu" not in pair.group.lower():
        total[GPU] = None
    free = {kind: None if of is None else max(0.0, of - taken[kind]) for kind, of in total.items()}
    waiting = [status[word] for word in ("pending", "inqueue") if isinstance(status.get(word), int)]
    return Capacity(
        group=pair.group,
        free_gpu=_whole(free[GPU]),
        free_cpu=free["cpu"],
        free_memory_mib=_whole(free["memory"], MIB),
        total_gpu=_whole(total[GPU]),
        total_cpu=total["cpu"],
        total_memory_mib=_whole(total["memory"], MIB),
        queued=sum(waiting) if waiting else None,
    )


def _of(value: Mapping[str, Any], field: str) -> Mapping[str, Any]:
    found = value.get(field)
    return found if isinstance(found, dict) else {}


def _whole(value: float | None, unit: float = 1.0) -> int | None:
    return None if value is None else int(value // unit)
