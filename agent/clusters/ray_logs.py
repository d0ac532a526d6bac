"""A Ray job's log: from the run's folder where the workspace is visible, else from the node's driver log.

The Jobs API gives a log whole or not at all: one byte that is no text, and it answers HTTP 500. So the log comes from
the state API, which passes bytes on, into memory, and is cut there like any other log.

Never: take more of a log than the bound; tell Ray's own two lines at the top of it as the program's.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import IO, Any

from agent.clusters import logfile, ray_runs
from agent.clusters.base import ClusterError, LogPiece, Unreachable
from agent.clusters.ray_http import Answer, Http

BYTES_MAX = 64 << 20
"""Taken of a driver log; of a longer one only the tail is told, without a cursor."""
TOP_BYTES = 256 << 10
"""Within which Ray's own lines stand; they can come after the program's first words."""
SETTING_UP = re.compile(rb"^\S+ \S+\tINFO job_manager\.py:\d+ -- Runtime env is setting up\.\n", re.M)
NO_FILE = "file is not found"
FROM_THE_RECORD = "message"
"""Cursor of a log that is Ray's message about the job, for there is no other."""

TERMINAL = ("SUCCEEDED", "FAILED", "STOPPED")


def read(
    http: Http, record: Mapping[str, Any], *, lines: int, cursor: str, head: bool, now: datetime
) -> LogPiece:
    """A bounded piece. Of a job that ended before its program could say anything: Ray's own message. Raises
    Unreachable where the log of a job that has not ended cannot be read."""
    ended = record.get("status") in TERMINAL
    folder = ray_runs.folder_of(record)
    try:
        if folder is not None and folder.is_dir():
            piece = logfile.read(folder / "log", lines=lines, cursor=cursor, head=head, ended=ended, now=now)
        else:
            piece = _driver_log(http, record, lines=lines, cursor=cursor, head=head, now=now)
    except OSError as error:
        raise Unreachable(f"the log in {folder} cannot be read: {error.strerror}") from None
    except ClusterError:
        if not ended:
            raise
        piece = LogPiece(text="", cursor=cursor, ready=False)
    return piece if piece.ready or not ended else _message(record, lines, cursor)


def _driver_log(
    http: Http, record: Mapping[str, Any], *, lines: int, cursor: str, head: bool, now: datetime
) -> LogPiece:
    node = record.get("driver_node_id")
    if not node:
        return LogPiece(text="", cursor=cursor, ready=False)
    with _scratch() as file:
        found, whole = _fetch(http, record, -1, file)
        if found and not whole:
            file.truncate(0)
            file.seek(0)
            # Ray's own lines may be among the last ones, and are taken out.
            found, _ = _fetch(http, record, lines + 1 + _echo(record).count(b"\n"), file)
        if not found:
            return LogPiece(text="", cursor=cursor, ready=False)
        ended = record.get("status") in TERMINAL
        since, path = cursor if whole else "", Path(f"/dev/fd/{file.fileno()}")
        piece = logfile.read(path, lines=lines, cursor=since, head=head and whole, ended=ended, now=now)
    if not whole:
        return piece.model_copy(update={"cursor": "", "truncated": True, "wrote_at": None, "path": ""})
    return piece.model_copy(update={"wrote_at": None, "path": ""})


def _scratch() -> IO[bytes]:
    """In memory where the system can, else a file without a name: a log may hold what must not lie on a disk."""
    in_memory = getattr(os, "memfd_create", None)
    return open(in_memory("watchkeeper-ray"), "w+b") if in_memory else tempfile.TemporaryFile()


def _fetch(http: Http, record: Mapping[str, Any], lines: int, file: IO[bytes]) -> tuple[bool, bool]:
    """The driver log into the file: whether there is one, and whether it is all of it."""
    params = {
        "node_id": str(record.get("driver_node_id")),
        "filename": f"job-driver-{record.get('submission_id')}.log",
        "lines": str(lines),
    }
    with http.stream("/api/v0/logs/file", **params) as got:
        if got.status_code != 200:
            answer = Answer(got.status_code, got.read().decode(errors="replace"))
            if NO_FILE in answer.text:
                return False, True
            raise http.failure(answer)
        whole = _copy(got.iter_bytes(), file, record)
    file.flush()
    return True, whole


def _copy(chunks: Iterable[bytes], file: IO[bytes], record: Mapping[str, Any]) -> bool:
    top, size = b"", 0
    waits = True
    for chunk in chunks:
        size += len(chunk)
        if size > BYTES_MAX:
            return False
        if waits:
            top += chunk
            waits = len(top) < TOP_BYTES
            if not waits:
                file.write(_own(top, record))
        else:
            file.write(chunk)
    if waits:
        file.write(_own(top, record))
    return True


def _own(top: bytes, record: Mapping[str, Any]) -> bytes:
    """The beginning of a driver log without what Ray put there."""
    return SETTING_UP.sub(b"", top, count=1).replace(_echo(record), b"", 1)


def _echo(record: Mapping[str, Any]) -> bytes:
    return f"Running entrypoint for job {record.get('submission_id')}: {record.get('entrypoint')}\n".encode()


def _message(record: Mapping[str, Any], lines: int, cursor: str) -> LogPiece:
    said = str(record.get("message") or "")
    if cursor == FROM_THE_RECORD or record.get("status") != "FAILED":
        return LogPiece(text="", cursor=FROM_THE_RECORD)
    kept = said.splitlines()[-lines:] if lines > 0 else []
    text = "".join(f"{line}\n" for line in kept)
    return LogPiece(text=text, cursor=FROM_THE_RECORD, truncated=len(kept) < len(said.splitlines()))
