"""The job's wrapper as every driver uses it: stage it below the workspace, name its folder, read its record.

`wrapper.sh` (package data) says what it writes. A driver runs `argv(...)` in place of the command; afterwards
`record(run_dir(workspace, name))` tells how the command ended, although nobody watched (DESIGN 5, WISHES 4).
Light enough for a launcher: standard library only.

Never: overwrite a staged script, since a shell may be in the middle of it; take a partial record for one.
"""

from __future__ import annotations

import contextlib
import json
import os
import zlib
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

SCRIPT = Path(__file__).with_name("wrapper.sh")
FOLDER = ".watchkeeper"
BEAT_S = 15.0
"""Seconds between two heartbeats."""
REFUSED_CODE = 98
"""The wrapper's own exit status when the folder holds another run of this name: nothing was run."""
ID_VARIABLE = "WATCHKEEPER_ID"
"""Variable by which a driver tells the wrapper which cluster job it is; kept in the record."""
RECORD_BYTES_MAX = 4096


class WrapperRecord(NamedTuple):
    """What the wrapper wrote. id: what ID_VARIABLE said, "" if nothing. Times are aware and in UTC, whole
    seconds by the clock of the job's own host.

    exit_code and ended_at are None until the end; signal is what a code above 128 means to a shell, else
    None. heartbeat_at: last write of the heartbeat by the file system's clock, None before the first.
    """

    started_at: datetime
    pid: int
    host: str
    id: str = ""
    heartbeat_at: datetime | None = None
    exit_code: int | None = None
    signal: int | None = None
    ended_at: datetime | None = None


def run_dir(workspace: Path | str, name: str) -> Path:
    """`<workspace>/.watchkeeper/<attempt name>`."""
    return Path(workspace) / FOLDER / name


def stage(workspace: Path | str) -> Path:
    """Put the script below the workspace and return where it is; idempotent. Raises OSError if it can't be
    written.

    Its name carries a checksum of its text, so another version lies beside it. Git is told to leave the folder
    alone.
    """
    text = SCRIPT.read_bytes()
    folder = Path(workspace) / FOLDER
    folder.mkdir(exist_ok=True)
    script = folder / f"wrapper-{zlib.crc32(text):08x}.sh"
    if not script.exists():
        _put(script, text, 0o755)
    if not (folder / ".gitignore").exists():
        _put(folder / ".gitignore", b"*\n", 0o644)
    return script


def argv(
    script: Path | str,
    folder: Path | str,
    command: Sequence[str],
    *,
    whole_group: bool = False,
    log: bool = False,
    restart: bool = False,
) -> list[str]:
    """The wrapped command.

    whole_group: who stops the job signals its whole process group, so the wrapper does not pass signals on.
    log: the output goes to `<folder>/log`. restart: the same job again, the earlier record is replaced.
    """
    flags = ["-g"] * whole_group + ["-l"] * log + ["-r"] * restart
    return ["sh", str(script), *flags, str(folder), "--", *command]


def record(folder: Path | str) -> WrapperRecord | None:
    """What is known of the run in `folder`; None when nothing readable is there (absent, partial, bad)."""
    folder = Path(folder)
    for name in ("exit.json", "start"):
        facts = _facts(folder / name)
        if facts is not None:
            with contextlib.suppress(KeyError, TypeError, ValueError):
                return _record(facts, heartbeat_at=_written(folder / "heartbeat"))
    return None


def _record(facts: dict[str, Any], heartbeat_at: datetime | None) -> WrapperRecord:
    ended, number = facts.get("ended_at"), facts.get("signal")
    return WrapperRecord(
        started_at=datetime.fromisoformat(facts["started_at"]),
        pid=int(facts["pid"]),
        host=str(facts["host"]),
        id=str(facts["id"]),
        heartbeat_at=heartbeat_at,
        exit_code=None if ended is None else int(facts["exit_code"]),
        signal=None if number is None else int(number),
        ended_at=None if ended is None else datetime.fromisoformat(ended),
    )


def forget(folder: Path | str) -> None:
    """Remove the record of an earlier run (not its log), so that the name may run again. Idempotent."""
    for name in ("exit.json", "heartbeat", "start"):
        (Path(folder) / name).unlink(missing_ok=True)


def _facts(path: Path) -> dict[str, Any] | None:
    try:
        with path.open("rb") as file:
            found = json.loads(file.read(RECORD_BYTES_MAX))
    except (OSError, ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _written(path: Path) -> datetime | None:
    try:
        return datetime.fromtimestamp(path.stat().st_mtime, UTC)
    except OSError:
        return None


def _put(path: Path, data: bytes, mode: int) -> None:
    """Write in one step: two agents that stage at once leave one whole file."""
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    draft.write_bytes(data)
    draft.chmod(mode)
    draft.replace(path)
