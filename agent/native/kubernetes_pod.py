"""The pod of a Job manifest: its command, image, figures, variables and folders; the rest is laid over it.

The first container is the work, and becomes `main`; others stay beside it. Kubernetes itself replaces `$(NAME)` in
words and values: where that is meant the words go over the Job as they are; those of a request arrive unchanged.

Never: a limit or a volume changed without a note.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from agent.native.converted import Building
from agent.native.kubernetes_volumes import put_mounts
from agent.yamlfile import UserFileError

GPU = "nvidia.com/gpu"
QUANTITY = re.compile(r"(\d+(?:\.\d*)?(?:[eE][+-]?\d+)?)([numkKMGTPE]?i?)")
UNITS = {
    "n": 1e-9, "u": 1e-6, "m": 1e-3, "": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18,
    "Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40, "Pi": 2.0**50, "Ei": 2.0**60,
}  # fmt: skip
REPLACED = re.compile(r"\$\(\w+\)|\$\$")
LEFT_OUT: Mapping[str, str] = {
    "restartPolicy": "Watchkeeper restarts, where it makes sense, and not Kubernetes",
}


def put_pod(built: Building, pod: dict[str, Any], where: str) -> None:
    """The pod into the request; what it says beyond the fields, into the words kept. Raises UserFileError."""
    containers = [dict(one) for one in pod.pop("containers") if isinstance(one, Mapping)]
    work, others = containers[0], containers[1:]
    work.pop("name", None)
    over: dict[str, Any] = {}
    _words(built, work, over, where)
    if image := work.pop("image", None):
        built.request["image"] = image
    _folder(built, work, over)
    _variables(built, work, over)
    _resources(built, work)
    put_mounts(built, pod, work, [*others, *(pod.get("initContainers") or ())])
    over |= work
    if others:
        built.note(f"{len(others)} more containers run beside the work; the log is that of the first")
    for field, why in LEFT_OUT.items():
        if pod.get(field, "Never") != "Never":
            built.note(f"{field} {pod[field]} is left out: {why}")
        pod.pop(field, None)
    if "serviceAccountName" in pod:
        pod.setdefault("automountServiceAccountToken", True)
    listed = [{"name": "main", **over}] if over else []
    rest = pod | ({"containers": [*listed, *others]} if listed or others else {})
    if rest:
        built.keep(_laid_over(rest))


def _laid_over(pod: Mapping[str, Any]) -> str:
    return json.dumps({"spec": {"template": {"spec": pod}}}, ensure_ascii=False)


def _words(built: Building, work: dict[str, Any], over: dict[str, Any], where: str) -> None:
    """The command. Without one the image's own entrypoint gets the arguments, as the manifest means it."""
    command, args = ([str(word) for word in work.pop(field, None) or ()] for field in ("command", "args"))
    if not command and not args:
        said = "the container has no command, so what it does stands in its image; write the command out"
        raise UserFileError(f"{where}: {said}")
    built.request["command"] = command + args
    if not command:
        over |= {"command": [], "args": args}
        built.note("the image's own entrypoint runs with these arguments, as the manifest names no command")
    elif any(REPLACED.search(word) for word in command + args):
        over |= {"command": command, "args": args}


def _folder(built: Building, work: dict[str, Any], over: dict[str, Any]) -> None:
    if folder := work.pop("workingDir", None):
        built.request["workspace"] = folder
    else:
        over["workingDir"] = ""
        built.note("it starts in the image's own folder, as the manifest names none; its outputs are looked for in"
                   " the workspace")  # fmt: skip


def _variables(built: Building, work: dict[str, Any], over: dict[str, Any]) -> None:
    """Plain values become `env`; those that come from elsewhere (a Secret, a field) are laid over."""
    plain: dict[str, str] = {}
    from_elsewhere = []
    for one in work.pop("env", None) or ():
        value = one.get("value", "")
        if "valueFrom" in one or REPLACED.search(str(value)):
            from_elsewhere.append(one)
        else:
            plain[str(one.get("name"))] = _text(value)
    if plain:
        built.request["env"] = plain
    if from_elsewhere:
        over["env"] = from_elsewhere


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else "" if value is None else str(value)


def _resources(built: Building, work: dict[str, Any]) -> None:
    """Requests are what the run counts with; limits that differ, and other kinds of resources, are laid over."""
    given = work.pop("resources", None) or {}
    requests, limits = (dict(given.get(field) or {}) for field in ("requests", "limits"))
    asked = limits | requests
    beyond = {field: value for field, value in given.items() if field not in ("requests", "limits")}
    for kind, field in ((GPU, "gpu"), ("cpu", "cpu"), ("memory", "memory_mib")):
        amount = quantity(asked.get(kind))
        if amount is None:
            if kind != GPU:
                built.request[field] = 0
                built.note(
                    f"no {kind} is given: that is left to the namespace's own default, as in the manifest"
                )
            continue
        built.request[field] = _counted(field, amount)
        if quantity(limits.get(kind)) != amount:
            limit = str(limits[kind]) if kind in limits else None  # None takes ours away
            laid = {"resources": {"requests": {kind: str(asked[kind])}, "limits": {kind: limit}}}
            built.keep(_laid_over({"containers": [{"name": "main", **laid}]}), backing=field)
    for kind in asked.keys() - {GPU, "cpu", "memory"}:
        for field, amounts in (("requests", requests), ("limits", limits)):
            if kind in amounts:
                beyond.setdefault(field, {})[kind] = str(amounts[kind])
    if beyond:
        work["resources"] = beyond


def _counted(field: str, amount: float) -> int | float:
    if field == "memory_mib":
        return max(1, round(amount / 2**20))
    return int(amount) if field == "gpu" or amount == int(amount) else amount


def quantity(given: object) -> float | None:
    """`500m`, `16`, `64Gi`, `1e9` as a number (cores, bytes); None for no quantity (Kubernetes API conventions)."""
    match = QUANTITY.fullmatch(str(given))
    return float(match[1]) * UNITS[match[2]] if match and match[2] in UNITS else None
