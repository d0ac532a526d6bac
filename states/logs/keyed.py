"""Every `key: number` on a line, with what the key counts: a unit of work, a goal, an unnamed number that may rise.

What does not depend on the digits is worked out once per shape of a line (`shapes`); a line then only gives its
numbers.

Never: read a value's meaning from its size; take a setting, an address or a measure for a count.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from states.logs.bars import NUMBERS_PER_LINE_MAX, Kind, N, Reading, number
from states.logs.shapes import per_shape, shape
from states.logs.units import (
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

FLOAT = rf"[-+]?(?:{N}|\.\d{{1,20}})(?:[eE][-+]?\d{{1,3}})?"
_ODDFLOAT = r"[-+]?(?:nan|NaN|NAN|inf|Inf|INF|[Ii]nfinity)(?![A-Za-z])"
_KEYED = re.compile(
    r"(?<![\w/.\-])(?P<key>[A-Za-z_\u4e00-\u9fff][\w/.@\-]{0,60})(?:\((?P<note>[^()]{0,24})\))?[\"'*`]{0,2}"
    r"(?P<sep>\s{0,24}[:=|：]{1,2}\s{0,24}|\s{0,8}\.{3,80}\s{0,4}|\s{1,12}#?|\s{0,2}[\[(#]\s{0,6})"
    r"[\"']?\[?(?:(?:np|torch|jnp)\.\w{1,9}\(|[Tt]ensor\(|Array\()?"
    rf"(?P<value>{FLOAT}|{_ODDFLOAT})"
)
_LOSS_AT = re.compile(
    rf"(?P<key>\b\w{{0,24}}[Ll]oss) (?:at|after|for|in|of) (?P<of>[A-Za-z]{{2,12}})\s{{0,4}}#?\s{{0,4}}{N}\s{{0,4}}"
    rf"[:=]\s{{0,4}}(?P<value>{FLOAT}|{_ODDFLOAT})"
)
"""`loss at step 4000 : 52.9`: the step stands between the loss and its value."""

_AHEAD = re.compile(r"(?:[A-Za-z_\u4e00-\u9fff]{1,24} ){1,2}$")
_MEASURE = re.compile(r"\s?(?:ms|s|sec|secs|seconds|min|minutes|h|hours|[kKMG]i?B|it/s|%|x)(?![A-Za-z])|-\d")
_NEAR_CHARS = 40
_RESTORED_CHARS = 28
_SCANNED_CHARS = 4_000
_DIGIT = re.compile(r"\d")


class Slot(NamedTuple):
    """One `key: number` of a shape: where it stands, and what the key counts whatever the number is.

    key: the key itself if it holds no digit, so that `meant` is true of all lines of the shape; else "". meant: a
    reading without its value; None for what is no count. pointed: the number is written with a point.
    """

    start: int
    key_end: int
    value: int
    end: int
    note: str
    sep: str
    key: str
    meant: Reading | None
    pointed: bool


class Keyed(NamedTuple):
    """A key with a number: `key` as written, `before` the words ahead of it, `value` may be NaN or infinite.

    start, end: the span on the line. sep: the sign between key and value, " " if there is none.
    slot: what its place in the shape tells.
    """

    key: str
    before: str
    value: float
    start: int
    end: int
    sep: str = " "
    slot: Slot | None = None


def keyed(text: str) -> list[Keyed]:
    """All `key: number` pieces of a line, at most `NUMBERS_PER_LINE_MAX`."""
    found = []
    for slot in _slots(shape(text)):
        start, key_end, at, end, note, sep, key = slot[:7]
        before = text[start - _NEAR_CHARS if start > _NEAR_CHARS else 0 : start] + note
        value = text[at:end]
        figure = float(value.replace(",", "") if "," in value else value)
        found.append(_new_keyed((key or text[start:key_end], before, figure, start, end, sep, slot)))
    if "oss " in text and (late := _LOSS_AT.search(text, 0, _SCANNED_CHARS)):
        ahead = text[max(0, late.start() - _NEAR_CHARS) : late.start()]
        found.append(Keyed(late["key"], ahead, number(late["value"]), late.start("value"), late.end(), ":"))
    return found


_new_keyed = functools.partial(tuple.__new__, Keyed)


def counted(text: str, pieces: Sequence[Keyed], covered: Sequence[tuple[int, int]]) -> Iterator[Reading]:
    """The readings that keyed numbers give. covered: spans that other readings took already."""
    live: bool | None = None
    for piece in pieces:
        slot = piece.slot
        if slot is not None and slot[7] is None and slot[6]:
            continue
        if not 0 <= piece.value < _INFINITE or any(start <= piece.end - 1 < end for start, end in covered):
            continue
        if slot is not None and slot.key:
            meant, pointed = slot.meant, slot.pointed
        else:
            live = _is_live(pieces) if live is None else live
            meant, pointed = _meant_here(text, piece, live), "." in _written(text, piece)
        if meant is not None and (meant.unit == "epoch" or piece.value.is_integer()):
            yield meant._replace(value=piece.value, fractional=bool(meant.unit) and pointed)


_INFINITE = float("inf")


def _is_live(pieces: Sequence[Keyed]) -> bool:
    """Does the line carry a loss? A plural beside it counts (`steps: 900 loss: 2.1`) and is no setting."""
    return any("loss" in piece.key.lower() or "损失" in piece.key for piece in pieces)


@per_shape
def _slots(of: str) -> tuple[Slot, ...]:
    """All `key: number` of a shape."""
    matches = list(itertools.islice(_KEYED.finditer(of), NUMBERS_PER_LINE_MAX))
    live = any("loss" in match["key"].lower() or "损失" in match["key"] for match in matches)
    live = live or ("oss " in of and _LOSS_AT.search(of, 0, _SCANNED_CHARS) is not None)
    return tuple(_slot(of, match, live) for match in matches)


def _slot(of: str, match: re.Match[str], live: bool) -> Slot:
    note = f"{match['note']} " if match["note"] and match["note"].isalpha() else ""
    sep = match["sep"].strip()[:1].replace("：", ":") or " "
    start, key_end, end = match.start(), match.end("key"), match.end()
    before = of[max(0, start - _NEAR_CHARS) : start] + note
    piece = Keyed(match["key"], before, 0.0, start, end, sep)
    key = match["key"] if _DIGIT.search(match["key"]) is None else ""
    meant = _meant_here(of, piece, live) if key else None
    return Slot(start, key_end, match.start("value"), end, note, sep, key, meant, "." in _written(of, piece))


def _written(text: str, piece: Keyed) -> str:
    return text[piece.start + len(piece.key) : piece.end].lstrip(" .:=[('\"")


def _meant_here(text: str, piece: Keyed, live: bool) -> Reading | None:
    """What a key counts at its place on a line: not beside a measure, nor where a run was resumed."""
    meant = _meant(piece.key, _around(shape(piece.before)), piece.sep, live)
    if meant is None or _MEASURE.match(text, piece.end):
        return None
    near = text[max(0, piece.start - _RESTORED_CHARS) : piece.start]
    return None if meant.unit in UNITS_OF_WORK and restored(near) else meant


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
