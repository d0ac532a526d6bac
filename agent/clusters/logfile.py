"""A bounded piece of a log file that is still being written: tail, head, or what is new since a byte cursor.

Pieces end at the end of a line, so that a line is told once and whole. The unfinished last line is told
too when the job has ended or nothing was added for a while: a hung program's last words matter, and so do
bars that use `\\r` only.

Never: read more than the bound, however large the file; fail on bytes that are no text.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

from agent.clusters.base import LogPiece

BYTES_MAX = 256 << 10
QUIET = timedelta(seconds=2)
"""After this long without output an unfinished line is taken as it stands."""
BREAKS = (b"\n", b"\r")


def read(
    path: Path, *, lines: int, now: datetime, cursor: str = "", head: bool = False, ended: bool = False
) -> LogPiece:
    """At most `lines` lines and BYTES_MAX bytes. A file that is not there yet is not ready.

    After a cursor the newest lines are given, and `truncated` says that some since the cursor were left
    out; a file that is shorter than its cursor was begun anew and is told from its start. `head` counts
    without a cursor only. Raises OSError.
    """
    try:
        file = path.open("rb")
    except FileNotFoundError:
        return LogPiece(text="", cursor=cursor, ready=False, path=str(path))
    head = head and not cursor
    with file:
        stat = os.fstat(file.fileno())
        since = _since(cursor, stat.st_size)
        begin = since if head else max(since, stat.st_size - BYTES_MAX)
        file.seek(begin)
        data = file.read(min(BYTES_MAX, stat.st_size - begin))
    wrote_at = datetime.fromtimestamp(stat.st_mtime, UTC)
    settled = begin + len(data) == stat.st_size and (ended or now - wrote_at > QUIET)
    end = begin + (len(data) if settled else _whole(data))
    data = data[: end - begin]
    kept = _first(data, lines) if head else _last(data if begin == since else _after_break(data), lines)
    return LogPiece(
        text=kept.decode(errors="replace"),
        cursor=str(begin + len(kept) if head else end),
        truncated=not head and end - len(kept) > since,
        wrote_at=wrote_at,
        path=str(path),
    )


def _since(cursor: str, size: int) -> int:
    """Where the cursor stands; the start for none, for one that is not ours, and for one beyond the end."""
    offset = int(cursor) if cursor.isdecimal() else 0
    return offset if offset <= size else 0


def _whole(data: bytes) -> int:
    """How many bytes make whole lines; all of them when they hold no line end and fill the bound."""
    end = max(data.rfind(mark) for mark in BREAKS) + 1
    return end or (len(data) if len(data) >= BYTES_MAX else 0)


def _after_break(data: bytes) -> bytes:
    """Without the cut line at the start; what has no break is kept, from the first whole character on."""
    starts = [data.find(mark) + 1 for mark in BREAKS]
    start = min((start for start in starts if start), default=0)
    if start == 0 or start == len(data):
        start = 0
        while start < min(4, len(data)) and data[start] & 0xC0 == 0x80:
            start += 1
    return data[start:]


def _first(data: bytes, lines: int) -> bytes:
    end = 0
    for _ in range(lines):
        found = data.find(b"\n", end)
        if found < 0:
            return data
        end = found + 1
    return data[:end]


def _last(data: bytes, lines: int) -> bytes:
    start = len(data) - data.endswith(b"\n")
    for _ in range(max(lines, 0)):
        start = data.rfind(b"\n", 0, start)
        if start < 0:
            return data
    return data[start + 1 :]
