"""A byte cursor over a log of which only the last N lines can be had: what is new is found by what came before.

The cursor holds how far the log was told (bytes, known while the whole of it could be had) and a fingerprint of
the bytes just before that place. A line that is still being written is told when it ended, or stood unchanged from
one read to the next; a read without a cursor tells it as it stands, since a hung program's last words matter.

Never: keep a piece of the log in the cursor; take the end of a log that could not be had in whole for its start.
"""

from __future__ import annotations

import re
import zlib
from typing import NamedTuple

from agent.clusters.base import LogPiece

LINES_MAX = 5_000
"""Lines asked of the cluster at most, whatever the caller wants."""
ANCHOR_BYTES = 192
_BREAKS = (b"\n", b"\r")
_CURSOR = re.compile(r"b(\d{1,18}|-)\.(\d{1,3})\.([0-9a-f]{1,8})\.([0-9a-f]{1,8})\.([0-9a-f]{1,8})")


class Place(NamedTuple):
    """A cursor, taken apart. offset: bytes from the log's start, None where unknown. held: of the unfinished
    line that was not told, 0 for none."""

    offset: int | None
    length: int
    crc: int
    adler: int
    held: int


class Had(NamedTuple):
    """What the cluster gave. whole: it is the log from its first byte on."""

    data: bytes
    whole: bool


def had(text: str, asked: int, *, cut: bool = False) -> Had:
    """The answer to `-n asked`. A log is whole where fewer lines came than were asked for.

    cut: its beginning is missing for another reason.
    """
    lines = text.count("\n") + (not text.endswith("\n") and bool(text))
    return Had(text.encode(), not cut and lines < asked)


def piece(log: Had, *, lines: int, cursor: str = "", head: bool = False) -> LogPiece:
    """At most `lines` lines: the end, the beginning (as far as it could be had), or what came after the cursor.

    truncated: something between the cursor (or the log's start) and `text` was left out.
    """
    place = parse(cursor)
    if place is None:
        if head:
            kept = _first(log.data, lines)
            return _piece(log, kept, 0, len(kept), truncated=not log.whole)
        kept = _last(log.data, lines)
        return _piece(log, kept, 0, len(log.data), truncated=not log.whole or len(kept) < len(log.data))
    start = find(log, place)
    known = start is not None
    begin = start or 0
    end = len(log.data)
    partial = log.data[_after_break(log.data, begin) :]
    held = zlib.crc32(partial) if partial else 0
    if partial and held != place.held:
        end -= len(partial)
    else:
        held = 0
    kept = _last(log.data[begin:end], lines)
    truncated = (not known and not log.whole) or len(kept) < end - begin
    return _piece(log, kept, held, end, truncated=truncated)


def reached(log: Had, cursor: str) -> bool:
    """Can what came after the cursor be told from this answer without a gap?"""
    place = parse(cursor)
    return place is None or log.whole or find(log, place) is not None


def parse(cursor: str) -> Place | None:
    """The place; None for no cursor and for one that is not ours."""
    match = _CURSOR.fullmatch(cursor)
    if match is None:
        return None
    offset = None if match[1] == "-" else int(match[1])
    return Place(offset, int(match[2]), int(match[3], 16), int(match[4], 16), int(match[5], 16))


def find(log: Had, place: Place) -> int | None:
    """Where the place is in what was had; None if it is not in there (or the log was begun anew).

    Where the same bytes stand more than once the last is taken: a repetition brings no news, and must not look
    like output of a job that has gone silent.
    """
    if log.whole and place.offset is not None:
        fits = place.offset <= len(log.data) and _matches(log.data, place.offset, place)
        return place.offset if fits else None
    if place.length == 0:
        return None
    for end in range(len(log.data), place.length - 1, -1):
        if _matches(log.data, end, place):
            return end
    return None


def _matches(data: bytes, end: int, place: Place) -> bool:
    before = data[end - place.length : end] if end >= place.length else b""
    return (
        len(before) == place.length
        and zlib.crc32(before) == place.crc
        and zlib.adler32(before) == place.adler
    )


def _piece(log: Had, kept: bytes, held: int, end: int, *, truncated: bool) -> LogPiece:
    before = log.data[max(0, end - ANCHOR_BYTES) : end]
    offset = str(end) if log.whole else "-"
    marks = f"{zlib.crc32(before):x}.{zlib.adler32(before):x}.{held:x}"
    cursor = f"b{offset}.{len(before)}.{marks}"
    return LogPiece(text=kept.decode(errors="replace"), cursor=cursor, truncated=truncated)


def _after_break(data: bytes, begin: int) -> int:
    """Where the unfinished line begins; the end of the data when there is none."""
    return max(begin, *(data.rfind(mark) + 1 for mark in _BREAKS))


def _first(data: bytes, lines: int) -> bytes:
    end = 0
    for _ in range(max(lines, 0)):
        found = data.find(b"\n", end)
        if found < 0:
            return data
        end = found + 1
    return data[:end]


def _last(data: bytes, lines: int) -> bytes:
    if lines <= 0:
        return b""
    start = len(data) - data.endswith(b"\n")
    for _ in range(lines):
        start = data.rfind(b"\n", 0, start)
        if start < 0:
            return data
    return data[start + 1 :]
