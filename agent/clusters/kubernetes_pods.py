"""The state of a Job that has pods and no condition yet: what its newest pods come to together (PHASES 2).

Never: read a clock or the API; call a pod that is going down over while it runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agent.clusters.kubernetes_ends import disruption, end_of
from agent.clusters.kubernetes_native import Native, attempt, began, is_away, is_lost, is_over, part
from agent.clusters.kubernetes_objects import (
    Object,
    count,
    field,
    items,
    name_of,
    runs,
    terminated,
    text,
)
from agent.clusters.kubernetes_waits import crash_loop, starting, unscheduled
from states.observation import Phase


def running(found: Native) -> dict[str, Any]:
    """The state of a Job that has pods and no condition: that of its newest pods, the worst one first."""
    judged = [_pod(place[-1], found) for place in found.places]
    worst = min(judged, key=_urgency)
    fields = {**worst, "started_at": began(found)}
    if worst["phase"] is Phase.succeeded:
        return _nearly_over(fields, "its pods succeeded")
    if worst["phase"] in (Phase.failed, Phase.preempted, Phase.lost) and _is_replaced(found, worst["phase"]):
        said = f"a new pod follows, since: {worst.get('reason') or 'a pod failed'}"
        return {"phase": Phase.pending, "reason": said, "attempt": attempt(found) + 1}
    if worst["phase"] is Phase.failed:
        return _nearly_over(fields, f"a pod failed: {worst.get('reason', '')}".rstrip(": "))
    waits = worst["phase"] in (Phase.pending, Phase.starting)
    if waits and attempt(found) and any(one["phase"] is Phase.running for one in judged):
        return fields | {"phase": Phase.running, "reason": f"not all of it runs: {worst.get('reason', '')}"}
    mixed = len({one["phase"] for one in judged}) > 1
    return fields | ({"phase": Phase.starting} if waits and mixed else {})


def _nearly_over(fields: Mapping[str, Any], said: str) -> dict[str, Any]:
    """The work is over; what it comes to is the Job's to say."""
    told = {"phase": Phase.running, "finishing": True, "reason": f"{said}; the Job has not said so yet"}
    return {**part(fields, "node", "started_at"), **told}


ORDER = (
    Phase.lost,
    Phase.preempted,
    Phase.failed,
    Phase.unknown,
    Phase.pending,
    Phase.starting,
    Phase.running,
    Phase.succeeded,
)


def _urgency(fields: Mapping[str, Any]) -> tuple[int, bool, bool]:
    return ORDER.index(fields["phase"]), not fields.get("held", False), not fields.get("finishing", False)


def _pod(pod: Object, found: Native) -> dict[str, Any]:
    """One pod as fields; the phase of a pod whose node is gone says Running for ever."""
    events = [event for event in found.events if text(event, "involvedObject", "name") == name_of(pod)]
    where = {"node": text(pod, "spec", "nodeName")}
    if is_lost(pod, found.nodes):
        said = f"the pod is to go and its node {where['node']} no longer answers"
        return {"phase": Phase.lost, "reason": said, **where}
    phase, why = text(pod, "status", "phase"), text(pod, "status", "reason")
    if phase in ("Failed", "Succeeded", "Unknown") or why == "NodeLost":
        return {**end_of(pod), **where}
    if field(pod, "metadata", "deletionTimestamp"):
        return {**_going(pod), **where}
    if phase not in ("", "Pending", "Running"):
        return {"phase": Phase.unknown, "reason": f"pod phase {phase}", **where}
    if not where["node"]:
        return {**unscheduled(pod, events, found.nodes), **where}
    if loop := crash_loop(pod):
        return {"phase": Phase.running, "reason": loop, **where}
    if not runs(pod) and terminated(pod) is None:
        return {**starting(pod, events), **where}
    away = found.nodes is not None and is_away(where["node"], found.nodes)
    return {
        "phase": Phase.running,
        "reason": f"the node {where['node']} is not ready" if away else "",
        **where,
    }


def _going(pod: Object) -> dict[str, Any]:
    """A pod that is being deleted: by a disruption, or by somebody (nothing tells whom)."""
    target = disruption(pod)
    if target is None:
        if runs(pod):
            return {"phase": Phase.running, "reason": "its pod is being deleted"}
        return {"phase": Phase.pending, "reason": "its pod is being deleted"}
    fields = end_of({**pod, "status": {**(field(pod, "status") or {}), "phase": "Failed"}})
    if is_over(pod) or not runs(pod):
        return fields
    return {"phase": Phase.running, "finishing": True, "reason": f"its pod is going down: {fields['reason']}"}


def _is_replaced(found: Native, phase: Phase) -> bool:
    """Whether the Job controller makes another pod by itself: retries are left, or the policy ignores this end.

    One that waits for a dead node to say that the pod failed waits for ever.
    """
    stuck = any(is_lost(place[-1], found.nodes) for place in found.places)
    if stuck and field(found.job, "spec", "podReplacementPolicy") == "Failed":
        return False
    if phase is not Phase.failed:
        for rule in items(found.job, "spec", "podFailurePolicy", "rules"):
            if any(one.get("type") == "DisruptionTarget" for one in items(rule, "onPodConditions")):
                return rule.get("action") in ("Ignore", "Count")
    limit = field(found.job, "spec", "backoffLimit")
    seen = sum(text(pod, "status", "phase") == "Failed" for place in found.places for pod in place)
    return max(count(found.job, "status", "failed"), seen, 1) <= (6 if limit is None else int(limit))
