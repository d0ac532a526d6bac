"""What a drawn job does, in a cluster's own words: they go through that cluster's `normalise`, as its driver's do.

Where a cluster has no word of its own for something (Slurm for a record that is gone, Ray for a preemption),
the look is told plainly.

Never: another meaning than the plain look has.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

LookData = Mapping[str, Any]
Native = dict[str, Any] | None
"""A cluster's words for a look; None: it has none."""


def spoken(job: Mapping[str, Any], kind: str) -> dict[str, Any]:
    """The job with its history in the words of that kind of cluster."""
    return {**job, "history": [_look(look, WORDS[kind]) for look in job["history"]]}


def _look(look: Any, words: Callable[[str, LookData], Native]) -> Any:
    plain = {"phase": look} if isinstance(look, str) else look
    native = words(plain["phase"], plain)
    if native is None:
        return look
    times = {name: plain[name] for name in ("for", "at") if name in plain}
    return {**times, "native": native}


def _slurm(phase: str, look: LookData) -> Native:
    node = {"NodeList": look.get("node", "n1")}
    again = {"Restarts": str(look["attempt"])} if look.get("attempt") else {}
    code = look.get("exit_code", 1)
    match phase:
        case "pending":
            return {"JobState": "PENDING", "Reason": _slurm_reason(look), **again}
        case "starting":
            return {"JobState": "CONFIGURING", **node}
        case "running":
            state = "COMPLETING" if look.get("finishing") else "RUNNING"
            return {"JobState": "SUSPENDED" if look.get("suspended") else state, **node, **again}
        case "failed" if look.get("cause") == "memory.host":
            return {"JobState": "OUT_OF_MEMORY", "ExitCode": "0:125", **node}
        case "failed":
            return {"JobState": "FAILED", "Reason": "NonZeroExitCode", "ExitCode": f"{code}:0", **node}
        case "unknown":
            return {"JobState": look.get("words", "QUIESCED"), **node}
    ends = {
        "succeeded": {"JobState": "COMPLETED", "ExitCode": "0:0"},
        "preempted": {"JobState": "PREEMPTED", "ExitCode": "0:0"},
        "lost": {"JobState": "NODE_FAIL", "ExitCode": "1:0"},
        "stopped": {"JobState": "CANCELLED by 1001", "ExitCode": "0:15"},
    }
    return {**ends[phase], **node} if phase in ends else None


def _slurm_reason(look: LookData) -> str:
    if look.get("held"):
        return "launch_failed_requeued_held" if "launch" in look.get("reason", "") else "JobHeldUser"
    waiting = {
        "never": "DependencyNeverSatisfied",
        "budget": "AssocGrpCPUMinutesLimit",
        "unclear": "ReqNodeNotAvail, UnavailableNodes:n4",
    }
    return waiting.get(look.get("waiting", ""), "Resources")


def _brainpp(phase: str, look: LookData) -> Native:
    words = {
        "pending": "Inqueue",
        "starting": "Starting",
        "running": "Killing" if look.get("finishing") else "Running",
        "preempted": "Stopped",
        "stopped": "Stopped",
        "failed": "Failed",
        "succeeded": "Succeeded",
        "unknown": "Unknown",
    }
    if phase == "gone":
        return {"line": ""}
    if phase not in words or look.get("suspended") or look.get("waiting") in ("budget", "unclear"):
        return None
    told: dict[str, Any] = {"line": f"06-07 22:34:30 [INFO] rjob run-12 (showname=run-12): {words[phase]}"}
    if phase == "preempted":
        told["events"] = ["replica run-12-ab1cd is preempted by a job of the normal lane"]
    if look.get("held"):
        told["events"] = ["user has no right to operate[use] on this quotagroup"]
    elif look.get("waiting") == "never":
        told["events"] = ["rjob can only use GPU/CPU workload quotagroup, but demo is workspace type"]
    if phase in ("failed", "succeeded"):
        told["exit_code"] = 0 if phase == "succeeded" else look.get("exit_code", 1)
    return told


def _kubernetes(phase: str, look: LookData) -> Native:
    alive = {"status": {"active": 1, "ready": int(phase == "running")}}
    node = look.get("node", "n1")
    waits = {"waiting": {"reason": "ContainerCreating"}}
    match phase:
        case "pending" if look.get("held"):
            return {"job": {"spec": {"suspend": True}, "status": {}}}
        case "pending" if look.get("waiting") == "never":
            return {"job": alive, "pods": [_unscheduled("2 node(s) had untolerated taint {team: vision}")]}
        case "pending" if not look.get("waiting"):
            return {"job": alive, "pods": [_unscheduled("2 Insufficient nvidia.com/gpu")]}
        case "starting":
            return {"job": alive, "pods": [_pod(node, "Pending", waits)]}
        case "running" if not (look.get("suspended") or look.get("finishing")):
            return {"job": alive, "pods": [_pod(node, "Running", {"running": {}})]}
        case "gone":
            return {"job": None}
        case "failed":
            code = look.get("exit_code", 1)
            why = "OOMKilled" if look.get("cause") == "memory.host" else "Error"
            over = _pod(node, "Failed", {"terminated": {"reason": why, "exitCode": code}})
            return {"job": _job_that_failed("BackoffLimitExceeded", ""), "pods": [over]}
        case "preempted":
            said = "Pod lab/run-q8x2d has condition DisruptionTarget matching FailJob rule at index 0"
            return {"job": _job_that_failed("PodFailurePolicy", said)}
        case "lost":
            silent = {"metadata": {"name": node}, "status": {"conditions": [_condition("Ready", "Unknown")]}}
            pod = _pod(node, "Running", {"running": {}})
            pod["metadata"] |= {"deletionTimestamp": "2031-03-14T10:06:00Z"}
            never_again = {"backoffLimit": 0, "podReplacementPolicy": "Failed"}
            return {"job": {"spec": never_again, "status": {}}, "nodes": [silent], "pods": [pod]}
        case "succeeded":
            done = [_condition("SuccessCriteriaMet", "True"), _condition("Complete", "True")]
            return {"job": {"status": {"succeeded": 1, "conditions": done}}}
    return None


def _condition(kind: str, status: str) -> dict[str, str]:
    return {"type": kind, "status": status}


def _job_that_failed(reason: str, message: str) -> dict[str, Any]:
    told = {**_condition("Failed", "True"), "reason": reason, "message": message}
    return {"spec": {"backoffLimit": 0}, "status": {"failed": 1, "conditions": [told]}}


def _pod(node: str, phase: str, state: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "metadata": {"name": "run-q8x2d"},
        "spec": {"nodeName": node},
        "status": {"phase": phase, "containerStatuses": [{"name": "main", "state": state}]},
    }


def _unscheduled(why: str) -> dict[str, Any]:
    said = f"0/2 nodes are available: {why}."
    told = {**_condition("PodScheduled", "False"), "reason": "Unschedulable", "message": said}
    return {
        "metadata": {"name": "run-q8x2d"},
        "spec": {},
        "status": {"phase": "Pending", "conditions": [told]},
    }


def _ray(phase: str, look: LookData) -> Native:
    failed = {"status": "FAILED", "driver_exit_code": look.get("exit_code", 1)}
    match phase:
        case "pending" if look.get("waiting") == "never":
            return {"status": "PENDING", "request": {"GPU": 16}, "nodes": [{"CPU": 64, "GPU": 8}]}
        case "pending" if not (look.get("held") or look.get("waiting") or look.get("attempt")):
            return {"status": "PENDING", "message": "It may be waiting for resources to become available."}
        case "starting":
            return {
                "status": "PENDING",
                "message": "It may be waiting for the runtime environment to be set up.",
            }
        case "running" if not (look.get("suspended") or look.get("attempt")):
            run = {"run": {"ended_at": "2031-03-14T10:00:00+00:00"}} if look.get("finishing") else {}
            return {"status": "RUNNING", **run}
        case "failed" if look.get("cause") == "memory.host":
            return {
                "status": "FAILED",
                "message": "Job supervisor actor died: the node was running low on memory.",
            }
        case "failed":
            return failed
    others: Mapping[str, dict[str, Any]] = {
        "succeeded": {"status": "SUCCEEDED", "driver_exit_code": 0},
        "stopped": {"status": "STOPPED", "message": "Job was intentionally stopped."},
        "lost": {"missing": True, "head_younger": True},
        "gone": {"missing": True},
        "unknown": {"status": "RECOVERING"},
    }
    return others.get(phase)


WORDS: Mapping[str, Callable[[str, LookData], Native]] = {
    "slurm": _slurm,
    "brainpp": _brainpp,
    "kubernetes": _kubernetes,
    "ray": _ray,
}
"""By the kind of cluster that the words are of."""
