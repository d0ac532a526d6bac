"""Where a job's folders come from: the workspace, further mounts and shared memory as volumes of its pod.

A mount is `SOURCE:/path in the job` with an optional `:ro`, or a path alone that the settings' `storage` maps.
SOURCE: a claim's name (or `claim:NAME[/PATH]`), `host:/PATH` or a path of the node, `nfs:SERVER:/PATH`.

Never: leave out a mount that was asked for; make a claim.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping, Set
from typing import Any, NamedTuple

from agent.clusters.base import Refused
from states.spec import Spec

_CLAIM = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
_SERVER = re.compile(r"[A-Za-z0-9.-]+|\[[0-9A-Fa-f:]+\]")
OURS = "watchkeeper-{}"
"""Names of our volumes, which no other volume of a manifest is likely to have."""
SHARED_MEMORY: dict[str, dict[str, Any]] = {
    "volume": {"name": OURS.format("memory"), "emptyDir": {"medium": "Memory"}},
    "mount": {"name": OURS.format("memory"), "mountPath": "/dev/shm"},
}
"""What data loaders and NCCL use; the default of 64 MiB is a known trap. It counts as the pod's memory."""


class Source(NamedTuple):
    """A volume's source as the API words it, and the folder inside it."""

    volume: Mapping[str, Any]
    sub_path: str = ""


class Mount(NamedTuple):
    """One folder of the job."""

    source: Source
    path: str
    read_only: bool = False


def source_of(words: str) -> Source:
    """`claim:NAME[/PATH]`, `host:/PATH`, `nfs:SERVER:/PATH` as a volume. Raises Refused for other words."""
    kind, _, rest = words.partition(":")
    if kind == "claim":
        claim, _, inside = rest.partition("/")
        if _CLAIM.fullmatch(claim) and ".." not in inside.split("/"):
            volume = {"persistentVolumeClaim": {"claimName": claim}}
            return Source(volume, posixpath.normpath(inside) if inside else "")
    elif kind == "host" and rest.startswith("/"):
        return Source({"hostPath": {"path": rest}})
    elif kind == "nfs":
        server, _, path = rest.partition(":/")
        if _SERVER.fullmatch(server):
            return Source({"nfs": {"server": server, "path": f"/{path}"}})
    raise Refused(
        f"{words!r} is no source of a mount; write claim:NAME, host:/PATH or nfs:SERVER:/PATH",
        cause="mount.missing",
    )


def mounts_of(
    spec: Spec, storage: Mapping[str, str], beside: Set[str] = frozenset(), *, optional: bool = False
) -> list[Mount]:
    """The folders of a job: the workspace, the environment beside it, and what was asked for, each once.

    beside: paths where something else is mounted anyway (laid over the Job). optional: the job does not start in
    the workspace. Raises Refused for a mount that nothing maps, and for a workspace unless it is optional.
    """
    found = [_as_given(words, storage) for words in spec.mounts]
    taken = {mount.path for mount in found} | beside
    for path in filter(None, (spec.workspace, spec.environment)):
        mapped = _mapped(posixpath.normpath(path), storage)
        reached = mapped is not None or any(_is_below(path, there) for there in taken)
        if not reached and not optional and path == spec.workspace:
            raise _unmapped(path)
        if mapped is not None and mapped.path not in taken:
            found.append(mapped)
            taken.add(mapped.path)
    if double := next(
        (mount.path for mount in found if [one.path for one in found].count(mount.path) > 1), None
    ):
        raise Refused(f"two mounts want the path {double}; leave one out", cause="mount.missing")
    return found


def volumes(mounts: list[Mount]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """`volumes` of the pod and `volumeMounts` of its container; one volume for each source."""
    names: dict[str, str] = {}
    made, inside = [], []
    for mount in mounts:
        key = repr(mount.source.volume)
        if key not in names:
            names[key] = OURS.format(len(names))
            made.append({"name": names[key], **mount.source.volume})
        entry: dict[str, Any] = {"name": names[key], "mountPath": mount.path}
        if mount.source.sub_path:
            entry["subPath"] = mount.source.sub_path
        if mount.read_only:
            entry["readOnly"] = True
        inside.append(entry)
    return made, inside


def _as_given(words: str, storage: Mapping[str, str]) -> Mount:
    given, read_only = words.removesuffix(":ro"), words.endswith(":ro")
    source, _, path = given.rpartition(":")
    if not source:
        mapped = _mapped(posixpath.normpath(path), storage) if path.startswith("/") else None
        if mapped is None:
            raise _unmapped(path)
        return mapped._replace(read_only=read_only)
    if not path.startswith("/") or ":" in path or "\0" in words:
        raise Refused(f"the mount {words!r} does not name an absolute path in the job", cause="mount.missing")
    if source.startswith(("claim:", "host:", "nfs:")):
        return Mount(source_of(source), posixpath.normpath(path), read_only)
    if source.startswith("/"):
        mapped = _mapped(posixpath.normpath(source), storage)
        known = mapped is not None and mapped.path == posixpath.normpath(source)
        inside = mapped.source if mapped and known else source_of(f"host:{source}")
        return Mount(inside, posixpath.normpath(path), read_only)
    return Mount(source_of(f"claim:{source}"), posixpath.normpath(path), read_only)


def _mapped(path: str, storage: Mapping[str, str]) -> Mount | None:
    """The folder of the settings that holds this path, mounted where the settings say."""
    homes = [posixpath.normpath(home) for home in storage if _is_below(path, posixpath.normpath(home))]
    if not homes:
        return None
    home = max(homes, key=len)
    words = next(source for known, source in storage.items() if posixpath.normpath(known) == home)
    return Mount(source_of(words), home)


def _is_below(path: str, home: str) -> bool:
    return path == home or path.startswith(home.rstrip("/") + "/")


def _unmapped(path: str) -> Refused:
    return Refused(
        f"nothing says where {path!r} comes from; map it in the cluster's options, as in "
        f"`storage: {{{path or '/workspace'}: claim:NAME}}`",
        cause="mount.missing",
    )
