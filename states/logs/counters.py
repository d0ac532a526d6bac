"""Finds the numbers on one line that count work: bars, `n/N` pairs, unit words, percentages, bare numbers.

One line in, readings out; what a series of readings means is judged in `series`. Five shapes cover nearly
all logs (corpus findings 7, 8, 11): a bar or bracket with `n/N`, a unit word beside a number, a percentage,
a running count without a total, a bare counter at the line start.

Never: count attempts, waiting, memory, ports, versions or points of restart as work; scan without bound.
"""

from __future__ import annotations

import functools
import itertools
import math
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from states.logs.bars import NUMBERS_PER_LINE_MAX, Kind, N, Placed, Reading, bars, has_pair, number, pairs
from states.logs.shapes import has_digit, per_shape, shape
from states.logs.units import (
    COUNTDOWN_OF_TIME,
    GOAL_WORDS,
    POSITION_WORDS,
    SETTING_AHEAD,
    SETTING_WORDS,
    TOTAL_WORDS,
    UNITS_OF_WORK,
    Context,
    context,
    countable,
    denied,
    from_source_file,
    is_plural,
    measured,
    restored,
    unit_of,
    words,
)

_FLOAT = rf"[-+]?(?:{N}|\.\d{{1,20}})(?:[eE][-+]?\d{{1,3}})?"
_ODD_FLOAT = r"[-+]?(?:nan|NaN|NAN|inf|Inf|INF|[Ii]nfinity)(?![A-Za-z])"
_KEYED = re.compile(
    r"(?<![\w/.\-])(?P<key>[A-Za-z_\u4e00-\u9fff][\w/.@\-]{0,60})(?:\((?P<note>[^()]{0,24})\))?[\"'*`]{0,2}"
    r"(?P<sep>\s{0,24}[:=|：]{1,2}\s{0,24}|\s{0,8}\.{3,80}\s{0,4}|\s{1,12}#?|\s{0,2}[\[(#]\s{0,6})"
    r"[\"']?\[?(?:(?:np|torch|jnp)\.\w{1,9}\(|[Tt]ensor\(|Array\()?"
    rf"(?P<value>{_FLOAT}|{_ODD_FLOAT})"
)
_LOSS_AT = re.compile(
    rf"(?P<key>\b\w{{0,24}}[Ll]oss) (?:at|after|for|in|of) (?P<of>[A-Za-z]{{2,12}})\s{{0,4}}#?\s{{0,4}}{N}\s{{0,4}}"
    rf"[:=]\s{{0,4}}(?P<value>{_FLOAT}|{_ODD_FLOAT})"
)
"""`loss at step 4000 : 52.9`: the step stands between the loss and its value."""

_GLUED = re.compile(
    rf"(?<![\w.,/\-])(?:(?P<n>{N})(?P<sep>[/-]))?(?P<N>{N})(?P<unit>epochs?|batch(?:es)?|iters?|steps?)\b"
)
"""`3/60epoch`, `1-312batch`: a count, or a range done so far, glued to its unit."""

_GAUGE = re.compile(r"\|.{0,160}(?:MiB ?/|[0-9A-Fa-f]{4}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f])")
"""A row of a table about cards (nvidia-smi, npu-smi): memory and load, no work."""

_AHEAD = re.compile(r"(?:[A-Za-z_\u4e00-\u9fff]{1,24} ){1,2}$")
_MEASURE = re.compile(r"\s?(?:ms|s|sec|secs|seconds|min|minutes|h|hours|[kKMG]i?B|it/s|%|x)(?![A-Za-z])|-\d")
_ORDINAL = re.compile(
    rf"第\s{{0,2}}(?P<n>{N})(?:\s?/\s?(?P<N>{N}))?\s{{0,2}}(?:个|次)?(?P<unit>轮|步|代|批|迭代|回合|epoch|个)"
    rf"(?:[\s/,，(（]{{0,4}}共\s?(?P<of>{N}))?"
)
_PERCENT = re.compile(r"(?<![\d.,:\-])(?P<pct>\d{1,3}(?:\.\d{1,4})?)\s?%(?![|▕\w])")
_COUNTDOWN = re.compile(
    rf"(?<![\w.])(?P<n>{N}) (?:more (?P<what>\w{{2,20}})|(?P<what2>\w{{2,20}}) (?:left|remaining|to go))\b"
)
_AFTER = re.compile(rf"(?<![\w.,/:\-])(?P<n>{N}) (?P<unit>[A-Za-z]{{3,14}})\b(?!\s?/|\s?per\b)")
_GOAL_AHEAD = re.compile(r"\b(?:for|max|total|of|run|running)\b|训练|共", re.IGNORECASE)
_BARE = re.compile(r"(?:^|\] )\s{0,12}[\[(]?(?P<n>\d{1,12})[\])]?(?:\s|[:,|;])")
_NEAR_CHARS = 40
_SCANNED_CHARS = 4_000
_SIMULATED = re.compile(rf"Time = (?P<t>{_FLOAT})s?\s{{0,4}}$")
"""Simulated time, alone on its line: what a solver without a step number counts in."""


class Keyed(NamedTuple):
    """A key with a number: `key` as written, `before` the words ahead of it, `value` may be NaN or infinite.

    start, end: the span on the line. sep: the sign between key and value, " " if there is none.
    """

    key: str
    before: str
    value: float
    start: int
    end: int
    sep: str = " "


def keyed(text: str) -> list[Keyed]:
    """All `key: number` pieces of a line, at most `NUMBERS_PER_LINE_MAX`."""
    found: list[Keyed] = []
    for start, key_end, note, sep, value, end in _keyed_spans(shape(text)):
        before = text[max(0, start - _NEAR_CHARS) : start] + note
        found.append(Keyed(text[start:key_end], before, number(text[value:end]), start, end, sep))
    if "oss " in text and (late := _LOSS_AT.search(text, 0, _SCANNED_CHARS)):
        ahead = text[max(0, late.start() - _NEAR_CHARS) : late.start()]
        found.append(Keyed(late["key"], ahead, number(late["value"]), late.start("value"), late.end(), ":"))
    return found


@per_shape
def _keyed_spans(of: str) -> tuple[tuple[int, int, str, str, int, int], ...]:
    """(start, end of the key, note, sign, start of the value, end) of every `key: number` in a shape."""
    found = []
    for match in itertools.islice(_KEYED.finditer(of), NUMBERS_PER_LINE_MAX):
        note = f"{match['note']} " if match["note"] and match["note"].isalpha() else ""
        sep = match["sep"].strip()[:1].replace("：", ":") or " "
        found.append((match.start(), match.end("key"), note, sep, match.start("value"), match.end()))
    return tuple(found)


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
        glued=_GLUED.search(of) is not None,
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
    found.extend(_units(text, pieces, placed))
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


def _units(text: str, pieces: Sequence[Keyed], placed: Sequence[Placed]) -> Iterator[Reading]:
    live = any("loss" in piece.key.lower() or "损失" in piece.key for piece in pieces)
    for piece in pieces:
        if _covered(piece.end - 1, placed) or not math.isfinite(piece.value) or piece.value < 0:
            continue
        if (reading := _unit_reading(text, piece, live)) is not None:
            yield reading


def _unit_reading(text: str, piece: Keyed, live: bool) -> Reading | None:
    """A keyed number as a reading: by its unit word, or as an unnamed word whose value may turn out to rise.

    live: the line carries a loss, so a plural beside it counts (`steps: 900 loss: 2.1`) and is no setting.
    """
    around = _around(shape(piece.before))
    meant = _meant(piece.key, around, piece.sep, live)
    whole = piece.value.is_integer()
    if meant is None or not (whole or meant.unit == "epoch") or _MEASURE.match(text, piece.end):
        return None
    if meant.unit in UNITS_OF_WORK and restored(text[max(0, piece.start - 28) : piece.start]):
        return None
    written = text[piece.start + len(piece.key) : piece.end].lstrip(" .:=[('\"") if meant.unit else ""
    return meant._replace(value=piece.value, fractional="." in written)


@per_shape
def _around(of: str) -> tuple[tuple[str, ...], str]:
    """(one or two words right before a key, the last piece before it), in lower case; of a shape."""
    found = _AHEAD.search(of)
    ahead = tuple(word.lower() for word in found[0].split()) if found else ()
    return ahead, "".join(of.split()[-1:])


@functools.lru_cache(maxsize=4_096)
def _meant(key: str, around: tuple[tuple[str, ...], str], sep: str, live: bool) -> Reading | None:
    """What a key counts, as a reading without its value; None for what is no count."""
    ahead, last = list(around[0]), around[1]
    tokens = words(key)
    if ahead and tokens and set(tokens) <= POSITION_WORDS:
        tokens = [*words(ahead.pop()), *tokens]
    near = " ".join([*ahead, key])
    if not tokens or from_source_file(key) or denied(near):
        return None
    base = len(tokens)
    while base > 1 and tokens[base - 1] in POSITION_WORDS:
        base -= 1
    unit = unit_of(tokens[base - 1])
    if unit:
        return _judged(tokens, base, ahead, unit, sep, live, context(f"{near} {last}"))
    if not countable(key) or measured(near):
        return None
    return Reading("_".join([*ahead[-1:], *tokens]), "word", 0.0, None, "", context(near))


def _judged(
    tokens: list[str], base: int, ahead: list[str], unit: str, sep: str, live: bool, near: Context
) -> Reading | None:
    """A unit word with its qualifiers: a counter, a goal, or a setting (None)."""
    assigned = sep in ":=.|" and bool(ahead)
    qualifiers = {*tokens[: base - 1], *(ahead if assigned else ())}
    if qualifiers & SETTING_WORDS or (ahead and ahead[-1] in SETTING_AHEAD):
        return None
    hints = {*qualifiers, *tokens[base:], *ahead[-1:]}
    plural = is_plural(tokens[base - 1])
    goal = bool(hints & TOTAL_WORDS) or (not live and (plural or bool(hints & GOAL_WORDS)))
    name = "_".join([*(ahead if assigned and goal else ()), *tokens])
    kind: Kind = "word" if unit not in UNITS_OF_WORK else "quota" if goal else "unit"
    return Reading(name, kind, 0.0, None, unit, near)


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
