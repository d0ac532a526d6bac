"""How a report says things: figures with their units, moments, safe text, phrases in both languages.

The phrases themselves are data (`phrases`); facts are put in by name.
Durations are seconds, sizes bytes or MiB, moments aware datetimes (ISO 8601 with their zone).

Never: decide what is said (`reports` does); let a text that was written by others pass without `plain`.
"""

from __future__ import annotations

import math
import re
import shlex
import textwrap
import unicodedata
from collections.abc import Sequence
from datetime import datetime

from states.questions import Language
from states.reading import Counter
from states.words.phrases import PHRASES

LINE_CHARS = 100
TEXT_CHARS_MAX = 240
COMMAND_CHARS_MAX = 600
PATH_CHARS_MAX = 200
CUT = "…"

_ESCAPE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
_UNSAFE = frozenset({"Cc", "Cf", "Cs"})


def plain(text: str, limit: int = TEXT_CHARS_MAX) -> str:
    """Text from a log, a cluster or a person on one line of at most `limit` characters (I2).

    Escape sequences, control, direction and invisible characters go, so that it can neither start a line of
    its own in a report nor change how the rest is read.
    """
    # Cut first, generously: what is thrown away anyway must not cost time.
    bare = _ESCAPE.sub("", text[: limit * 8 + 64])
    shown = " ".join(bare.split())
    if not shown.isprintable():
        kept = (sign for sign in bare if sign.isspace() or unicodedata.category(sign) not in _UNSAFE)
        shown = " ".join("".join(kept).split())
    return shown if len(shown) <= limit else shown[: max(limit - 1, 0)].rstrip() + CUT


def wrapped(line: str, width: int = LINE_CHARS) -> str:
    """The line broken at spaces; what follows stands deeper, so that it is not taken for a new line."""
    indent = " " * (len(line) - len(line.lstrip()) + 4)
    return "\n".join(
        textwrap.wrap(line, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
    )


def duration(seconds: float, language: Language = "en") -> str:
    """`45 s`, `2 min 05 s`, `12 min`, `1 h 05 min`, `2 d 03 h`; below zero is zero, not finite is `?`."""
    if not math.isfinite(seconds):
        return "?"
    day, hour, minute, second = (f" {word}" for word in ("d", "h", "min", "s"))
    if language == "zh":
        day, hour, minute, second = " 天", " 小时", " 分钟", " 秒"
    whole = max(round(seconds), 0)
    minutes, hours, days = whole // 60, whole // 3600, whole // 86_400
    if whole < 60:
        return f"{whole}{second}"
    if whole < 600 and whole % 60:
        return f"{minutes}{minute} {whole % 60:02d}{second}"
    if whole < 3600:
        return f"{minutes}{minute}"
    if whole < 86_400:
        return f"{hours}{hour} {minutes % 60:02d}{minute}"
    return f"{days}{day} {hours % 24:02d}{hour}"


def since(then: datetime, at: datetime) -> float:
    """Seconds from then to at, never below zero (clocks of a cluster may be ahead)."""
    return max((at - then).total_seconds(), 0.0)


def when(moment: datetime) -> str:
    """ISO 8601 to the second, with the zone."""
    return moment.isoformat(timespec="seconds")


def size(count: float) -> str:
    """Bytes: `512 B`, `3.4 KiB`, `1.5 GiB`."""
    units = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
    step = 0
    while count >= 1023.95 and step < len(units) - 1:
        count, step = count / 1024, step + 1
    return f"{count:.0f} B" if step == 0 else f"{count:.1f} {units[step]}"


def mib(count: float) -> str:
    """MiB: `512 MiB`, `1.5 GiB`, `32 GiB`."""
    return f"{count:g} MiB" if count < 1024 else f"{count / 1024:.4g} GiB"


def number(value: float) -> str:
    """A whole number in full, anything else to four digits; NaN is `nan`."""
    if math.isfinite(value) and value == int(value) and abs(value) < 1e15:
        return str(int(value))
    return f"{value:.4g}"


def rate(per_s: float, unit: str, language: Language = "en") -> str:
    """Units of work in the time that makes the number readable: `2.5 step/s`, `12 step/min`, `3 epoch/h`."""
    second, minute, hour = ("秒", "分钟", "小时") if language == "zh" else ("s", "min", "h")
    for factor, word in ((1, second), (60, minute)):
        if per_s * factor >= 1:
            return f"{per_s * factor:.3g} {unit}/{word}"
    return f"{per_s * 3600:.3g} {unit}/{hour}"


def unit_of(counter: Counter) -> str:
    """What the counter counts: the last part of its name (`bar:Loading` -> `Loading`); `item` without one."""
    return plain(counter.name.rpartition(":")[2], 40) or "item"


def count_of(counter: Counter) -> str:
    """`step 300/1000 (30 %)`, without the total when the log tells none."""
    text = f"{unit_of(counter)} {number(counter.value)}"
    if not counter.total or not math.isfinite(counter.total) or not math.isfinite(counter.value):
        return text
    return f"{text}/{number(counter.total)} ({100 * counter.value / counter.total:.0f} %)"


def command_line(argv: Sequence[str], limit: int = COMMAND_CHARS_MAX) -> str:
    """The command quoted as a shell would read it, on one line; for reading, never to be run."""
    return plain(shlex.join(argv).replace("\n", " ⏎ "), limit)


def say(language: Language, phrase: str, **facts: str) -> str:
    """The phrase with its facts. KeyError for a phrase or a fact that is missing."""
    english, chinese = PHRASES[phrase]
    return (chinese if language == "zh" else english).format_map(facts)
