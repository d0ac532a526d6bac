"""Raw log text into clean lines: one place for everything a terminal, a launcher or a bad disk adds to a log.

`lines` cleans a piece, `stream` a file of any size in bounded memory. Both count lines by `\\n` only, so
the number of a `Line` is the number an editor shows. Every refresh of a line (`\\r`, backspaces, cursor
moves) is a `Line` of its own with the number of its line; `settled` keeps the last one of each line.
All patterns are bounded and do linear work on any input (E2, I2: log text is hostile).

Never: decode what is inside a line (base64, JSON, percent codes), redact (the caller did it before), or hold
more of one line than `PENDING_CHARS_MAX`.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import count, repeat

from states.reading import Line

LINE_HEAD_CHARS = 12_288
"""Characters kept from the start of an overlong line; metric lines of 4 to 8 thousand characters are real."""

LINE_TAIL_CHARS = 4_096
"""Characters kept from its end: the key that matters may stand last."""

CUT_MARK = " [...] "
PENDING_CHARS_MAX = 262_144
"""Characters of one unfinished line that `stream` holds before it cuts or hands out its refreshes."""

_SLICE_CHARS = 65_536
_LABEL_SAMPLE_LINES = 400

_CONTROL_BYTES = bytes(set(range(32)) - {0x09, 0x0A}) + b"\x7f"
_ODD = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")
_WRITTEN_ESCAPE = re.compile(r"(?:\^\[|#033|\\033|\\u001[bB]|\\x1[bB]|\\e|[\u241b\ufffd])\[[0-9;]{0,24}[mK]")
_WRITTEN_HINTS = ("^[[", "033[", "u001b[", "u001B[", "x1b[", "x1B[", "\\e[", "\u241b[", "\ufffd[")

# A string escape (OSC, DCS, ...) goes with its text only when it ends; an endless one loses its introducer
# only, so that nobody can hide the rest of a line. No class crosses another ESC: the work stays linear.
_ESCAPE = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]{0,64}[ -/]{0,8}[@-~]?"
    r"|\x1b[\]PX^_][^\x07\x1b\x9c\n]{0,4096}(?:\x07|\x1b\\|\x9c)"
    r"|\x1b[\]PX^_](?:[0-9]{0,4};)?"
    r"|\x1b[ -/]{0,3}[0-~]?"
)
# Cursor moves that start the line again (or go to another): what follows is a new refresh.
_REFRESH = re.compile(r"\r|\x08+|\x1b\[[0-9;]{0,16}[ABEFGHf]|\x1b[M78]")

_RANK = re.compile(
    r"[ \t]{0,4}(?:"
    r"\[?(?P<torch>[Rr](?:ank|ANK)[ :_=]{0,2}\d{1,6})\](?::[ \t]?|[ \t])"
    r"|(?P<bare>[Rr]ank ?\d{1,6}):[ \t]"
    r"|\[(?P<tee>[A-Za-z_]{1,24}\d{1,6})\]:[ \t]?"
    r"|\[(?P<index>\d{1,5})\]:[ \t]?"
    r"|\[\d{1,3},(?P<mpi>\d{1,6})\]<std(?:out|err)>:[ \t]?"
    r"|\((?:[^()\n=]{1,80}[ ,])?(?P<ray>pid=\d{1,10}(?:, ?ip=[0-9A-Za-z.:\-]{1,64})?)\)[ \t]?"
    r"|(?P<nccl>[A-Za-z0-9][\w.\-]{0,80}:\d{1,8}):\d{1,8} \[(?P<gpu>\d{1,3})\][ \t]"
    r"|\[pod/(?P<pod>[^\]\s]{1,200})\][ \t]?"
    r")"
)
_RANK_HINTS = ("ank", "ANK", "pid=", "]:", "]<std", "NCCL", "[pod/")
_LABEL = re.compile(r" {0,4}([0-9A-Za-z][\w.\-]{0,80}):(?: |$)")
_new_line = partial(tuple.__new__, Line)


def lines(text: str) -> list[Line]:
    """Cleans a piece of log text. Numbers count from 1 by `\\n`; refreshes of a line share its number.

    text: decoded with errors="replace" and redacted. A last line without `\\n` counts; an empty end does not.
    """
    whole, _, rest = text.rpartition("\n")
    labels = _labels(text[:_SLICE_CHARS])
    found = list(_clean_block(whole, 1, labels)) if whole or rest != text else []
    if rest:
        found.extend(_clean_block(rest, text.count("\n") + 1, labels))
    return found


def settled(found: Iterable[Line]) -> Iterator[Line]:
    """Of every line only its last refresh, as a terminal would leave it standing."""
    held: Line | None = None
    for line in found:
        if held is not None and held.number != line.number:
            yield held
        held = line
    if held is not None:
        yield held


def stream(chunks: Iterable[bytes | str]) -> Iterator[Line]:
    """Cleans a whole log, chunk by chunk, in bounded memory; same result as `lines` where no line is cut.

    chunks: raw bytes (UTF-8 expected, bad bytes are replaced) or text, split anywhere, also in a character.
    """
    number, pending, labels = 1, "", None
    for piece in _decoded(chunks):
        whole, newline, rest = piece.rpartition("\n")
        if newline:
            block = pending + whole
            if labels is None:
                labels = _labels(block)
            yield from _clean_block(block, number, labels)
            number += block.count("\n") + 1
            pending = rest
        else:
            pending += piece
        if len(pending) > PENDING_CHARS_MAX:
            done, pending = _relieve(pending)
            if done:
                yield from _clean_block(done, number, labels or frozenset())
    if pending:
        yield from _clean_block(pending, number, labels if labels is not None else _labels(pending))


def _decoded(chunks: Iterable[bytes | str]) -> Iterator[str]:
    """Text in slices of about `_SLICE_CHARS`, whatever the size of the chunks."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    held: list[str] = []
    size = 0
    for chunk in chunks:
        for start in range(0, len(chunk), _SLICE_CHARS):
            part = chunk[start : start + _SLICE_CHARS]
            held.append(part if isinstance(part, str) else decoder.decode(part))
            size += len(held[-1])
            if size >= _SLICE_CHARS:
                yield "".join(held)
                held, size = [], 0
    yield "".join(held) + decoder.decode(b"", True)


def _relieve(pending: str) -> tuple[str, str]:
    """An overlong unfinished line: (refreshes that are complete, what must still be held)."""
    cut = pending.rfind("\r")
    if cut > 0:
        return pending[:cut], pending[cut:]
    return "", pending[:LINE_HEAD_CHARS] + CUT_MARK + pending[-LINE_TAIL_CHARS:]


def _clean_block(block: str, number: int, labels: frozenset[str]) -> Iterator[Line]:
    """Lines of a block of whole lines (without its last `\\n`), the first of which has `number`."""
    plain = not _is_odd(block)
    ranked = bool(labels) or _may_be_ranked(block)
    parts = block.split("\n")
    if plain and not ranked and max(map(len, parts)) <= LINE_HEAD_CHARS:
        return map(_new_line, zip(count(number), parts, repeat(""), repeat("")))
    return _clean_parts(parts, number, labels, plain)


def _may_be_ranked(block: str) -> bool:
    if "[" not in block and "(" not in block:
        return "ank" in block or "ANK" in block
    return any(hint in block for hint in _RANK_HINTS)


def _clean_parts(parts: Sequence[str], number: int, labels: frozenset[str], plain: bool) -> Iterator[Line]:
    for at, raw in enumerate(parts, number):
        before: str | None = None
        for refresh in (raw,) if plain else _refreshes(raw):
            if refresh == before:
                continue
            before = refresh
            rank, text = _split_rank(refresh, labels)
            yield Line(at, _cut(text), rank, refresh[: len(refresh) - len(text)])


def _is_odd(block: str) -> bool:
    """Whether anything but plain text is in it. The byte table is several times faster than the pattern."""
    if block.isascii():
        raw = block.encode("ascii")
        odd = len(raw.translate(None, _CONTROL_BYTES)) != len(raw)
    else:
        odd = _ODD.search(block) is not None
    return odd or _has_written_escape(block)


def _has_written_escape(block: str) -> bool:
    """Escapes that something on the way spelled out as text. The first line is a cheap way to say no."""
    if block.isascii() and "\\" not in block and "^[[" not in block and "#033[" not in block:
        return False
    return any(hint in block for hint in _WRITTEN_HINTS)


def _refreshes(raw: str) -> list[str]:
    """Every state that a line showed, oldest first, blank ones left out; [""] for a blank line."""
    if not _is_odd(raw):
        return [raw]
    pieces = _REFRESH.split(raw)
    if _has_written_escape(raw):
        pieces = [_WRITTEN_ESCAPE.sub("", piece) for piece in pieces]
    if "\x1b" in raw or "\x9b" in raw:
        pieces = [_ESCAPE.sub("", piece) for piece in pieces]
    shown = [text for piece in pieces if (text := _ODD.sub("", piece)) and not text.isspace()]
    return shown or [""]


def _cut(text: str) -> str:
    if len(text) <= LINE_HEAD_CHARS + LINE_TAIL_CHARS:
        return text
    return text[:LINE_HEAD_CHARS] + CUT_MARK + text[-LINE_TAIL_CHARS:]


def _split_rank(text: str, labels: frozenset[str]) -> tuple[str, str]:
    """(rank, rest of the line). Two prefixes are taken when a launcher tags what a worker tagged already."""
    rank = ""
    if labels and (label := _LABEL.match(text)) and label[1] in labels:
        rank, text = label[1] if not label[1].isdigit() else f"rank{int(label[1])}", text[label.end() :]
    for _ in range(2):
        found = _RANK.match(text)
        if found is None:
            break
        rank, text = _rank_name(found), text[found.end() :]
    return rank, text


def _rank_name(found: re.Match[str]) -> str:
    kind = found.lastgroup
    if kind == "gpu":
        return f"{found['nccl']}[{found['gpu']}]"
    value = found[kind] if kind else ""
    if kind in ("torch", "bare"):
        return "rank" + value.lstrip("RANKrank :_=")
    return f"rank{value}" if kind in ("index", "mpi") else value.replace(", ", ",")


def _labels(sample: str) -> frozenset[str]:
    """Line labels that a launcher put before every line (`srun -l`, pdsh): `3: `, `node07: `.

    A label is believed only if nearly all lines carry one and few different ones come again and again
    (`1: 2: 3:` is a counter).
    """
    found: list[str] = []
    spoken = 0
    for part in sample.split("\n", _LABEL_SAMPLE_LINES)[:_LABEL_SAMPLE_LINES]:
        if not part or part.isspace():
            continue
        spoken += 1
        label = _LABEL.match(part)
        if label and any(map(str.isdigit, label[1])):
            found.append(label[1])
    names = frozenset(found)
    if spoken < 4 or len(found) < 0.8 * spoken or len(names) > len(found) / 2:
        return frozenset()
    return names
