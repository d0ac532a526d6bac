"""A series as characters: what the marks mean, and that odd series never break the line.

Never: compare with a picture where a property says it better.
"""

from __future__ import annotations

import math
from itertools import product

import pytest

from states.words.sparkline import ASCII, BLOCKS, GAP, curve, spark

NAN = math.nan
ODD = (NAN, math.inf, -math.inf, 0.0, 1.0, 1.7e308, -1.7e308, 5e-324)
SERIES = [values for length in range(5) for values in product(ODD, repeat=length)]
"""Every series of up to four odd values."""


def test_spark_runs_from_the_lowest_mark_to_the_highest() -> None:
    assert spark([1, 2, 3, 4, 5, 6, 7, 8], 8) == BLOCKS


def test_spark_falls_back_to_ascii() -> None:
    assert spark([8, 7, 6, 5, 4, 3, 2, 1], 8, ascii_only=True) == ASCII[::-1]


def test_spark_leaves_a_gap_where_the_loss_was_not_a_number() -> None:
    assert spark([1.0, NAN, math.inf, 2.0], 10) == f"{BLOCKS[0]}{GAP}{GAP}{BLOCKS[-1]}"


def test_spark_bins_by_the_mean_of_what_is_finite() -> None:
    assert spark([0, NAN, 10, 10, NAN, NAN, 0, 10], 4) == f"{BLOCKS[0]}{BLOCKS[-1]}{GAP}{BLOCKS[4]}"


@pytest.mark.parametrize(("values", "width"), [([], 10), ([1.0], 0), ([1.0], -3), ([NAN, math.inf], 10)])
def test_spark_has_nothing_to_show(values: list[float], width: int) -> None:
    assert spark(values, width) == ""


def test_spark_draws_a_flat_series_low() -> None:
    assert spark([0.5] * 5, 5) == BLOCKS[0] * 5


@pytest.mark.parametrize("width", [-1, 0, 1, 3, 4, 50])
def test_spark_keeps_to_its_room_and_its_marks(width: int) -> None:
    for values in SERIES:
        line = spark(values, width)
        assert len(line) <= max(width, 0)
        assert set(line) <= set(BLOCKS + GAP)


def test_spark_orders_its_marks_as_the_values() -> None:
    for values in product([-3e9, -1.0, 0.0, 0.1, 2.0, 7e5], repeat=4):
        marked = sorted(zip(values, spark(values, 4), strict=True))
        heights = [BLOCKS.index(mark) for _, mark in marked]
        assert heights == sorted(heights)
        assert heights[0] == 0


def test_curve_labels_its_axis_and_descends() -> None:
    lines = curve([4.0, 3.0, 2.0, 1.0], 20, 4)
    assert [line.partition("┤")[0].strip() for line in lines] == ["4", "", "", "1"]
    assert [line.partition("┤")[2] for line in lines] == ["█", "█▆", "██▃", "███▁"]


def test_curve_in_ascii_has_nothing_but_ascii() -> None:
    lines = curve([2.5, 0.25], 20, 3, ascii_only=True)
    assert "".join(lines).isascii()
    assert lines[0].startswith(" 2.5 |")
    assert lines[-1].startswith("0.25 |")


def test_curve_shows_a_gap_as_an_empty_column() -> None:
    bottom = curve([2.0, NAN, 1.0], 20, 2)[-1].partition("┤")[2]
    assert bottom == f"{BLOCKS[-1]}{GAP}{BLOCKS[0]}"


def test_curve_keeps_the_true_extremes_on_the_axis_when_columns_are_means() -> None:
    lines = curve([1.0] * 50 + [100.0] + [1.0] * 49, 14, 3)
    assert lines[0].startswith("100 ")
    assert lines[-1].startswith("  1 ")


@pytest.mark.parametrize(
    ("values", "width", "height"), [([], 40, 5), ([NAN], 40, 5), ([1.0], 3, 5), ([1.0], 40, 0)]
)
def test_curve_has_nothing_to_show(values: list[float], width: int, height: int) -> None:
    assert curve(values, width, height) == []


@pytest.mark.parametrize("width", [-1, 0, 8, 12, 40])
@pytest.mark.parametrize("height", [-1, 0, 1, 2, 5])
def test_curve_keeps_to_its_room(width: int, height: int) -> None:
    for values in SERIES[::7]:
        lines = curve(values, width, height)
        assert len(lines) in {0, height}
        assert all(len(line) <= width for line in lines)
