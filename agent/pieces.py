"""The telling parts of a log of any size, in bounded memory: head, surroundings of new trouble, tail.

The file is passed over once, block by block, with one multi-pattern search; only what is kept is decoded,
redacted and cleaned. Lines keep their numbers in the file, and a small file is kept whole. With google-re2
installed the search runs at several hundred MB/s, with the standard library at about a tenth of that.

Never: judge what a line means; hold more than the bounds below; clean a part before it is redacted.
"""

from __future__ import annotations

import functools
import hashlib
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, Protocol

from states.logs.signatures import Signatures, load
from states.reading import Line
from states.text import lines

BLOCK_BYTES = 1 << 20
WHOLE_BYTES_MAX = 1 << 20
"""A file up to this size is kept whole."""

HEAD_BYTES = 32 << 10
TAIL_BYTES = 128 << 10
WINDOW_BYTES_BEFORE = 1 << 10
WINDOW_BYTES_AFTER = 6 << 10
SHAPES_MAX = 100
"""Kinds of trouble whose surroundings are kept, the earliest of each: what came first is the cause (E3)."""

TELLING_CHARS = 12
ENGINE_BYTES = 64 << 20
"""Most memory of the fast engine's tables; with too little it falls back to a slow way and says so at every hit."""

HITS_PER_BLOCK_MAX = 512
_KEY_BYTES = 120

SEVERE = (
    *(
        "Error",
        "ERROR:",
        "xception",
        "raceback",
        "FAILED",
        "atal",
        "FATAL",
        "illed",
        "CANCELLED",
        "OOM",
        "Xid",
    ),
    *("ut of memory", "bort", "egmentation", "No such", "No space", "denied", "ritical", "CRITICAL"),
)
TROUBLE = (
    *(
        *SEVERE,
        "rror",
        "RROR",
        "ailed",
        "ailure",
        "ssert",
        "ignal",
        "not found",
        "uota",
        "imed out",
        "imeout",
    ),
    *("efused", "nreachable", " nan", "=nan", ":nan", "NaN", "WARN", "错误", "失败", "异常"),
)
"""Pieces of the words that programs and schedulers use for trouble: a filter for what to keep, no verdict.

Where a block is so full of trouble that the search gives up, it is searched once more for the severe ones.
"""


class Pieces(NamedTuple):
    """What was kept of a file: cleaned lines with their numbers in it, and its size.

    fingerprint: hash of the last part as read, so that "the same text again" is known; "" without text.
    whole: nothing was left out.
    """

    lines: list[Line]
    bytes_read: int
    lines_read: int
    fingerprint: str
    whole: bool


class Part(NamedTuple):
    """Some of a file from a byte offset on; its first line has `number`."""

    offset: int
    number: int
    data: bytes


class Hit(Protocol):
    """Where a search found something."""

    def start(self) -> int:
        """Offset in bytes."""


Search = Callable[[bytes, int], "Hit | None"]


class Searches(NamedTuple):
    """Where in a block the next trouble is, and the next severe one."""

    trouble: Search
    severe: Search


@functools.cache
def searches() -> Searches:
    """Compiled once for many files: the words below, and what the known signatures cannot do without."""
    return Searches(searcher((*TROUBLE, *_telling(load()))), searcher(SEVERE))


def _telling(known: Signatures) -> Iterator[str]:
    """Literals of the signatures that are long enough to stand for them; a signature may hold no word of trouble."""
    for needle, places in known.by_needle.items():
        if len(needle) >= TELLING_CHARS and any(known.entries[place].role == "root" for place in places):
            yield needle


def searcher(words: Iterable[str]) -> Search:
    """The next of the words in a block from an offset on, by the fastest engine that is installed."""
    pattern = b"|".join(re.escape(word.encode()) for word in sorted(set(words)))
    try:
        import re2  # type: ignore[import-untyped]
    except ImportError:
        return re.compile(pattern).search
    options = re2.Options()
    options.max_mem = ENGINE_BYTES
    options.log_errors = False
    found: Search = re2.compile(pattern, options).search
    return found


def pieces(
    chunks: Iterable[bytes], *, redact: Callable[[str], str] = str, search: Searches | None = None
) -> Pieces:
    """Passes over a log once. chunks: its bytes in order, of any size.

    redact: applied to each part as read, before anything is stripped or decoded further (RULES B4, I2);
    it must keep line ends.
    """
    gather = Gather(search or searches())
    for chunk in chunks:
        for at in range(0, len(chunk), BLOCK_BYTES):
            gather.feed(chunk[at : at + BLOCK_BYTES])
    parts = gather.finish()
    last = parts[-1].data[-TAIL_BYTES:] if parts else b""
    return Pieces(
        lines=list(_cleaned(parts, redact)),
        bytes_read=gather.bytes_read,
        lines_read=gather.lines_read,
        fingerprint=hashlib.blake2b(last, digest_size=16).hexdigest() if last.strip() else "",
        whole=gather.bytes_read <= WHOLE_BYTES_MAX,
    )


class Gather:
    """Takes a file in order and keeps the parts of it that tell something."""

    def __init__(self, search: Searches) -> None:
        self.bytes_read = self.lines_read = 0
        self._search = search
        self._offset = 0
        self._number = 1
        self._rest = b""
        self._head: list[Part] = []
        self._head_left = HEAD_BYTES
        self._windows: list[Part] = []
        self._seen: set[bytes] = set()
        self._tail: deque[Part] = deque()
        self._tail_bytes = 0

    def feed(self, data: bytes) -> None:
        """Takes the next bytes. An unfinished line waits for its end, but not beyond one block."""
        self.bytes_read += len(data)
        data = self._rest + data
        end = data.rfind(b"\n") + 1
        if end == 0 and len(data) >= BLOCK_BYTES:
            end = len(data)
        self._rest = data[end:]
        if end:
            self._take(data[:end])

    def finish(self) -> list[Part]:
        """The parts in order, without overlap. The whole file if it is small."""
        self.lines_read = self._number - 1
        if self._rest:
            self.lines_read += 1
            self._take(self._rest)
        if not self._tail:
            return []
        if self.bytes_read <= WHOLE_BYTES_MAX:
            return [Part(0, 1, b"".join(part.data for part in self._tail))]
        return list(_apart([*self._head, *self._windows, self._last()]))

    def _take(self, data: bytes) -> None:
        part = Part(self._offset, self._number, data)
        if self._head_left > 0:
            self._head.append(part._replace(data=_first(data, self._head_left)))
            self._head_left -= len(data)
        self._windows.extend(self._new_trouble(part))
        self._tail.append(part)
        self._tail_bytes += len(data)
        while self._tail_bytes - len(self._tail[0].data) > WHOLE_BYTES_MAX:
            self._tail_bytes -= len(self._tail.popleft().data)
        self._offset += len(data)
        self._number += data.count(b"\n")

    def _new_trouble(self, part: Part) -> Iterator[Part]:
        """Surroundings of lines that have a word of trouble and a shape (digits aside) not seen before."""
        found = list(self._windows_of(part, self._search.trouble))
        if len(found) >= HITS_PER_BLOCK_MAX:
            found += self._windows_of(part, self._search.severe)
        return filter(None, found)

    def _windows_of(self, part: Part, search: Search) -> Iterator[Part | None]:
        """One item per hit: what surrounds it, or None if its shape is known."""
        data, at = part.data, 0
        for _ in range(HITS_PER_BLOCK_MAX):
            hit = search(data, at)
            if hit is None or len(self._seen) >= SHAPES_MAX:
                return
            start = data.rfind(b"\n", 0, hit.start()) + 1
            at = data.find(b"\n", hit.start()) + 1 or len(data)
            shape = data[start : min(at, start + 4 * _KEY_BYTES)].translate(None, b"0123456789")[:_KEY_BYTES]
            if shape in self._seen:
                yield None
                continue
            self._seen.add(shape)
            first = data.rfind(b"\n", 0, max(0, start - WINDOW_BYTES_BEFORE)) + 1
            last = max(at, data.rfind(b"\n", 0, at + WINDOW_BYTES_AFTER) + 1)
            yield Part(part.offset + first, part.number + data.count(b"\n", 0, first), data[first:last])

    def _last(self) -> Part:
        data = b"".join(part.data for part in self._tail)
        wanted = max(0, len(data) - TAIL_BYTES)
        return _from(self._tail[0]._replace(data=data), data.find(b"\n", wanted) + 1 or wanted)


def _first(data: bytes, size: int) -> bytes:
    """About the first `size` bytes, up to the end of a line if there is one."""
    return data if len(data) <= size else data[: data.rfind(b"\n", 0, size) + 1 or size]


def _from(part: Part, cut: int) -> Part:
    """The part without its first `cut` bytes."""
    return Part(part.offset + cut, part.number + part.data.count(b"\n", 0, cut), part.data[cut:])


def _apart(parts: Iterable[Part]) -> Iterator[Part]:
    """The parts in the order of the file; what an earlier one holds is cut from the later."""
    done = 0
    for part in sorted(parts):
        rest = _from(part, max(0, done - part.offset))
        if rest.data:
            yield rest
            done = rest.offset + len(rest.data)


def _cleaned(parts: Iterable[Part], redact: Callable[[str], str]) -> Iterator[Line]:
    for part in parts:
        for line in lines(redact(part.data.decode("utf-8", "replace"))):
            yield line._replace(number=line.number + part.number - 1)
