"""What people lay over the Job that is made: JSON objects of `extra_args`, and the settings' `pod`.

Objects go field by field (null takes a field away), lists of named things by their names, everything else is
replaced. A variable, a volume or
a mount is taken as a whole, since parts of two kinds of it make none.

Never: take away a thing of ours that another name was laid beside; drop a thing that was laid over without a name.
"""

from __future__ import annotations

import json
import posixpath
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from agent.clusters.base import Refused
from agent.clusters.kubernetes_objects import field, items, text

NAMED: Mapping[str, str] = {
    "containers": "name",
    "initContainers": "name",
    "imagePullSecrets": "name",
    "env": "name",
    "volumes": "name",
    "volumeMounts": "mountPath",
}
"""Lists whose things are known by a field (the API's own merge keys)."""
WHOLE = ("env", "volumes", "volumeMounts")


def fragment(words: str) -> Any:
    """The object in an extra argument. Raises Refused for anything else."""
    try:
        found = json.loads(words)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise Refused("an extra argument of a Kubernetes job is a JSON object that is laid over the Job")
    return found


def overlaid(under: Any, over: Any, key: str = "") -> Any:
    """A copy of `under` with `over` laid over it. key: the field that holds both, "" for none."""
    if isinstance(under, dict) and isinstance(over, Mapping):
        merged = dict(under)
        for name, value in over.items():
            if value is None:
                merged.pop(name, None)
            else:
                merged[name] = overlaid(under[name], value, name) if name in under else value
        return merged
    if key in NAMED and isinstance(under, list) and isinstance(over, list | tuple):
        return _joined(under, over, key)
    return over


def paths_laid_over(pod: Mapping[str, Any], fragments: Iterable[Any]) -> frozenset[str]:
    """Where the settings' pod and the extra arguments mount something into the work."""
    mounts = (mount for main in _mains(pod, fragments) for mount in items(main, "volumeMounts"))
    return frozenset(_name(mount, "volumeMounts") for mount in mounts)


def starts_elsewhere(pod: Mapping[str, Any], fragments: Iterable[Any]) -> bool:
    """Whether they give the work another folder to start in than the workspace ("" is the image's own)."""
    return any("workingDir" in main for main in _mains(pod, fragments))


def _mains(pod: Mapping[str, Any], fragments: Iterable[Any]) -> list[Mapping[str, Any]]:
    pods = [pod, *(field(one, "spec", "template", "spec") for one in fragments)]
    return [one for each in pods for one in items(each, "containers") if one.get("name") == "main"]


def _joined(under: list[Any], over: Sequence[Any], key: str) -> list[Any]:
    named = [one for one in over if isinstance(one, Mapping) and NAMED[key] in one]
    theirs = {_name(one, key): one for one in named}
    kept = []
    for ours in under:
        other = theirs.pop(_name(ours, key), None)
        kept.append(ours if other is None else other if key in WHOLE else overlaid(ours, other))
    return [*kept, *theirs.values(), *(one for one in over if one not in named)]


def _name(one: Any, key: str) -> str:
    name = text(one, NAMED[key])
    return posixpath.normpath(name) if key == "volumeMounts" and name else name
