"""Time as logs write it: stamps on lines (for differences only), durations (`1:12:40`, `2 days, 3:20:05`).

A log's clock has no zone and often no year, sometimes no date, so only differences between two stamps of one
log are ever used. Time-only clocks are unwrapped at midnight.

Never: compare a log's clock with any other clock; guess a zone.
"""

from __future__ import annotations

import re
from collections import Counter as Tally
from collections.abc import Sequence
from datetime import date
from typing import NamedTuple

from states.logs.shapes import per_shape, shape

_SEARCH_CHARS = 160
_HALF_WRAP_S = 6 * 3600.0

_TIME = r"(?P<h>[01]\d|2[0-3]):(?P<mi>[0-5]\d):(?P<s>[0-5]\d)(?:[.,](?P<f>\d{1,9}))?(?![\d:])"
_DATED = re.compile(
    r"(?<![\d.])(?:(?P<y>(?:19|20)\d\d)[-/.](?P<mo>[01]?\d)[-/.](?P<d>[0-3]?\d)[T \t]{1,2}"
    r"|(?P<p>[0-3]?\d)[-/](?P<q>[0-3]?\d)(?:[-/](?:\d{4}|\d\d))?[ T]"
    r"|[IWEF](?P<gm>[01]\d)(?P<gd>[0-3]\d) {1,2}"
    r"|(?P<mon>Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
    r" {1,2}(?P<md>[0-3]?\d),? {1,2}(?:20\d\d )?)" + _TIME
)
_TIME_ONLY = re.compile(r"[^\w]{0,3}" + _TIME)
_UNIX = re.compile(r"(?<![\d.])(?:(?P<ms>1[4-9]\d{11})|(?P<sec>1[4-9]\d{8}\.\d{1,6}))(?![\d.])")
_OTHER_DIGIT = re.compile(r"(?![0-9])\d")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")

_NUMBER = r"\d{1,9}(?:\.\d{1,6})?"
DURATION = (
    r"(?:\d{1,5} ?(?:days?|d|天)[, ]{0,3})?\d{1,6}:\d\d(?::\d\d)?(?:\.\d{1,6})?"
    rf"|{_NUMBER} ?(?:days?|d|天)(?:[, ]{{0,2}}{_NUMBER} ?(?:hours?|hrs?|h|小时))?"
    rf"(?:[, ]{{0,2}}{_NUMBER} ?(?:minutes?|mins?|m|分钟?))?"
    rf"(?:[, ]{{0,2}}{_NUMBER} ?(?:seconds?|secs?|s|秒))?(?![A-Za-z])"
    rf"|{_NUMBER} ?(?:hours?|hrs?|h|小时)(?:[, ]{{0,2}}{_NUMBER} ?(?:minutes?|mins?|m|分钟?))?"
    rf"(?:[, ]{{0,2}}{_NUMBER} ?(?:seconds?|secs?|s|秒))?(?![A-Za-z])"
    rf"|{_NUMBER} ?(?:minutes?|mins?|m|分钟?)(?:[, ]{{0,2}}{_NUMBER} ?(?:seconds?|secs?|s|秒))?(?![A-Za-z])"
    rf"|{_NUMBER} ?(?:seconds?|secs?|s|秒)(?![A-Za-z/])"
)
"""Pattern of one duration; `duration_s` reads what it matches."""

_COLONS = re.compile(r"(\d{1,6}):(\d\d)(?::(\d\d))?(\.\d{1,6})?")
_UNITS = re.compile(rf"({_NUMBER}) ?(days?|d|天|hours?|hrs?|h|小时|minutes?|mins?|m|分|seconds?|secs?|s|秒)")
_UNIT_S = {"d": 86400.0, "天": 86400.0, "h": 3600.0, "小": 3600.0, "m": 60.0, "分": 60.0, "s": 1.0, "秒": 1.0}


class Stamp(NamedTuple):
    """A point on a log's own clock. `kind` tells clocks of different shape apart; only like is subtracted."""

    kind: str
    seconds: float


def stamp(text: str) -> Stamp | None:
    """The first time stamp near the start of a line, or None. Seconds count from an arbitrary day."""
    if not _may_hold(shape(text[: _SEARCH_CHARS + 40])):
        return None
    if found := _DATED.search(text, 0, _SEARCH_CHARS):
        day = _day(found)
        if day is not None:
            return Stamp("dated" if found["y"] else "yearless", day * 86400.0 + _time_of_day(found))
    if found := _TIME_ONLY.match(text):
        return Stamp("time", _time_of_day(found))
    if found := _UNIX.search(text, 0, _SEARCH_CHARS):
        return Stamp("unix", float(found["sec"]) if found["sec"] else float(found["ms"]) / 1000.0)
    return None


@per_shape
def _may_hold(of: str) -> bool:
    """Whether a line of this shape can hold a stamp at all."""
    if "00:00:00" in of or "0000000000." in of or "0000000000000" in of:
        return True
    return not of.isascii() and _OTHER_DIGIT.search(of) is not None


def clock(stamps: Sequence[Stamp | None]) -> list[float | None]:
    """For every line the time of the latest stamp at or before it, on the commonest clock of the piece."""
    kinds = Tally(found.kind for found in stamps if found)
    if not kinds:
        return [None] * len(stamps)
    kind = kinds.most_common(1)[0][0]
    times: list[float | None] = []
    now: float | None = None
    for found in stamps:
        if found and found.kind == kind:
            now = _unwrapped(found.seconds, now) if kind == "time" else found.seconds
        times.append(now)
    return times


def duration_s(text: str) -> float | None:
    """Seconds of a duration as `DURATION` matches it; None if there is no number in it."""
    if colons := _COLONS.search(text):
        first, second, third, fraction = colons.groups()
        parts = [int(first), int(second)] + ([int(third)] if third else [])
        total = 0.0
        for part in parts:
            total = total * 60 + part
        days = _UNITS.match(text.lstrip()) if "d" in text or "天" in text else None
        ahead = float(days[1]) * 86400.0 if days and days[2][0] in "d天" else 0.0
        return ahead + total + (float(fraction) if fraction else 0.0)
    pieces = _UNITS.findall(text)
    return sum(float(value) * _UNIT_S[unit[0]] for value, unit in pieces) if pieces else None


def _time_of_day(found: re.Match[str]) -> float:
    fraction = float("0." + found["f"]) if found["f"] else 0.0
    return int(found["h"]) * 3600 + int(found["mi"]) * 60 + int(found["s"]) + fraction


def _day(found: re.Match[str]) -> int | None:
    if found["y"]:
        year, month, day = int(found["y"]), int(found["mo"]), int(found["d"])
    elif found["p"]:
        year, month, day = 2000, int(found["p"]), int(found["q"])
        if month > 12:
            month, day = day, month
    elif found["gm"]:
        year, month, day = 2000, int(found["gm"]), int(found["gd"])
    else:
        year, month, day = 2000, _MONTHS.index(found["mon"]) + 1, int(found["md"])
    try:
        return date(year, month, day).toordinal()
    except ValueError:
        return None


def _unwrapped(seconds: float, before: float | None) -> float:
    """A time of day as a running clock: a fall of hours is midnight, a small one is ranks out of step."""
    if before is None:
        return seconds
    running = before - before % 86400.0 + seconds
    return running + 86400.0 if running < before - _HALF_WRAP_S else running
