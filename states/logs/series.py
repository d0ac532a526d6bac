"""What the readings of many lines become: one series per counter, with segments, ranks and recency.

A counter that falls starts a new segment (resume, second run, next epoch's inner bar); small falls are ranks
out of step and are none (finding 7: falls that are fine). A goal that moves was a counter after all.

Never: keep more than `VALUES_MAX` values of a series.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from states.logs.bars import Kind, Reading
from states.logs.units import Context
from states.reading import Counter

VALUES_MAX = 512
ANEW_SHARE, BROKEN_SHARE = 0.01, 0.95
"""A fall to below the one from below the other, as shares of the total, is a start from the beginning."""

RISES_MIN = 3
"""Distinct values before an unnamed rising number is believed to count something."""


@dataclass
class Series:
    """All readings of one counter in a piece of a log, oldest first; `moves` are (value, line index)."""

    name: str
    kind: Kind
    unit: str
    context: Context = ""
    total: float | None = None
    value: float = 0.0
    first: float = 0.0
    first_index: int = 0
    last_index: int = 0
    last_line: int = 0
    moved_index: int = 0
    moved_line: int = 0
    seen: int = 0
    rises: int = 0
    segments: int = 0
    falls_at: list[int] = field(default_factory=list)
    moves: deque[tuple[float, int]] = field(default_factory=lambda: deque(maxlen=VALUES_MAX))
    by_rank: dict[str, float] = field(default_factory=dict)
    fractional: bool = False
    anew_at: list[int] = field(default_factory=list)
    """Where it fell back to its very start before it had reached its total."""

    def add(self, reading: Reading, index: int, line: int, rank: str) -> bool:
        """Takes one more reading; True if the counter moved by it."""
        value = reading.value if self.kind != "countdown" else self._counted_down(reading.value)
        before = self.by_rank.get(rank)
        self.total = reading.total if reading.total is not None else self.total
        self.context = reading.context
        self.fractional = self.fractional or reading.fractional
        self.seen += 1
        self.last_index, self.last_line = index, line
        if self.seen == 1:
            self.first, self.first_index = value, index
            return self._move(value, index, line, rank)
        if before is not None and is_fall(before, value):
            self.segments += 1
            if self.total and value <= ANEW_SHARE * self.total and before < BROKEN_SHARE * self.total:
                self.anew_at.append(index)
            self.falls_at.append(index)
            del self.falls_at[:-VALUES_MAX]
            self.by_rank.clear()
            return self._move(value, index, line, rank)
        self.by_rank[rank] = max(value, before) if before is not None else value
        if value > self.value:
            self.rises += 1
            return self._move(value, index, line, rank)
        return False

    def counter(self) -> Counter:
        """The series as the counter it stands for at its end."""
        return Counter(
            name=self.name, value=self.value, total=self.total, unit=self.unit, line=self.moved_line
        )

    def spacing(self) -> float:
        """Lines between two readings, on average."""
        return (self.last_index - self.first_index) / (self.seen - 1) if self.seen > 1 else 0.0

    def _move(self, value: float, index: int, line: int, rank: str) -> bool:
        self.value = value
        self.by_rank[rank] = value
        if len(self.by_rank) > VALUES_MAX:
            self.by_rank = {rank: value}
        self.moves.append((value, index))
        self.moved_index, self.moved_line = index, line
        return True

    def _counted_down(self, left: float) -> float:
        """A number of things left, as the number of things done; the most ever seen left is the total."""
        if self.total is None or left > self.total:
            self.total = left
        return self.total - left


def is_fall(before: float, value: float) -> bool:
    """Whether a counter started again: it fell by more than ranks run apart, or to its very start."""
    drop = before - value
    if drop <= 0:
        return False
    return drop > max(2.0, 0.005 * before) or value <= 1 < drop


def is_real(series: Series) -> bool:
    """Whether a series may count work at all: goals and unnamed numbers must be seen rising first."""
    if series.kind == "quota":
        return series.rises >= 1
    if series.kind == "countdown":
        return series.rises >= 1
    if series.kind == "word":
        if not series.unit and not is_regular(series):
            return False
        return series.rises >= 1 and series.segments <= max(1, series.rises // 4)
    if series.kind == "bare":
        return is_regular(series) and series.segments == 0 and series.seen <= 2 * series.rises + 2
    return True


def is_regular(series: Series) -> bool:
    """Whether a number rises by the same amount most of the time, as counters do and process ids do not.

    One in brackets with figures behind it (`[200] loss=2.1`) is believed a little sooner.
    """
    if series.rises < RISES_MIN - (series.name == "bracket"):
        return False
    values = [value for value, _ in series.moves]
    gains = [after - before for before, after in pairwise(values) if after > before]
    return 2 * Tally(gains).most_common(1)[0][1] >= len(gains)


def totals(series: Iterable[Series]) -> dict[str, float]:
    """Goals by unit from headers and settings (`Total optimization steps = 900`): those that never moved.

    The largest wins: a goal of one stage is never larger than that of the whole.
    """
    goals: dict[str, float] = {}
    for one in series:
        if one.kind == "quota" and one.rises == 0 and one.unit and one.value > 0:
            goals[one.unit] = max(goals.get(one.unit, 0.0), one.value)
    return goals


def with_total(series: Series, goals: dict[str, float]) -> None:
    """Gives a counter without a total the goal of its unit, where the value can still belong to it."""
    goal = goals.get(series.unit)
    fitting = series.kind in ("unit", "quota") or series.unit == "KiB"
    if fitting and series.total is None and goal is not None and series.value <= goal * 1.1:
        series.total = goal


def share_totals(series: Sequence[Series]) -> None:
    """A step counter without a total takes that of a bar that stands at the same value.

    A bar may round what it shows (`6.4k`), so one percent apart is the same.
    """
    bars = [one for one in series if one.kind in ("bar", "pair") and one.total and one.value > 0]
    for one in series:
        if one.unit != "step" or one.kind not in ("unit", "quota") or one.total is not None or one.value < 10:
            continue
        same = [bar.total for bar in bars if abs(bar.value - one.value) <= 0.011 * one.value]
        if len(same) == 1:
            one.total = same[0]
