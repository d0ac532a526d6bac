"""Read a bounded piece of the log and leave only its digest (E2): the text itself is never stored.

Never: an unbounded read; a conclusion from a log that could not be read.
"""

from __future__ import annotations

import stat
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from agent import crash
from agent.asked import AskedEffect
from agent.clusters.base import ClusterError
from agent.leases import Lease
from agent.ports import Ports, ref_of
from states.digest import digest
from states.effects import ReadLogs
from states.events import LogsRead
from states.job import Job
from states.logs.watched import values_of
from states.reading import Digest, Quote
from states.text import lines

FOUND_MAX = 8
QUOTE_CHARS_MAX = 240


def read_logs(effect: ReadLogs, asked: AskedEffect, job: Job, ports: Ports, lease: Lease) -> LogsRead:
    """The digest of the newest `effect.lines` lines; readable False when there is no log or it cannot be had."""
    if not job.attempts or effect.name != job.attempt.name:
        return _unreadable(effect, ports, "the attempt is over; its log is not read again")
    unreadable = partial(_unreadable, effect, ports, there=_there(effect.files, job))
    asked_at = ports.clock.now()
    try:
        piece = ports.cluster_of(job).logs(ref_of(job), lines=effect.lines)
    except ClusterError as error:
        return unreadable(ports.redact(str(error)))
    crash.point("log-read")
    if not piece.ready:
        return unreadable("there is no log yet")
    text = ports.redact(piece.text)
    read = digest(
        text,
        before=job.track,
        reasons=effect.reasons,
        exit_code=effect.exit_code,
        signal=effect.signal,
        wrote_at=piece.wrote_at,
        cursor=piece.cursor,
        signatures=ports.signatures,
    )
    found = _found(text, effect.look_for)
    values = values_of(effect.metrics, lines(text), read.progress) if effect.metrics else {}
    return LogsRead(
        at=ports.clock.now(),
        name=effect.name,
        digest=read.model_copy(update={"found": found}) if found else read,
        asked_at=asked_at,
        lines=effect.lines,
        final=effect.final,
        there=_there(effect.files, job),
        series=values,
    )


def _unreadable(effect: ReadLogs, ports: Ports, reason: str, *, there: tuple[str, ...] = ()) -> LogsRead:
    return LogsRead(
        at=ports.clock.now(),
        name=effect.name,
        digest=Digest(),
        lines=effect.lines,
        final=effect.final,
        readable=False,
        reason=reason,
        there=there,
    )


def _there(files: Mapping[str, str], job: Job) -> tuple[str, ...]:
    """The files of the goals that are there and were written since the run was delegated: what an earlier run left
    is none of this one's (F4). A link that leads elsewhere is not followed."""
    found = []
    for named, path in files.items():
        try:
            told = Path(path).lstat()
        except OSError:
            continue
        fresh = datetime.fromtimestamp(told.st_mtime, UTC) >= job.created_at.replace(microsecond=0)
        if fresh and not stat.S_ISLNK(told.st_mode):
            found.append(named)
    return tuple(found)


def _found(text: str, look_for: tuple[str, ...]) -> tuple[Quote, ...]:
    """Lines that hold one of the request's own texts."""
    if not look_for:
        return ()
    hits = (
        Quote(line=number, text=line[:QUOTE_CHARS_MAX])
        for number, line in enumerate(text.split("\n"), start=1)
        if any(wanted in line for wanted in look_for)
    )
    return tuple(quote for quote, _ in zip(hits, range(FOUND_MAX), strict=False))
