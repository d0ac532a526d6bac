"""Numbers that come in twos or in a bar: `n/N` pairs, progress bars, the meters of wget and curl.

Also the words that label a number, which `counters` needs too.

Never: take a date, a path, a score or a retry for a pair that counts; scan a line without bound.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

from states.logs.shapes import per_shape, shape
from states.logs.units import (
    COUNTER_QUALIFIERS,
    UNITS_OF_WORK,
    Context,
    context,
    denied,
    measured,
    unit_of,
    words,
)

Kind = Literal["unit", "quota", "bar", "pair", "percent", "bytes", "countdown", "word", "bare"]
"""How a number was recognised. `quota`: a unit with a word like max or total: a goal, unless it moves."""

NUMBERS_PER_LINE_MAX = 400
N = r"(?:\d{1,3}(?:,\d{3}){1,5}|\d{1,15})(?:\.\d{1,20})?(?!\d)"
"""Pattern of one unsigned number, bounded; thousands may be set off by commas."""

_SI = {"k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
_SUFFIX = r"\s?(?:[kKMGTP]i?)?(?:it|[Bb]|bytes)?"
_PAIR = re.compile(
    rf"(?<![\w.,/\\+~-])(?<!\d:)(?P<n>{N})(?P<nu>{_SUFFIX})\)?\s{{0,8}}(?:/|／|\bof\b|out of)\s{{0,8}}"
    rf"(?P<N>{N})(?P<Nu>{_SUFFIX})(?![\w/\\]|[.:\-]\d)(?P<tail>\s?[A-Za-z\u4e00-\u9fff]{{0,16}})"
)
_DATE_PAIR = re.compile(r"[01]?\d/[0-3]?\d(?:/\d\d(?:\d\d)?)?[ T]\d\d:\d\d")
_BYTE_WORDS = frozenset("B KB MB GB TB KiB MiB GiB TiB kB bytes".split())
_TQDM = re.compile(
    r"(?P<pct>\d{1,3})(?:\.\d{1,2})?%\s?(?:\|(?P<bar>[^|%]{0,400})|Completed )\|\s{0,4}"
    rf"(?P<n>{N})(?P<nu>[kKMGTP]i?)?(?:it|B)?/(?P<N>{N})(?P<Nu>[kKMGTP]i?)?[A-Za-z]{{0,12}}"
)
_TQDM_OPEN = re.compile(
    rf"(?<![\w/.])(?P<n>{N})(?P<nu>[kKMGTP]i?)?(?:it|B| [a-z]{{1,20}}) ?\[\d{{1,6}}:\d\d(?::\d\d)?, "
)
_RUNNING = re.compile(r"\((?P<n>\d{1,9}) \+ \d{1,9}\) / (?P<N>\d{1,9})(?!\d)")
"""`(87 + 40) / 200`: done, at work, all."""

_STATES = re.compile(r"\s?\([^()]{0,80}\b(?:PENDING|RUNNING|ERROR|TERMINATED)\b")
"""`4/4 (1 PENDING, 3 RUNNING)`: how many there are, not how many are done."""

_SHARE = re.compile(r"\[\s{0,3}\d{1,3}(?:\.\d{1,2})?\s?%\s?\]\s{0,4}$")
"""A percentage in brackets right before a pair, which repeats it."""

_WGET_DOTS = re.compile(r"\s{0,12}(?P<n>\d{1,12})K (?:[. ,]{11,70})")
_WGET_LENGTH = re.compile(r"Length: (?P<n>\d{1,15})\b")
_CURL = re.compile(
    r"\s{0,3}(?P<pct>\d{1,3})(?:\s{1,8}[\d.]{1,7}[kKMGTP]?){7}(?:\s{1,8}[\d:dh-]{1,9}){3}(?:\s|$)"
)
_RECEIVED = re.compile(rf"(?P<n>{N}) bytes[^\d]{{1,24}}(?:expected|of|total) (?P<N>{N})", re.IGNORECASE)
_CHANGING = re.compile(r"[\w.\-]{0,80}\.[A-Za-z]\w{0,20}|\d+")
_LABEL_ENDS = " \t:=[(#|-_*\"'<>.,，：)"
_LABEL_WORDS_MAX = 4
_MODE = re.compile(r"\([A-Za-z]{1,12}\)?$")
"""`Iter(train)`: the mode behind a unit, of which only the context is kept."""


class Reading(NamedTuple):
    """One number that may count work, on one line.

    name: tells series apart. unit: the word beside it, in the singular and lower case ("" if none).
    fractional: it is written with a point (`epoch: 2.0`), so it is coarser than what it stands beside.
    """

    name: str
    kind: Kind
    value: float
    total: float | None = None
    unit: str = ""
    context: Context = ""
    fractional: bool = False


class Placed(NamedTuple):
    """A reading with the span of the line that it took, so that nothing is read twice."""

    start: int
    end: int
    reading: Reading


def bars(text: str) -> Iterator[Placed]:
    """Progress bars and download meters on a line; several bars may be glued together."""
    if "%" in text:
        for match in _TQDM.finditer(text):
            yield Placed(match.start(), match.end(), _bar(text, match, scaled(match["N"], match["Nu"])))
    if "[" in text and (opened := _TQDM_OPEN.search(text)):
        yield Placed(opened.start(), opened.end(), _bar(text, opened, None))
    if " + " in text and (stage := _RUNNING.search(text)):
        named = label(text[max(0, stage.start() - 100) : stage.start()].rstrip(" =>"))
        reading = Reading(_generic(named) or "tasks", "pair", number(stage["n"]), number(stage["N"]), "task")
        yield Placed(stage.start(), stage.end(), reading)
    if (meter := _meter(text)) is not None:
        yield Placed(0, len(text), meter)


def pairs(text: str) -> Iterator[Placed]:
    """Every `n/N` and `n of N` that may count: no dates, paths, scores, memory figures or retries."""
    for match in _pair_matches(shape(text)):
        if (reading := _pair(text, match)) is not None:
            yield Placed(match.start(), match.end(), reading)
    if "bytes" in text and (found := _RECEIVED.search(text)):
        reading = Reading("bytes", "bytes", number(found["n"]), number(found["N"]), "byte", "load")
        yield Placed(found.start(), found.end(), reading)


@per_shape
def _pair_matches(of: str) -> tuple[re.Match[str], ...]:
    """Where the pairs of a shape stand."""
    return tuple(itertools.islice(_PAIR.finditer(of), NUMBERS_PER_LINE_MAX))


def has_pair(of: str) -> bool:
    """Whether a line of this shape could hold a pair at all."""
    return bool(_pair_matches(of)) or ("bytes" in of and _RECEIVED.search(of) is not None)


def number(text: str) -> float:
    """The value of what `N` matches."""
    return float(text.replace(",", ""))


def scaled(text: str, suffix: str | None) -> float:
    """A number with its suffix: `6.41` with `k` is 6410, with `Ki` 6563.84."""
    suffix = (suffix or "").strip()
    factor = _SI.get(suffix[:1], 1.0)
    if suffix[1:2] == "i" and suffix[2:3] != "t":
        factor = 1024.0 ** round(math.log10(factor) / 3)
    return round(number(text) * factor, 6)


def _meter(text: str) -> Reading | None:
    """A line of curl's meter (percent) or of wget's dots (KiB; its `Length:` line is the total)."""
    if text[:3].lstrip()[:1].isdigit() and (curl := _CURL.match(text)):
        return Reading("percent", "percent", float(curl["pct"]), 100.0, "percent", "load")
    if "K ....." in text and (dots := _WGET_DOTS.match(text)):
        return Reading("kib", "bytes", float(dots["n"]), None, "KiB")
    if text.startswith("Length: ") and (length := _WGET_LENGTH.match(text)):
        return Reading("length", "quota", round(float(length["n"]) / 1024), None, "KiB", "load")
    return None


def _bar(text: str, match: re.Match[str], total: float | None) -> Reading:
    before = label(text[max(0, match.start() - 100) : match.start()])
    name = f"bar:{_generic(before)}" if before or total is None else f"bar/{total:g}"
    return Reading(name, "bar", scaled(match["n"], match["nu"]), total, _unit(before), context(before))


def _pair(text: str, match: re.Match[str]) -> Reading | None:
    """A pair of this text; `match` says where it stands in the text's shape, so its digits are not the text's."""
    done, goal = text[slice(*match.span("n"))], text[slice(*match.span("N"))]
    value, total = scaled(done, match["nu"]), scaled(goal, match["Nu"])
    before = text[max(0, match.start() - 60) : match.start()]
    if total <= 0 or value > total * 1.2 + 1 or _DATE_PAIR.match(text, match.start()):
        return None
    named, tail = label(_SHARE.sub("", before) if "%" in before else before), match["tail"].strip()
    if _STATES.match(text, match.end("Nu")):
        return None
    if denied(before[-32:] + match["tail"]) or measured(named):
        return None
    suffix = match["Nu"].strip()
    if tail in _BYTE_WORDS or suffix.endswith(("B", "b", "bytes")):
        value = value if match["nu"].strip() else scaled(done, suffix)
        return Reading(_generic(named) or "bytes", "bytes", value, total, "byte", context(named))
    if (unit := _unit(named)) in UNITS_OF_WORK:
        return Reading(_unit_name(named), "unit", value, total, unit, context(named))
    unit = unit or unit_of(tail.lower())
    return Reading(_generic(named) or unit or "pair", "pair", value, total, unit, context(named))


def label(before: str) -> str:
    """The words right before a number, four at most, none beyond another number (`loss 0.5 step`: `step`).

    A number that ends the words belongs to them: `Epoch 7` labels the bar of the seventh epoch.
    """
    bare = before.rstrip(_LABEL_ENDS).rsplit("]", 1)[-1].rsplit("|", 1)[-1][-60:]
    kept: list[str] = []
    spelled = False
    for token in reversed(bare.split()):
        lettered = any(map(str.isalpha, token))
        if spelled and not lettered:
            break
        spelled = spelled or lettered
        kept.append(token)
        if len(kept) == _LABEL_WORDS_MAX:
            break
    return " ".join(reversed(kept)).lstrip(_LABEL_ENDS) if spelled else ""


def _unit(named: str) -> str:
    """The unit of a label that ends with it (`Epoch`, `global step`): the number is then its value."""
    found = words(_MODE.sub("", named))
    return unit_of(found[-1]) if found else ""


def _unit_name(named: str) -> str:
    """`INFO Training global step` -> `global_step`: the unit, and the word before it if that qualifies it."""
    found = words(_MODE.sub("", named))
    qualified = len(found) > 1 and found[-2] in COUNTER_QUALIFIERS
    return "_".join(found[-2:] if qualified else found[-1:])


def _generic(named: str) -> str:
    """A label that stays the same while its numbers change; a file's name is its own."""
    return _CHANGING.sub(lambda found: "#" if found[0].isdigit() else found[0], named)[:60].strip()
