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
from agent.yamlfile import UserFileError

GPU = "nvidia.com/gpu"
QUANTITY = re.compile(r"(\d+(?:\.\d+)?)([numkKMGTP]?i?)")
UNITS = {
    "n": 1e-9, "u": 1e-6, "m": 1e-3, "": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15,
    "Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40, "Pi": 2.0**50,
}  # fmt: skip
REPLACED = re.compile(r"\$\(\w+\)|\$\$")
SHARED_MEMORY = "/dev/shm"
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
    _mounts(built, pod, work, over)
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
    beyond: dict[str, dict[str, Any]] = {"requests": {}, "limits": {}}
    for kind, field in ((GPU, "gpu"), ("cpu", "cpu"), ("memory", "memory_mib")):
        amount = quantity(str(asked.get(kind, "")))
        if amount is None:
            continue
        built.request[field] = _counted(field, amount)
        if quantity(str(limits.get(kind, asked[kind]))) != amount:
            laid = {"resources": {"requests": {kind: str(asked[kind])}, "limits": {kind: str(limits[kind])}}}
            built.keep(_laid_over({"containers": [{"name": "main", **laid}]}), backing=field)
    for kind, value in asked.items():
        if kind not in (GPU, "cpu", "memory"):
            beyond["requests"][kind] = str(requests.get(kind, value))
            beyond["limits"][kind] = str(limits.get(kind, value))
    if any(beyond.values()):
        work["resources"] = beyond
    if "memory" not in asked:
        gpus = built.request.get("gpu", 0)
        built.note(
            f"no memory is given: {32 * gpus or 1} GiB is asked for, and is the limit; `--memory-mib` sets it"
        )


def _counted(field: str, amount: float) -> int | float:
    if field == "memory_mib":
        return max(1, round(amount / 2**20))
    return int(amount) if field == "gpu" or amount == int(amount) else amount


def quantity(text: str) -> float | None:
    """`500m`, `16`, `64Gi` as a number (cores, bytes); None for no quantity (Kubernetes API conventions)."""
    match = QUANTITY.fullmatch(text)
    return float(match[1]) * UNITS[match[2]] if match and match[2] in UNITS else None


def _mounts(built: Building, pod: dict[str, Any], work: dict[str, Any], over: dict[str, Any]) -> None:
    """Claims, folders of the node and NFS become `mounts`. If there is any other kind, all of them are laid over:
    the list of a container's mounts is replaced as a whole."""
    volumes = {str(one.get("name")): one for one in pod.get("volumes") or ()}
    mounts = work.pop("volumeMounts", None) or []
    inits = pod.get("initContainers") or ()
    beside = {str(one.get("name")) for other in inits for one in other.get("volumeMounts", ())}
    words, odd, shared = [], [], []
    for mount in mounts:
        volume = volumes.get(str(mount.get("name")), {})
        if mount.get("mountPath") == SHARED_MEMORY and "emptyDir" in volume and built.request.get("gpu"):
            shared.append(
                "/dev/shm is left out: a job with GPUs gets memory there by itself (`shared_memory`)"
            )
            continue
        source = _source(volume)
        if source and not {"subPathExpr", "mountPropagation"} & mount.keys():
            below = f"/{str(mount['subPath']).strip('/')}" if mount.get("subPath") else ""
            read_only = ":ro" if mount.get("readOnly") else ""
            words.append(f"{source}{below}:{mount.get('mountPath')}{read_only}")
        else:
            odd.append(str(mount.get("name")))
    if odd or beside:
        over["volumeMounts"] = mounts
        built.note("volumes other than claims, folders of the node and NFS are mounted as the manifest says, and the"
                   " workspace must be among its mounts")  # fmt: skip
        return
    pod.pop("volumes", None)
    for told in shared:
        built.note(told)
    if words:
        built.request["mounts"] = words


def _source(volume: Mapping[str, Any]) -> str:
    """The source as a request's `mounts` words it; "" for another kind."""
    if claim := (volume.get("persistentVolumeClaim") or {}).get("claimName"):
        return f"claim:{claim}"
    if path := (volume.get("hostPath") or {}).get("path"):
        return f"host:{str(path).rstrip('/')}"
    nfs = volume.get("nfs") or {}
    return f"nfs:{nfs['server']}:{str(nfs['path']).rstrip('/')}" if "server" in nfs and "path" in nfs else ""
