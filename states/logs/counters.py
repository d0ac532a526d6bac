"""Finds the numbers on one line that count work: bars, `n/N` pairs, unit words, percentages, bare numbers.

One line in, readings out; what a series of readings means is judged in `series`. Five shapes cover nearly
all logs (corpus findings 7, 8, 11): a bar or bracket with `n/N`, a unit word beside a number, a percentage,
a running count without a total, a bare counter at the line start.

Never: count attempts, waiting, memory, ports, versions or points of restart as work; scan without bound.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from states.logs.bars import Kind, N, Placed, Reading, bars, has_pair, number, pairs
from states.logs.keyed import FLOAT, Keyed, counted, keyed
from states.logs.shapes import has_digit, per_shape, shape
from states.logs.units import COUNTDOWN_OF_TIME, SETTING_AHEAD, context, denied, measured, unit_of

__all__ = ["Keyed", "keyed", "readings"]

_GLUED = re.compile(
    rf"(?<![\w.,/\-])(?:(?P<n>{N})(?P<sep>[/-]))?(?P<N>{N})(?P<unit>epochs?|batch(?:es)?|iters?|steps?)\b"
)
"""`3/60epoch`, `1-312batch`: a count, or a range done so far, glued to its unit."""

_LISTED = re.compile(r"\b(?P<unit>step|iter|iteration)\"?\s?[:=]\s?[\[(]\d{1,9}, ?(?P<n>\d{1,12})[\])]")
"""`"step": [2, 1200]`: of epoch and step in one, the last counts."""

_GAUGE = re.compile(r"\|.{0,160}(?:MiB ?/|[0-9A-Fa-f]{4}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f])")
"""A row of a table about cards (nvidia-smi, npu-smi): memory and load, no work."""

_ORDINAL = re.compile(
    rf"第\s{{0,2}}(?P<n>{N})(?:\s?/\s?(?P<N>{N}))?\s{{0,2}}(?:个|次)?(?P<unit>轮|步|代|批|迭代|回合|epoch|个)"
    rf"(?:[\s/,，(（]{{0,4}}共\s?(?P<of>{N}))?"
)
_PERCENT = re.compile(r"(?<![\d.,:\-])(?P<pct>\d{1,3}(?:\.\d{1,4})?)\s?%(?![|▕\w])")
_COUNTDOWN = re.compile(
    rf"(?<![\w.])(?P<n>{N}) (?:more (?P<what>\w{{2,20}})|(?P<what2>\w{{2,20}}) (?:left|remaining|to go))\b"
)
_AFTER = re.compile(rf"(?<![\w.,/:\-])(?P<n>{N}) (?:total )?(?P<unit>[A-Za-z]{{3,14}})\b(?!\s?/|\s?per\b)")
_GOAL_AHEAD = re.compile(r"\b(?:for|max|total|of|run|running)\b|训练|共", re.IGNORECASE)
_BARE = re.compile(r"(?:^|\] )\s{0,12}[\[(]?(?P<n>\d{1,12})[\])]?(?:\s|[:,|;])")
_NEAR_CHARS = 40
_SCANNED_CHARS = 4_000
_SIMULATED = re.compile(rf"Time = (?P<t>{FLOAT})s?\s{{0,4}}$")
"""Simulated time, alone on its line: what a solver without a step number counts in."""


class _Possible(NamedTuple):
    """What a shape can hold at all."""

    bars: bool
    pairs: bool
    glued: bool
    percent: bool
    countdown: bool
    counts: bool
    bare: bool


@per_shape
def _possible(of: str) -> _Possible:
    return _Possible(
        bars=any(True for _ in bars(of)),
        pairs=has_pair(of),
        glued=_GLUED.search(of) is not None or _LISTED.search(of) is not None,
        percent="%" in of and _PERCENT.search(of) is not None,
        countdown=_COUNTDOWN.search(of) is not None,
        counts=_AFTER.search(of) is not None,
        bare=_BARE.search(of, 0, 160) is not None,
    )


def readings(text: str, pieces: Sequence[Keyed]) -> list[Reading]:
    """Every number on the line that may count work. `pieces` is what `keyed` found on the same line."""
    if not has_digit(text) or (text[:1] == "|" and _GAUGE.match(text)):
        return []
    possible = _possible(shape(text))
    placed: list[Placed] = [*bars(text)] if possible.bars else []
    placed.extend(_ordinals(text))
    if possible.glued:
        placed.extend(_glued(text))
    if possible.pairs:
        placed.extend([pair for pair in pairs(text) if not _covered(pair.start, placed)])
    found = [one.reading for one in placed]
    found.extend(counted(text, pieces, [(one.start, one.end) for one in placed]))
    if possible.percent:
        found.extend(_percent(text, found))
    if possible.countdown:
        found.extend(_countdowns(text))
    if text.startswith("Time = ") and (simulated := _SIMULATED.match(text)):
        found.append(Reading("time", "word", number(simulated["t"]), None, "time"))
    if all(reading.kind == "word" for reading in found):
        if possible.counts:
            found.extend(_counts(text))
        if possible.bare and (match := _BARE.search(text, 0, 160)) is not None:
            told = bool(pieces) and match[0].lstrip(" ]").startswith("[")
            found.append(Reading("bracket" if told else "bare", "bare", float(match["n"])))
    return found


def _ordinals(text: str) -> Iterator[Placed]:
    for match in _ORDINAL.finditer(text) if "第" in text else ():
        total = match["N"] or match["of"]
        unit = unit_of(match["unit"]) or "item"
        near = context(text[max(0, match.start() - _NEAR_CHARS) : match.start()])
        reading = Reading(unit, "unit", number(match["n"]), number(total) if total else None, unit, near)
        yield Placed(match.start(), match.end(), reading)


def _glued(text: str) -> Iterator[Placed]:
    """`3/60epoch` is 3 of 60; of the range `1-312batch` the end counts. None beside `every`, `per`."""
    for match in _GLUED.finditer(text, 0, _SCANNED_CHARS):
        ahead = text[max(0, match.start() - 16) : match.start()].lower().split()[-1:]
        if SETTING_AHEAD.intersection(ahead):
            continue
        value, total = number(match["N"]), None
        if match["sep"] == "/":
            value, total = number(match["n"]), value
        unit = unit_of(match["unit"])
        yield Placed(match.start(), match.end(), Reading(unit, "unit", value, total, unit))
    if listed := _LISTED.search(text, 0, _SCANNED_CHARS):
        unit = unit_of(listed["unit"])
        yield Placed(listed.start(), listed.end(), Reading(unit, "unit", number(listed["n"]), None, unit))


def _percent(text: str, found: Sequence[Reading]) -> Iterator[Reading]:
    """The first percentage that is no score or load, where neither bar nor meter gave a finer figure."""
    if "%" not in text or any(one.kind in ("bar", "percent") or one.unit == "KiB" for one in found):
        return
    for count, match in enumerate(_PERCENT.finditer(text, 0, _SCANNED_CHARS)):
        before = text[max(0, match.start() - _NEAR_CHARS) : match.start()]
        value = float(match["pct"])
        framed = before.rstrip().endswith("[")
        if value <= 105 and (framed or not measured(before)) and not denied(before):
            yield Reading("percent", "percent", value, 100.0, "percent", context(before))
            return
        if count >= 8:
            return


def _countdowns(text: str) -> Iterator[Reading]:
    """`2 more nodes`, `12 files left`: things to do that become fewer; never seconds or retries."""
    for match in _COUNTDOWN.finditer(text, 0, _SCANNED_CHARS):
        what = (match["what"] or match["what2"]).lower()
        if what not in COUNTDOWN_OF_TIME:
            yield Reading(f"left:{what}", "countdown", number(match["n"]), None, what.removesuffix("s"))


def _counts(text: str) -> Iterator[Reading]:
    """`processed 1200 samples`: a count before its unit; a goal where the words ahead say so."""
    for count, match in enumerate(_AFTER.finditer(text, 0, _SCANNED_CHARS)):
        if count >= 4:
            return
        near = text[max(0, match.start() - 24) : match.end()]
        ahead = near[: match.start() - match.end()].split()[-1:]
        if (
            (unit := unit_of(match["unit"].lower()))
            and not denied(near)
            and not SETTING_AHEAD.intersection(ahead)
        ):
            goal = _GOAL_AHEAD.search(near)
            kind: Kind = "quota" if goal else "word"
            yield Reading(f"count:{unit}", kind, number(match["n"]), None, unit, context(text[:60]))


def _covered(at: int, placed: Sequence[Placed]) -> bool:
    return any(one.start <= at < one.end for one in placed)
