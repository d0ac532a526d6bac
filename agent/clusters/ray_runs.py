"""What a Ray job leaves in its workspace, where that is the same folder here and on the nodes.

The wrapper's record tells when the command began and how it ended. Ray cannot take a waiting job back: it would start
it first and stop it then. So whoever withdraws such a job takes the place of the wrapper's `start`, which is made
exclusively: the wrapper then runs nothing, whenever Ray comes to it.

Never: touch a run that has begun; follow a folder that is not the one of the run's own name.
"""

from __future__ import annotations

import contextlib
import json
import os
import zlib
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from agent.clusters import wrapper
from agent.paths import private

FOLDER = "watchkeeper_folder"
"""Key of the run's folder in a job's metadata."""
WITHDRAWN_BYTES_MAX = 200


def script_at(workspace: str) -> Path:
    """Where `wrapper.stage` puts the script, without putting it there."""
    return wrapper.run_dir(workspace, f"wrapper-{zlib.crc32(wrapper.SCRIPT.read_bytes()):08x}.sh")


def folder_of(record: Mapping[str, Any]) -> Path | None:
    """The run's folder, of a job that was submitted with a visible workspace. Metadata is anybody's to write, so only
    `.watchkeeper/<submission id>` counts."""
    named = Path(str((record.get("metadata") or {}).get(FOLDER, "")))
    wanted = (wrapper.FOLDER, str(record.get("submission_id")))
    return named if named.is_absolute() and named.parts[-2:] == wanted else None


def facts(folder: Path | None) -> dict[str, Any]:
    """What a run's folder adds to Ray's own record: `run` (the wrapper's record) and `withdrawn` (when), as
    `normalise` reads them; `run_expected` if there should be one."""
    if folder is None or not folder.is_dir():
        return {}
    found = wrapper.record(folder)
    at = withdrawn_at(folder) if found is None else None
    run = {} if found is None else {"run": found._asdict()}
    return {"run_expected": True, **run, **({} if at is None else {"withdrawn": at})}


class Notes:
    """Where each run lies, by its name, in a folder of ours: a head that forgot a job forgot this with it."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def keep(self, name: str, folder: Path) -> None:
        """Before the submit, so that no job is there without one. Raises OSError."""
        private(self.root)
        draft = self.root / f".{name}.{os.getpid()}"
        draft.write_text(str(folder), encoding="utf-8")
        draft.replace(self.root / name)

    def folder(self, name: str) -> Path | None:
        """None where there is no note (somebody else's job, another machine)."""
        try:
            return Path((self.root / name).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None

    def drop(self, name: str) -> None:
        """The person let the job be deleted: nothing is to be told of it any more."""
        (self.root / name).unlink(missing_ok=True)


def withdraw(folder: Path, at: datetime) -> bool:
    """Keep the job from ever starting its command; False when it has begun, or was withdrawn before. Raises
    OSError."""
    note = folder / f"withdrawn.{os.getpid()}"
    note.write_text(json.dumps({"withdrawn_at": at.isoformat()}), encoding="ascii")
    try:
        os.link(note, folder / "start")
    except FileExistsError:
        return False
    finally:
        with contextlib.suppress(OSError):
            note.unlink()
    return True


def withdrawn_at(folder: Path) -> datetime | None:
    """When the job was withdrawn; None if it was not."""
    try:
        with (folder / "start").open("rb") as file:
            return datetime.fromisoformat(json.loads(file.read(WITHDRAWN_BYTES_MAX))["withdrawn_at"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
