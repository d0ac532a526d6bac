"""Builders of Kubernetes objects as the API server sends them, for tests of the judgement alone."""

from __future__ import annotations

from typing import Any

Object = dict[str, Any]
AT = "2031-02-03T04:05:06Z"
LATER = "2031-02-03T05:06:07Z"

DISRUPTED = [{"action": "FailJob", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}]
IGNORED = [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}]


def told(kind: str, reason: str = "", message: str = "", status: str = "True", at: str = LATER) -> Object:
    """A condition."""
    return {"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": at}


def job(
    *conditions: Object,
    name: str = "run",
    suspend: bool = False,
    limit: int | None = 0,
    rules: list[Object] | None = None,
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
    replicas: int = 1,
    spec: Object | None = None,
    **status: Any,
) -> Object:
    made: Object = {
        "metadata": {"name": name, "uid": "u-1", "labels": labels or {}, "annotations": annotations or {}},
        "spec": {"suspend": suspend, "parallelism": replicas, "completions": replicas, **(spec or {})},
        "status": {"conditions": list(conditions), "startTime": AT, **status},
    }
    if limit is not None:
        made["spec"]["backoffLimit"] = limit
    if rules is not None:
        made["spec"] |= {"podFailurePolicy": {"rules": rules}, "podReplacementPolicy": "Failed"}
    if replicas > 1:
        made["spec"]["completionMode"] = "Indexed"
    return made


def pod(
    phase: str = "Running",
    *conditions: Object,
    state: Object | None = None,
    reason: str = "",
    message: str = "",
    node: str = "n1",
    index: int | None = None,
    made: str = AT,
    going: bool = False,
    grace: int = 30,
    name: str = "",
    restarts: int = 0,
    gpu: int = 0,
) -> Object:
    """A pod; `state` of its container left out is what the phase suggests."""
    usual: dict[str, Object] = {
        "Running": {"running": {"startedAt": AT}},
        "Succeeded": ended(0),
        "Failed": ended(1),
        "Pending": {"waiting": {"reason": "ContainerCreating"}},
    }
    metadata: Object = {
        "name": name or f"run-{index if index is not None else 'x'}-abcde",
        "creationTimestamp": made,
    }
    if index is not None:
        metadata["annotations"] = {"batch.kubernetes.io/job-completion-index": str(index)}
    if going:
        metadata |= {"deletionTimestamp": LATER, "deletionGracePeriodSeconds": grace}
    status: Object = {"phase": phase, "conditions": list(conditions)}
    if reason or message:
        status |= {"reason": reason, "message": message}
    inside = usual.get(phase, {}) if state is None else state
    if inside and node:
        status["containerStatuses"] = [{"name": "main", "state": inside, "restartCount": restarts}]
    spec: Object = {"containers": [{"name": "main", "image": "reg/own:7"}]}
    if gpu:
        spec["containers"][0]["resources"] = {"requests": {"nvidia.com/gpu": str(gpu)}}
    return {"metadata": metadata, "spec": spec | ({"nodeName": node} if node else {}), "status": status}


def ended(code: int, reason: str = "", message: str = "", at: str = LATER) -> Object:
    """The state of a container that is over."""
    why = reason or ("Completed" if code == 0 else "Error")
    return {
        "terminated": {"exitCode": code, "reason": why, "message": message, "startedAt": AT, "finishedAt": at}
    }


def waits(reason: str, message: str = "") -> Object:
    return {"waiting": {"reason": reason, "message": message}}


def unscheduled(message: str, *, gpu: int = 0, reason: str = "Unschedulable") -> Object:
    return pod("Pending", told("PodScheduled", reason, message, "False"), node="", gpu=gpu)


def event(
    reason: str, message: str = "", about: str = "run", kind: str = "Job", at: str = AT, **more: Any
) -> Object:
    return {
        "reason": reason,
        "message": message,
        "involvedObject": {"name": about, "kind": kind},
        "lastTimestamp": at,
        **more,
    }


def node(name: str = "n1", *, ready: str = "True", **allocatable: str) -> Object:
    offers = {kind.replace("gpu", "nvidia.com/gpu"): value for kind, value in allocatable.items()}
    status = {"allocatable": offers, "conditions": [told("Ready", status=ready)]}
    return {"metadata": {"name": name}, "status": status}


def workload(*conditions: Object, active: bool = True, **status: Any) -> Object:
    return {
        "metadata": {"name": "job-run", "ownerReferences": [{"kind": "Job", "name": "run", "uid": "u-1"}]},
        "spec": {"active": active},
        "status": {"conditions": list(conditions), **status},
    }
