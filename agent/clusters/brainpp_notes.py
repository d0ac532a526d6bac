"""What the agent knows of a job that the cluster does not show: where its wrapper writes, and whose run it is.

`rjob get` tells a word and no workspace, so a small file per job is written before its submit, below the person's
state folder. Without it (another machine, a job of somebody else) everything works, and the exit code is learnt
from the workspace at the end of the run instead.

Never: hold a job's phase, or anything that would have to be kept in step with the cluster.
"""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path

from pydantic import ValidationError

from agent.clusters import wrapper
from agent.clusters.brainpp_argv import TIMED_OUT_CODE
from agent.clusters.brainpp_words import End
from agent.paths import private
from states.reading import Frozen
from states.spec import Lane


class Note(Frozen):
    """One submitted job. name: as submitted; the wrapper's folder is called so. wrapped: the wrapper runs around
    its command. time_limit_s: as asked."""

    name: str
    workspace: str
    owner: str
    fingerprint: str
    submitted_at: datetime
    lane: Lane = "normal"
    replicas: int = 1
    wrapped: bool = True
    time_limit_s: float | None = None

    def is_of(self, fingerprint: str, owner: str) -> bool:
        """What is left out agrees with any."""
        return fingerprint in ("", self.fingerprint) and owner in ("", self.owner)


class Notes:
    """The folder of notes. Read once each: a note never changes. Raises OSError on writing only."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._read: dict[str, Note] = {}

    def put(self, namespace: str, name: str, note: Note) -> None:
        """Write it down in one step, for the owner only."""
        path = self._path(namespace, name)
        private(path.parent)
        draft = path.with_name(f"{path.name}.{os.getpid()}")
        draft.write_text(note.model_dump_json(), encoding="utf-8")
        draft.chmod(0o600)
        draft.replace(path)
        self._read[f"{namespace}/{name}"] = note

    def get(self, namespace: str, name: str) -> Note | None:
        """The note, None where there is none that can be read."""
        known = self._read.get(f"{namespace}/{name}")
        if known is not None:
            return known
        try:
            note = Note.model_validate_json(self._path(namespace, name).read_text(encoding="utf-8"))
        except (OSError, ValidationError):
            return None
        self._read[f"{namespace}/{name}"] = note
        return note

    def drop(self, namespace: str, name: str) -> None:
        self._read.pop(f"{namespace}/{name}", None)
        self._path(namespace, name).unlink(missing_ok=True)

    def _path(self, namespace: str, name: str) -> Path:
        return self._root / namespace / f"{name}.json"


def end_of(note: Note | None) -> End:
    """What the wrapper has recorded of the job so far; of several replicas, the first that ended badly.

    Nothing where there is no note, no wrapper, or a workspace that cannot be seen from here.
    """
    if note is None or not note.wrapped:
        return End()
    folder = wrapper.run_dir(note.workspace, note.name)
    folders = [folder, *sorted(folder.glob("rank-*"))] if note.replicas > 1 else [folder]
    records = [record for record in map(wrapper.record, folders) if record is not None]
    if not records:
        return End()
    bad = [record for record in records if record.exit_code and record.ended_at]
    first = min(bad, key=_ended_at) if bad else records[0]
    started_at = min(record.started_at for record in records)
    if not bad and any(record.exit_code is None for record in records):
        return End(started_at)
    limit_s, ended_at = note.time_limit_s, first.ended_at
    ran_s = (ended_at - first.started_at).total_seconds() if ended_at else 0.0
    # Whole seconds on both sides: one may be missing.
    timed_out = first.exit_code in (TIMED_OUT_CODE, 137) and limit_s is not None and ran_s >= limit_s - 1
    return End(started_at, ended_at, first.exit_code, first.signal, timed_out)


def _ended_at(record: wrapper.WrapperRecord) -> datetime:
    assert record.ended_at is not None
    return record.ended_at
