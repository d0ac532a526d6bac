"""A series of numbers as characters: one line for a report, a few lines for the terminal.

A series longer than the room is put into bins of equal length, each shown by the mean of its finite values. A
value that is not finite leaves a gap, because a hole in a loss curve is news and zero would be a lie.

Never: colour or escape codes; a line longer than the room it was given.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from states.words.wording import number

BLOCKS = "▁▂▃▄▅▆▇█"
ASCII = ".:-=+*#@"
GAP = " "
LEVELS = len(BLOCKS)


def spark(values: Sequence[float], width: int, *, ascii_only: bool = False) -> str:
    """The series on one line of at most `width` characters, oldest first; "" when there is nothing to show.

    The lowest value is the lowest mark; a flat series is drawn low. NaN and infinities are gaps.
    """
    marks = ASCII if ascii_only else BLOCKS
    columns = binned(values, width)
    finite = [value for value in columns if math.isfinite(value)]
    if not finite:
        return ""
    levels = _levels(columns, LEVELS, min(finite), max(finite))
    return "".join(GAP if level is None else marks[level - 1] for level in levels)


def curve(values: Sequence[float], width: int, height: int, *, ascii_only: bool = False) -> list[str]:
    """The series as `height` lines of at most `width` characters, from its highest value down to its lowest.

    Both are written at the axis; a column of several values stands at their mean. [] when nothing in it is
    finite, or when the room is too small for the labels and one column.
    """
    finite = [value for value in values if math.isfinite(value)]
    if not finite or height < 1:
        return []
    low, high = min(finite), max(finite)
    top, bottom = number(high), number(low)
    margin = max(len(top), len(bottom))
    axis = "|" if ascii_only else "┤"
    room = width - margin - len(axis) - 1
    if room < 1:
        return []
    columns = _levels(binned(values, room), height * LEVELS, low, high)
    labels = [top, *[""] * (height - 2), bottom] if height > 1 else [top]
    return [
        f"{label:>{margin}} {axis}{_row(columns, floor, ascii_only)}".rstrip()
        for label, floor in zip(labels, range((height - 1) * LEVELS, -1, -LEVELS), strict=True)
    ]


def binned(values: Sequence[float], width: int) -> list[float]:
    """At most `width` values: the mean of the finite ones of each stretch, NaN where there are none."""
    count = min(width, len(values))
    if count < 1:
        return []
    edges = [len(values) * index // count for index in range(count + 1)]
    return [_mean(values[start:end]) for start, end in pairwise(edges)]


def _mean(values: Sequence[float]) -> float:
    finite = [value for value in values if math.isfinite(value)]
    # Divided before it is summed: two huge losses must not add up to infinity.
    return math.fsum(value / len(finite) for value in finite) if finite else math.nan


def _levels(values: Sequence[float], steps: int, low: float, high: float) -> list[int | None]:
    """Each value as 1 (low) .. steps (high); None for a gap."""
    # Halved, so that the span of the largest floats is still finite.
    span = high / 2 - low / 2
    return [_level((value / 2 - low / 2) / span if span > 0 else value * 0.0, steps) for value in values]


def _level(share: float, steps: int) -> int | None:
    return 1 + round(share * (steps - 1)) if math.isfinite(share) else None


def _row(columns: Sequence[int | None], floor: int, ascii_only: bool) -> str:
    """One line of the curve: the part of each column that lies in the LEVELS above `floor`."""
    marks = ASCII if ascii_only else BLOCKS
    return "".join(
        GAP if level is None or level <= floor else marks[min(level - floor, LEVELS) - 1] for level in columns
    )
