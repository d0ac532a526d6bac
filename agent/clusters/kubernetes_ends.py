"""How a pod ended, as fields of an observation (PHASES 2, "Pod (newest)").

An exit code says little by itself: 137 is a kill, and only the pod's reason or its DisruptionTarget condition
tells whose. A runtime that could not start the command says so with 128; here that is 127 or 126, as in a shell.

Never: call a kill out of memory without the word OOMKilled; call preempted what no condition or reason says.
"""

from __future__ import annotations

import re
from typing import Any

from agent.clusters.kubernetes_objects import Object, condition, field, terminated, text
from states.observation import Phase

GONE_NODE = ("DeletionByPodGC", "DeletionByGCPControllerManager")
"""Reasons of DisruptionTarget that mean: the node is no more."""
SHUTDOWN = ("Terminated", "Shutdown", "NodeShutdown")
BEFORE_START = re.compile(r"UnexpectedAdmissionError|OutOf\w+|NodeAffinity")
NOT_STARTED = ("StartError", "ContainerCannotRun")
NOT_ALLOWED = re.compile(r"permission denied", re.IGNORECASE)
DISK = re.compile(r"ephemeral|disk|inode|emptydir", re.IGNORECASE)
SIGNALS = range(129, 160)
"""Exit codes that mean a signal to a shell: 128 + number."""


def disruption(pod: Object) -> Object | None:
    """The condition that says somebody other than the program ended this pod."""
    return condition(pod, "DisruptionTarget")


def end_of(pod: Object) -> dict[str, Any]:
    """phase, cause, exit_code, signal, reason of a pod that is over (phase Failed, Succeeded or Unknown)."""
    why, said = text(pod, "status", "reason"), text(pod, "status", "message")
    end = terminated(pod)
    if text(pod, "status", "phase") == "Succeeded":
        return {"phase": Phase.succeeded, "exit_code": 0}
    if text(pod, "status", "phase") == "Unknown" or why == "NodeLost":
        return {"phase": Phase.lost, "reason": said or "its node no longer answers"}
    if why == "Evicted":
        cause = "storage.full" if DISK.search(said) else "memory.host"
        return {**_code(end), "phase": Phase.failed, "cause": cause, "reason": f"evicted: {said}"}
    if end is not None and end.get("reason") == "OOMKilled":
        return {**_code(end), "phase": Phase.failed, "cause": "memory.host", "reason": "OOMKilled"}
    if (target := disruption(pod)) is not None:
        return _disrupted(target)
    if why in SHUTDOWN or "imminent node shutdown" in said:
        return {"phase": Phase.preempted, "reason": said or f"its node was shut down ({why})"}
    if BEFORE_START.fullmatch(why):
        return {"phase": Phase.lost, "reason": f"the node refused it before it began: {why}: {said}"}
    if why == "DeadlineExceeded":
        return {"phase": Phase.failed, "cause": "scheduling.time_limit", "reason": said or why}
    return {"phase": Phase.failed, **_program(end)}


def _disrupted(target: Object) -> dict[str, Any]:
    why = text(target, "reason")
    said = text(target, "message") or why
    if why in GONE_NODE:
        return {"phase": Phase.lost, "reason": f"{why}: {said}"}
    return {"phase": Phase.preempted, "reason": f"{why}: {said}", "cause": "scheduling.preempted"}


def _program(end: Object | None) -> dict[str, Any]:
    """An end that is the program's own, as far as anybody knows."""
    if end is None:
        return {"reason": "the pod failed and tells no exit code"}
    why = text(end, "reason")
    if why in NOT_STARTED:
        said = text(end, "message")
        code = 126 if NOT_ALLOWED.search(said) else 127
        return {"exit_code": code, "cause": "command.not_found", "reason": f"{why}: {said}"}
    return _code(end) | ({"reason": why} if why not in ("", "Error") else {})


def _code(end: Object | None) -> dict[str, Any]:
    code = field(end, "exitCode")
    if not isinstance(code, int):
        return {}
    number = code - 128 if code in SIGNALS else field(end, "signal") or None
    found: dict[str, Any] = {"exit_code": code, "signal": number}
    return found | ({"cause": "process.killed"} if number == 9 else {})
