"""The folders of a Job manifest: what a request's `mounts` can say becomes that, the rest is laid over the Job.

A volume is laid over as a whole, with all of its mounts: one that another container sees too stays a single volume.

Never: a volume, or a word of one, that is neither a mount nor laid over nor noted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from agent.native.converted import Building

SHARED_MEMORY = "/dev/shm"
MOUNT_WORDS = frozenset({"name", "mountPath", "subPath", "readOnly"})
SOURCES: Mapping[str, frozenset[str]] = {
    "persistentVolumeClaim": frozenset({"claimName"}),
    "hostPath": frozenset({"path"}),
    "nfs": frozenset({"server", "path"}),
}
"""Kinds that `mounts` has words for, and all that these words say."""


def put_mounts(
    built: Building, pod: dict[str, Any], work: dict[str, Any], others: Iterable[Mapping[str, Any]]
) -> None:
    """Into the request's `mounts`. What stays in `pod` and `work` is what goes over. others: the pod's further
    containers, those that run before the work included."""
    volumes = {str(one.get("name")): one for one in pod.pop("volumes", None) or ()}
    shared = {name for other in others for name in _names(other.get("volumeMounts"))}
    shared |= set(_names(work.get("volumeDevices")))
    mounts = list(work.pop("volumeMounts", None) or ())
    memory = [one for one in mounts if built.request.get("gpu") and _is_memory(one, volumes, shared)]
    if memory:
        built.note("/dev/shm is left out: a job with GPUs gets memory there by itself (`shared_memory`)")
    mounts = [one for one in mounts if one not in memory]
    said = [
        (name, _words(mount, volumes.get(name, {})))
        for name, mount in zip(_names(mounts), mounts, strict=True)
    ]
    over = shared | {name for name, words in said if not words}
    if words := [words for name, words in said if name not in over]:
        built.request["mounts"] = words
    if rest := [mount for name, mount in zip(_names(mounts), mounts, strict=True) if name in over]:
        work["volumeMounts"] = rest
        named = ", ".join(dict.fromkeys(_names(rest)))
        built.note(f"mounted as the manifest says, beside `mounts`: {named}")
    gone = {name for name, _ in said if name not in over} | set(_names(memory)) - over
    if kept := [volume for name, volume in volumes.items() if name not in gone]:
        pod["volumes"] = kept


def _names(found: Any) -> list[str]:
    return [str(one.get("name")) for one in found or ()]


def _is_memory(mount: Mapping[str, Any], volumes: Mapping[str, Any], shared: set[str]) -> bool:
    name = str(mount.get("name"))
    return (
        mount.get("mountPath") == SHARED_MEMORY and "emptyDir" in volumes.get(name, {}) and name not in shared
    )


def _words(mount: Mapping[str, Any], volume: Mapping[str, Any]) -> str:
    """The mount as a request words it; "" where that would not say all of it."""
    source, path = _source(volume), str(mount.get("mountPath", ""))
    if not source or mount.keys() - MOUNT_WORDS or not path.startswith("/") or ":" in path:
        return ""
    below = f"/{str(mount['subPath']).strip('/')}" if mount.get("subPath") else ""
    return f"{source}{below}:{path}{':ro' if mount.get('readOnly') else ''}"


def _source(volume: Mapping[str, Any]) -> str:
    for kind, words in SOURCES.items():
        told = volume.get(kind)
        if not isinstance(told, Mapping) or told.keys() != words or volume.keys() != {"name", kind}:
            continue
        if kind == "persistentVolumeClaim":
            return f"claim:{told['claimName']}"
        path = str(told["path"]).rstrip("/")
        if path.startswith("/") and ":" not in path:
            return f"host:{path}" if kind == "hostPath" else f"nfs:{told['server']}:{path}"
    return ""
