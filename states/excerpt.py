"""The piece of a log that a model is shown: few lines, each with its number, chosen by what the rules found.

The order of importance: lines that the rules point at with their neighbours, the first trouble, the end, the
head, later trouble of a new shape. Long runs of one shape keep their beginning and end. The text of a line here
is what a quote is compared with (I4), so it is made once: bounded, without characters that are not seen.

Never: judge what a line means; redact (the caller did it before); let a line of the log start a line of its own.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import NamedTuple

from states.reading import Diagnosis, Line, Progress
from states.text import settled

LINES_MAX = 160
CHARS_MAX = 16_000
"""About 6,000 tokens: enough for head, tail and the first error (corpus finding 6), and cheap (STACK 1)."""

LINE_HEAD_CHARS = 260
LINE_TAIL_CHARS = 120
"""Kept of an overlong line; the key that matters may stand last."""

CUT_MARK = " [...] "
HEAD_LINES = 20
TAIL_LINES = 60
RUN_LINES_MAX = 4
"""Lines in a row of one shape (digits aside) that are kept whole; of more, the first two and the last two are."""

RANK_CHARS = 24
_BEFORE, _AFTER = 3, 8
_TROUBLE = re.compile(
    r"rror|RROR|xception|raceback|[Ff]atal|FATAL|[Ff]ail|FAIL|[Kk]illed|[Aa]bort|[Tt]imed? ?out|[Dd]enied"
    r"|[Rr]efused|[Nn]o such|[Nn]ot found|[Ss]egmentation|\bnan\b|NaN|[Oo]ut of memory|OOM|错误|失败|异常|超时"
)
_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_SELECTORS = re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef\u115f\u1160\u3164\uffa0\u034f\u180b-\u180f]")
"""Marks without a shape of their own, in which text can be hidden from people."""


class Shown(NamedTuple):
    """One line as the model sees it. number: as in the piece; rank: who printed it, or ""."""

    number: int
    text: str
    rank: str


def visible(text: str) -> str:
    """The text without control, direction, private and invisible characters; other white space is one space.

    A lone surrogate goes too: it cannot be sent as UTF-8.
    """
    if text.isascii() and text.isprintable():
        return text
    spaced = "".join(" " if sign.isspace() else sign for sign in _SELECTORS.sub("", text))
    return "".join(sign for sign in spaced if unicodedata.category(sign) not in _INVISIBLE)


def bounded(text: str) -> str:
    """A line of at most LINE_HEAD_CHARS + mark + LINE_TAIL_CHARS characters."""
    if len(text) <= LINE_HEAD_CHARS + LINE_TAIL_CHARS:
        return text
    return text[:LINE_HEAD_CHARS] + CUT_MARK + text[-LINE_TAIL_CHARS:]


def pointed_at(diagnosis: Diagnosis, progress: Progress) -> tuple[int, ...]:
    """Numbers of the lines that the rules found telling, the most telling first."""
    quotes = [*diagnosis.evidence, *(sign.evidence for sign in diagnosis.signs)]
    quotes += [quote for quote in (progress.finished, progress.repeated) if quote is not None]
    counters = [counter.line for counter in (progress.main, *progress.counters) if counter is not None]
    numbers = chain((quote.line for quote in quotes), counters, (progress.phase_line,))
    return tuple(dict.fromkeys(number for number in numbers if number))


def choose(found: Sequence[Line], pointed: Iterable[int] = ()) -> tuple[Shown, ...]:
    """At most LINES_MAX lines and CHARS_MAX characters, in their order; () when there is no text.

    found: cleaned lines, gaps allowed. pointed: numbers from `pointed_at`, in the order of importance.
    """
    shown = [_shown(line) for line in settled(found)]
    shown = [line for line in shown if line.text]
    wanted: set[int] = set()
    left = CHARS_MAX
    for place in _by_importance(shown, pointed):
        if place in wanted:
            continue
        left -= len(shown[place].text) + 10  # the number column and the line end
        if left < 0 or len(wanted) >= LINES_MAX:
            break
        wanted.add(place)
    return tuple(shown[place] for place in sorted(wanted))


def render(shown: Sequence[Shown]) -> str:
    """The lines as the model reads them: `  12| text`, and a note where lines are left out.

    Every line of the log stands behind its number, so none can pass for a note or a line of the prompt.
    """
    rows: list[str] = []
    before = 0
    for line in shown:
        if line.number > before + 1:
            rows.append(f"      ({line.number - before - 1} lines left out)")
        who = f" {line.rank}" if line.rank else ""
        rows.append(f"{line.number:6d}{who}| {line.text}")
        before = line.number
    return "\n".join(rows)


def _shown(line: Line) -> Shown:
    rank = re.sub(r"[^\w.:=\[\]-]", "", visible(line.rank))[:RANK_CHARS]
    return Shown(line.number, bounded(visible(line.text).strip()), rank)


def _by_importance(shown: Sequence[Shown], pointed: Iterable[int]) -> Iterator[int]:
    """Places in `shown`, the most important first, repeats included."""
    places = {line.number: place for place, line in enumerate(shown)}
    told = [places[number] for number in pointed if number in places]
    trouble = _new_trouble(shown)
    outline = _outline(shown)
    yield from told[:12]
    yield from _around(told[:4] + trouble[:1], len(shown))
    yield from reversed(outline[-TAIL_LINES:])
    yield from outline[:HEAD_LINES]
    yield from _around(trouble[1:12], len(shown), before=1, after=4)
    yield from told
    yield from reversed(outline)


def _around(places: Iterable[int], size: int, *, before: int = _BEFORE, after: int = _AFTER) -> Iterator[int]:
    for place in places:
        yield from range(max(0, place - before), min(size, place + after + 1))


def _new_trouble(shown: Sequence[Shown]) -> list[int]:
    """Where a word of trouble stands in a line of a shape not seen before; the first comes first."""
    seen: set[str] = set()
    found = []
    for place, line in enumerate(shown):
        if _TROUBLE.search(line.text) and (shape := _shape(line.text)) not in seen:
            seen.add(shape)
            found.append(place)
    return found


def _outline(shown: Sequence[Shown]) -> list[int]:
    """All places but the middle of long runs of one shape (steps, retries)."""
    kept: list[int] = []
    start = 0
    for place in range(1, len(shown) + 1):
        if place < len(shown) and _shape(shown[place].text) == _shape(shown[start].text):
            continue
        run = list(range(start, place))
        kept += run if len(run) <= RUN_LINES_MAX else run[:2] + run[-2:]
        start = place
    return kept


_DIGITS = re.compile(r"\d+")


def _shape(text: str) -> str:
    return _DIGITS.sub("0", text)[:80]
