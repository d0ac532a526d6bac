"""Judgement over a Python environment as its files tell it: whether a job may lean on it (RULES C6, D3).

Refused, each with its reason: no interpreter or a dangling one, one that leans on the image's site-packages, a link
into the image's environment or a copy of it, and one that lacks a library which the script imports. What is refused
is not used: the run is asked about, and by default gets a complete environment of its own.

Never: run a file of the workspace; call an environment fine whose interpreter could not be seen.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

from states.assets import mount_target

OWN_FOLDER = ".watchkeeper/environments"
"""Below the workspace: environments that a run of ours has built. Only those are repaired without asking (C6)."""

SYSTEM = ("/usr/", "/opt/", "/lib/", "/lib64/", "/bin/", "/snap/")
"""Where an image keeps what it brings itself."""

LISTED_MAX = 12

_SITE = ("site-packages", "dist-packages")


class Environment(NamedTuple):
    """What the files of one environment tell. Paths are absolute.

    path: as given; real: with links followed. python: what bin/python leads to at its end, "" where there is no such
    entry; runs: whether that end is there. system: include-system-site-packages. pth: paths that .pth files add.
    made_for: the folder that its scripts say they are in. modules: names that can be imported. kind: by its marks.
    site: whether a site-packages folder was seen. links: parts of it that are links, with where they lead.
    """

    path: str
    real: str
    kind: Literal["venv", "conda", "other"] = "other"
    python: str = ""
    runs: bool = False
    home: str = ""
    version: str = ""
    system: bool = False
    pth: tuple[str, ...] = ()
    made_for: str = ""
    modules: frozenset[str] = frozenset()
    site: bool = False
    links: Mapping[str, str] = {}


class Judged(NamedTuple):
    """level: fine; note (usable, with a word); refused; unseen (its interpreter is the image's). lacks: libraries."""

    level: Literal["fine", "note", "refused", "unseen"]
    why: str
    lacks: tuple[str, ...] = ()


def judge_environment(
    found: Environment, *, kept: Sequence[str], in_image: bool, imports: Sequence[str] = ()
) -> Judged:
    """Whether it may be used. kept: absolute folders that outlive the image (workspace, mounts). in_image: the job
    runs in an image whose own files cannot be seen from here. imports: top-level names that the script needs."""
    for test in (_broken, _linked, _leaning, _copied):
        reason = test(found, kept, in_image)
        if reason:
            return Judged("refused", reason)
    lacks = tuple(name for name in imports if name not in found.modules) if found.site else ()
    if lacks:
        return Judged("refused", f"it lacks {listed(lacks)}, which the script imports", lacks)
    if not found.runs:
        return Judged("unseen", f"its interpreter {found.python} is the image's and cannot be seen from here")
    if found.system:
        return Judged("note", "it takes in the machine's own site-packages (include-system-site-packages)")
    checked = f", with all that the script imports ({listed(imports)})" if imports and found.site else ""
    return Judged("fine", f"an interpreter is there{checked}")


def _broken(found: Environment, kept: Sequence[str], in_image: bool) -> str:
    if not found.python:
        return "it has no bin/python"
    if found.runs or (in_image and not below(found.python, kept)):
        return ""
    gone = f": the Python it was made from ({found.home}) is gone" if found.home else ""
    return f"its bin/python leads to {found.python}, which is not there{gone}"


def _linked(found: Environment, kept: Sequence[str], in_image: bool) -> str:
    if not in_image:
        return ""
    places = {"it": found.real, **{f"its {name}": target for name, target in found.links.items()}}
    for name, target in places.items():
        if not below(target, kept):
            return f"{name} is a link to {target}, which is outside the workspace and the mounts (the image's own)"
    return ""


def _leaning(found: Environment, kept: Sequence[str], in_image: bool) -> str:
    if found.system and in_image:
        return "it leans on the image's site-packages (include-system-site-packages = true in pyvenv.cfg)"
    outside = [path for path in found.pth if is_system_site(path) and not below(path, (*kept, found.real))]
    return f"a .pth file of it leads into {outside[0]}, which is not its own" if outside else ""


def _copied(found: Environment, kept: Sequence[str], in_image: bool) -> str:
    """Its scripts name another home, and that is one that an image brings."""
    home = found.made_for
    if not home or below(home, (*kept, found.real, found.path)) or not home.startswith(SYSTEM):
        return ""
    return f"it is a copy of {home} (its scripts name that folder): what they need there is not in the copy"


def python_path(value: str, kept: Sequence[str]) -> str:
    """Why a PYTHONPATH makes the job lean on what an image or a machine brings; "" if it does not (D3)."""
    found = [path for path in value.split(":") if is_system_site(path) and not below(path, kept)]
    return (
        f"PYTHONPATH leads into {found[0]}, which the workspace's environment must not lean on"
        if found
        else ""
    )


def is_system_site(path: str) -> bool:
    """Whether a path is a site-packages folder of a system or an image."""
    return path.startswith(SYSTEM) and any(part in _SITE for part in path.split("/"))


def below(path: str, folders: Iterable[str]) -> bool:
    """Whether the absolute path lies in one of the folders."""
    path = posixpath.normpath(path)
    homes = (posixpath.normpath(folder) for folder in folders if folder)
    return any(path == home or path.startswith(home.rstrip("/") + "/") for home in homes)


def kept_folders(workspace: str, mounts: Iterable[str]) -> tuple[str, ...]:
    """What outlives the image: the workspace and where the mounts stand in the job."""
    return tuple(folder for folder in (workspace, *map(mount_target, mounts)) if folder)


def is_our_own(environment: str, workspace: str) -> bool:
    """Whether a run of ours built it (C6: only such a one is repaired without asking)."""
    return below(posixpath.join(workspace, environment), (posixpath.join(workspace, OWN_FOLDER),))


def listed(names: Sequence[str]) -> str:
    """Names for a sentence, bounded."""
    more = f" and {len(names) - LISTED_MAX} more" if len(names) > LISTED_MAX else ""
    return ", ".join(names[:LISTED_MAX]) + more
