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
_DIGITS_MATTER = re.compile(r"\.|[A-Za-z]\d|[^\x00-\x7f]")
"""In a label: a file's name, a word with a number in it."""

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
    for bar in _bar_slots(shape(text)):
        yield Placed(bar.start, bar.end, _bar(text, bar))
    if " + " in text and (stage := _RUNNING.search(text)):
        named = label(text[max(0, stage.start() - 100) : stage.start()].rstrip(" =>"))
        reading = Reading(_generic(named) or "tasks", "pair", number(stage["n"]), number(stage["N"]), "task")
        yield Placed(stage.start(), stage.end(), reading)
    if (meter := _meter(text)) is not None:
        yield Placed(0, len(text), meter)


def pairs(text: str) -> Iterator[Placed]:
    """Every `n/N` and `n of N` that may count: no dates, paths, scores, memory figures or retries."""
    for slot in _pair_slots(shape(text)):
        if (slot.meant is not None or not slot.alike) and (reading := _pair(text, slot)) is not None:
            yield Placed(slot.start, slot.end, reading)
    if "bytes" in text and (found := _RECEIVED.search(text)):
        reading = Reading("bytes", "bytes", number(found["n"]), number(found["N"]), "byte", "load")
        yield Placed(found.start(), found.end(), reading)


class _Slot(NamedTuple):
    """A bar or a pair of a shape: where its numbers stand, and what it counts.

    alike: the label holds nothing whose digits matter, so `meant`, a reading without its numbers, is true of all
    lines of the shape (None: no count).
    """

    start: int
    end: int
    done: tuple[int, int]
    goal: tuple[int, int] | None
    done_suffix: str
    goal_suffix: str
    tail: str
    alike: bool
    meant: Reading | None
    dated: bool = False


@per_shape
def _bar_slots(of: str) -> tuple[_Slot, ...]:
    found = list(_TQDM.finditer(of)) if "%" in of else []
    goals = [match.span("N") for match in found]
    if "[" in of and (opened := _TQDM_OPEN.search(of)):
        found.append(opened)
    slots = []
    for match, goal in itertools.zip_longest(found, goals):
        named = _bar_label(of, match.start())
        suffix = (match["Nu"] or "") if goal else ""
        meant = _bar_meant(named, goal is not None)
        alike = _DIGITS_MATTER.search(named) is None
        slots.append(
            _Slot(
                match.start(), match.end(), match.span("n"), goal, match["nu"] or "", suffix, "", alike, meant
            )
        )
    return tuple(slots)


def _bar_label(text: str, start: int) -> str:
    return label(text[max(0, start - 100) : start])


def _bar_meant(named: str, whole: bool) -> Reading:
    name = f"bar:{_generic(named)}" if named or not whole else "bar/"
    return Reading(name, "bar", 0.0, None, _unit(named), context(named))


def _bar(text: str, slot: _Slot) -> Reading:
    goal = slot.goal
    meant = slot.meant if slot.alike else None
    if meant is None:
        meant = _bar_meant(_bar_label(text, slot.start), goal is not None)
    total = scaled(text[goal[0] : goal[1]], slot.goal_suffix) if goal else None
    name = f"bar/{total:g}" if meant.name == "bar/" else meant.name
    done = scaled(text[slot.done[0] : slot.done[1]], slot.done_suffix)
    return Reading(name, "bar", done, total, meant.unit, meant.context)


@per_shape
def _pair_slots(of: str) -> tuple[_Slot, ...]:
    slots = []
    for match in itertools.islice(_PAIR.finditer(of), NUMBERS_PER_LINE_MAX):
        start, end = match.span()
        slot = _Slot(
            start, end, match.span("n"), match.span("N"), match["nu"], match["Nu"], match["tail"], False, None,
            _DATE_PAIR.match(of, start) is not None,
        )  # fmt: skip
        alike = _DIGITS_MATTER.search(_pair_label(of, start)) is None
        slots.append(slot._replace(alike=alike, meant=_pair_meant(of, slot) if alike else None))
    return tuple(slots)


def has_pair(of: str) -> bool:
    """Whether a line of this shape could hold a pair at all."""
    return bool(_pair_slots(of)) or ("bytes" in of and _RECEIVED.search(of) is not None)


def number(text: str) -> float:
    """The value of what `N` matches."""
    return float(text.replace(",", "") if "," in text else text)


def scaled(text: str, suffix: str | None) -> float:
    """A number with its suffix: `6.41` with `k` is 6410, with `Ki` 6563.84."""
    if not suffix:
        value = number(text)
        return round(value, 6) if "." in text else value
    suffix = suffix.strip()
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


def _pair(text: str, slot: _Slot) -> Reading | None:
    goal = slot.goal or slot.done
    done = text[slot.done[0] : slot.done[1]]
    value, total = scaled(done, slot.done_suffix), scaled(text[goal[0] : goal[1]], slot.goal_suffix)
    if total <= 0 or value > total * 1.2 + 1 or (slot.dated and _DATE_PAIR.match(text, slot.start)):
        return None
    meant = slot.meant if slot.alike else _pair_meant(text, slot)
    if meant is None:
        return None
    if meant.kind == "bytes" and not slot.done_suffix.strip():
        value = scaled(done, slot.goal_suffix.strip())
    return Reading(meant.name, meant.kind, value, total, meant.unit, meant.context)


def _pair_label(text: str, start: int) -> str:
    before = text[max(0, start - 60) : start]
    return label(_SHARE.sub("", before) if "%" in before else before)


def _pair_meant(text: str, slot: _Slot) -> Reading | None:
    """What a pair counts, as a reading without its numbers; None for what is no count."""
    before = text[max(0, slot.start - 60) : slot.start]
    named, tail, suffix = _pair_label(text, slot.start), slot.tail.strip(), slot.goal_suffix.strip()
    if _STATES.match(text, slot.end - len(slot.tail)):
        return None
    if denied(before[-32:] + slot.tail) or measured(named):
        return None
    if tail in _BYTE_WORDS or suffix.endswith(("B", "b", "bytes")):
        return Reading(_generic(named) or "bytes", "bytes", 0.0, None, "byte", context(named))
    if (unit := _unit(named)) in UNITS_OF_WORK:
        return Reading(_unit_name(named), "unit", 0.0, None, unit, context(named))
    unit = unit or unit_of(tail.lower())
    return Reading(_generic(named) or unit or "pair", "pair", 0.0, None, unit, context(named))


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
