"""The wrap-up's look at the workspace: the wrapper's own record, and the declared outputs.

Never: a path outside the workspace; an exit code that nobody wrote.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath

from agent.asked import AskedEffect
from agent.clusters.wrapper import FOLDER, record, run_dir
from agent.leases import Lease
from agent.ports import Ports
from states.effects import Collect
from states.events import OutputsCollected
from states.job import Collected, Job
from states.observation import Artifact

ARTIFACTS_MAX = 50


def collect(effect: Collect, asked: AskedEffect, job: Job, ports: Ports, lease: Lease) -> OutputsCollected:
    """What is there. looked False when the workspace cannot be seen from here."""
    workspace = Path(effect.workspace)
    if not effect.workspace or not workspace.is_dir():
        return OutputsCollected(at=ports.clock.now(), collected=Collected(looked=False))
    written = record(run_dir(workspace, effect.name))
    artifacts: list[Artifact] = []
    missing: list[str] = []
    for pattern in effect.outputs:
        found = list(_artifacts(workspace, pattern))
        artifacts += found
        if not found:
            missing.append(pattern)
    collected = Collected(
        exit_code=written.exit_code if written else None,
        signal=written.signal if written else None,
        artifacts=tuple(artifacts[:ARTIFACTS_MAX]),
        missing=tuple(missing),
        looked=True,
    )
    return OutputsCollected(at=ports.clock.now(), collected=collected)


def _artifacts(workspace: Path, pattern: str) -> Iterator[Artifact]:
    """Files below the workspace that answer to a path, folder or glob; links that lead out are left out."""
    relative = _inside(workspace, pattern)
    if relative is None:
        return
    root = workspace.resolve()
    try:
        paths = sorted(workspace.glob(relative))[:ARTIFACTS_MAX]
    except (ValueError, NotImplementedError):  # no pattern at all, so nothing answers to it
        return
    for path in paths:
        if _is_ours(path.relative_to(workspace), relative) or not _leads_inside(path, root):
            continue
        told, size_bytes = path.stat(), _size(path, root)
        if size_bytes is None:
            continue
        written = datetime.fromtimestamp(told.st_mtime, UTC)
        shown = os.fsencode(path.relative_to(workspace)).decode(errors="replace")  # a name may be no text
        yield Artifact(path=shown, size_bytes=size_bytes, modified_at=written, declared=True)


def _is_ours(path: Path, pattern: str) -> bool:
    """What Watchkeeper itself keeps there (records, reports) is no output of a run, unless asked for by name."""
    return path.parts[:1] == (FOLDER,) and not pattern.startswith(FOLDER)


def _inside(workspace: Path, pattern: str) -> str | None:
    path = PurePosixPath(pattern)
    if path.is_absolute():
        if not path.is_relative_to(PurePosixPath(workspace.as_posix())):
            return None
        path = path.relative_to(PurePosixPath(workspace.as_posix()))
    return None if ".." in path.parts or not path.parts else str(path)


def _leads_inside(path: Path, root: Path) -> bool:
    """Whether it is there, and below the workspace; not so for a link that leads out, in a circle or to nothing."""
    try:
        return path.resolve(strict=True).is_relative_to(root)
    except (OSError, RuntimeError):  # RuntimeError: a circle, before Python 3.13
        return False


def _size(path: Path, root: Path) -> int | None:
    """Bytes of a file, or of all files below a folder; None for an empty folder or what is neither."""
    if not path.is_dir():
        return path.stat().st_size if path.is_file() else None
    sizes = []
    for folder, _, names in os.walk(path):
        for file in (Path(folder) / name for name in names):
            with suppress(OSError):  # the job may still be tidying up
                told = file.lstat()
                if stat.S_ISLNK(told.st_mode) and _leads_inside(file, root):
                    told = file.stat()
                if stat.S_ISREG(told.st_mode):
                    sizes.append(told.st_size)
    return sum(sizes) if sizes else None
