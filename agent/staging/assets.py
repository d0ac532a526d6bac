"""The look at the assets that a request states: on the workspace and the mounts, and in the hub's caches below them.

A path that is on the cluster already is linked to where the command looks for it (`to:`), a repository of the hub
into a cache below the workspace; nothing is copied and nothing that is there is replaced. What is missing is written
into a plan for the run that fetches it (`fetch.py`).

Never: follow a link of the workspace to write outside it; say "not there" of a folder that cannot be seen from here.
"""

from __future__ import annotations

import json
import os
import posixpath
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from agent.staging import fetch
from states.assets import Asset, Hub, mount_source, mount_target
from states.environments import below
from states.job import Job
from states.staging import STAGE_FOLDER, Found

Measure = Callable[[str, str], int | None]
"""(url, proxy) to the bytes that it would give, None where the server does not say."""

HUB_HOME = ".watchkeeper/hf"
"""HF_HOME of a run whose request names none, below the workspace."""

CACHES = ("", "hub", ".cache/huggingface/hub", "huggingface/hub", ".watchkeeper/hf/hub")
"""Where a cache of the hub may lie below a folder."""

ENTRIES_MAX = 10_000


class Ground(NamedTuple):
    """Where a job's files lie. here: its workspace on this machine, None if that cannot be seen. mounts: (target in
    the job, source on this machine or "")."""

    workspace: str
    here: Path | None
    mounts: tuple[tuple[str, str], ...]
    in_image: bool
    local: bool

    def on_this_machine(self, path: str) -> Path | None:
        """A path of the job as it is on this machine; None where that cannot be told."""
        for target, source in self.mounts:
            if target and below(path, (target,)):
                return Path(source + path[len(target) :]) if source else None
        return Path(path)


def ground(job: Job) -> Ground:
    """The job's folders."""
    spec = job.spec
    here = Path(spec.workspace) if spec.workspace else None
    mounts = tuple((mount_target(mount), mount_source(mount)) for mount in spec.mounts)
    in_image = bool(job.capabilities.needs_image)
    visible = here if here is not None and here.is_dir() else None
    return Ground(spec.workspace, visible, mounts, in_image, job.cluster == "local")


def look(job: Job, measure: Measure | None) -> list[Found]:
    """One look at each asset, in the order of the request."""
    where = ground(job)
    return [_one(asset, job, where, measure) for asset in job.request.assets]


def hub_env(job: Job) -> dict[str, str]:
    """The variable by which the run finds the cache below its workspace, unless the request names its own."""
    named = {"HF_HOME", "HF_HUB_CACHE"} & set(job.request.env)
    if named or not any(asset.hub for asset in job.request.assets):
        return {}
    return {"HF_HOME": posixpath.join(job.spec.workspace, HUB_HOME)}


def plan(job: Job, missing: Iterable[Asset]) -> dict[str, str]:
    """Write the fetching program and its list below the workspace; the facts by which the run finds them.

    {} where the workspace cannot be seen or written from here. A second time it is written anew.
    """
    here, folder = ground(job).here, f"{STAGE_FOLDER}/{job.id}"
    wanted = list(missing)
    if here is None or not wanted:
        return {}
    cache = posixpath.join(hub_env(job).get("HF_HOME", job.request.env.get("HF_HOME", "")), "hub")
    cache = job.request.env.get("HF_HUB_CACHE", cache)
    listed = {
        "files": [{"url": one.url, "to": one.to, "sha256": one.sha256} for one in wanted if one.url],
        "repositories": [_listed(one.repository(), cache) for one in wanted if one.hub],
    }
    try:
        (here / folder).mkdir(parents=True, exist_ok=True)
        (here / folder / "fetch.py").write_text(Path(fetch.__file__).read_text("utf-8"), "utf-8")
        (here / folder / "plan.json").write_text(json.dumps(listed, indent=1), "utf-8")
    except OSError:
        return {}
    return {"folder": folder, "environment": job.spec.environment}


def _listed(repository: Hub, cache: str) -> dict[str, str]:
    named = {"repo": repository.name, "kind": repository.kind, "revision": repository.revision}
    return {**named, "cache": cache}


# --- one asset -------------------------------------------------------------------------------------------------


def _one(asset: Asset, job: Job, where: Ground, measure: Measure | None) -> Found:
    if asset.mount:
        return _mount(asset, where)
    if asset.path:
        return _path(asset, where)
    if asset.hub:
        return _repository(asset, job, where)
    return _download(asset, job, where, measure)


def _mount(asset: Asset, where: Ground) -> Found:
    source = mount_source(asset.mount)
    if not source or not _could_be_seen(source, where):
        return Found(
            asset, "unseen", source, why=f"It is mounted; whether {asset.mount} is there was not checked."
        )
    return Found(asset, "mounted" if Path(source).exists() else "absent", source)


def _path(asset: Asset, where: Ground) -> Found:
    path = posixpath.normpath(posixpath.join(where.workspace, asset.path))
    if below(path, (where.workspace,)):
        seen = None if where.here is None else where.here / posixpath.relpath(path, where.workspace)
    else:
        seen = where.on_this_machine(path)
    if seen is None or not (seen.exists() or _could_be_seen(str(seen), where)):
        return Found(asset, "unseen", path)
    if not seen.exists():
        return Found(asset, "absent", path, why=f"Put it at {path}, or name the path where it is.")
    if seen.is_dir() and not any(islice(_names(seen), 1)):
        return Found(asset, "absent", path, why=f"{path} is an empty folder.")
    kept = (where.workspace, *(target for target, _ in where.mounts))
    if where.in_image and not below(path, kept):
        return Found(
            asset, "outside", path, why=f"Add it to `mounts:`, or state it as a mount: SOURCE:{path}."
        )
    return _linked(asset, path, where) if asset.to else Found(asset, "there", path)


def _linked(asset: Asset, path: str, where: Ground) -> Found:
    """The link that the command looks for; made once, and never in place of something else."""
    if where.here is None:
        return Found(asset, "unseen", path)
    why = _link(where.here, asset.to, path)
    if why:
        return Found(asset, "outside", asset.to, why=why)
    return Found(asset, "linked", asset.to)


def _link(workspace: Path, to: str, target: str) -> str:
    """Make workspace/to lead to target; why not, or "" when it does."""
    link = workspace / to
    if link.is_symlink() and os.readlink(link) == target:
        return ""
    if os.path.lexists(link):
        return f"{to} is there already and is not a link to {target}; nothing was replaced."
    if not link.parent.resolve().is_relative_to(workspace.resolve()):
        return f"{to} would lie outside the workspace, through a link on its way; no link was made."
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(target)
    return ""


def _download(asset: Asset, job: Job, where: Ground, measure: Measure | None) -> Found:
    if where.here is None:
        return Found(asset, "unseen", asset.to)
    target = where.here / asset.to
    if target.exists():
        return Found(asset, "there", asset.to)
    if not target.parent.resolve().is_relative_to(where.here.resolve()):
        return Found(
            asset, "outside", asset.to, why=f"{asset.to} would lie outside the workspace, through a link."
        )
    if copy := copy_of(job):
        return _copied(asset, where, copy)
    size_bytes = measure(asset.url, job.spec.proxy) if measure is not None else None
    why = f"Fetch it to {asset.to}, or name a copy on a cluster path."
    return Found(asset, "absent", asset.to, size_bytes, why=why)


def copy_of(job: Job) -> str:
    """The cluster path that was named instead of a download that dragged (E11), as the job sees it; "" if none."""
    row = job.checks.get("stage")
    given = row.facts.get("copy", "") if row is not None else ""
    return mount_target(given) or given


def _copied(asset: Asset, where: Ground, copy: str) -> Found:
    """The named copy, linked to where the command looks for the download; a folder holds it under its own name."""
    seen = where.on_this_machine(copy)
    if seen is not None and seen.is_dir():
        copy = posixpath.join(copy, posixpath.basename(asset.to))
        seen = where.on_this_machine(copy)
    if seen is not None and not seen.exists() and _could_be_seen(str(seen), where):
        return Found(asset, "absent", asset.to, why=f"There is no {copy}: name the path of the copy itself.")
    return _linked(asset, copy, where)


# --- the hub's caches ------------------------------------------------------------------------------------------


def _repository(asset: Asset, job: Job, where: Ground) -> Found:
    """A repository of the hub in the caches that the job sees; one that lies on a mount is linked into the
    workspace's own, so that one cache serves the run."""
    repository = asset.repository()
    if where.here is None:
        return Found(asset, "unseen", where.workspace)
    own = f"{HUB_HOME}/hub/{repository.folder}"
    partial = ""
    for folder in _caches(job, where):
        held = f"{folder}/{repository.folder}"
        seen = where.on_this_machine(held)
        if seen is None or not seen.is_dir():
            continue
        if not _is_whole(seen, repository.revision):
            partial = partial or held
        elif not hub_env(job) or held == f"{where.workspace}/{own}":
            return Found(asset, "there", held)
        elif not (why := _link(where.here, own, held)):
            return Found(asset, "linked", held)
        else:
            return Found(asset, "outside", held, why=why)
    why = "Fetch it where there is a network, or name a copy on a cluster path."
    return Found(asset, "partial" if partial else "absent", partial or where.workspace, why=why)


def _caches(job: Job, where: Ground) -> Iterator[str]:
    """Folders of caches as the job sees them: what its environment names, then below the workspace and the mounts."""
    env = job.spec.env
    named = [env.get("HF_HUB_CACHE", ""), posixpath.join(env["HF_HOME"], "hub") if env.get("HF_HOME") else ""]
    homes = [where.workspace, *(target for target, _ in where.mounts)]
    below_homes = [posixpath.join(home, cache).rstrip("/") for home in homes if home for cache in CACHES]
    yield from dict.fromkeys(filter(None, (*named, *below_homes)))


def _is_whole(folder: Path, revision: str) -> bool:
    """Whether a cached repository has this revision, with no download of it left unfinished."""
    if any(name.endswith(".incomplete") for name in islice(_names(folder / "blobs"), ENTRIES_MAX)):
        return False
    ref = folder / "refs" / (revision or "main")
    try:
        commit = ref.read_text("utf-8").strip()
    except OSError:
        commit = revision
    commits: Sequence[str] = [commit] if commit else list(islice(_names(folder / "snapshots"), ENTRIES_MAX))
    return any(any(islice(_names(folder / "snapshots" / one), 1)) for one in commits)


def _names(folder: Path) -> Iterator[str]:
    try:
        with os.scandir(folder) as entries:
            yield from (entry.name for entry in entries)
    except OSError:
        return


def _could_be_seen(path: str, where: Ground) -> bool:
    """Whether "not there" can be told of an absolute path: on this machine's own cluster always, elsewhere where some
    folder on its way (but the root) is there."""
    return where.local or any(parent.exists() for parent in list(Path(path).parents)[:-1])
