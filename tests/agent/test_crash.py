"""Crash points: nothing in life, a strike where a test has armed one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent import crash

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture
def struck() -> Iterator[list[str]]:
    seen: list[str] = []
    crash.arm(seen.append)
    yield seen
    crash.arm(None)


def test_nothing_happens_in_life() -> None:
    crash.point("submit-after-call")
    crash.point("a name that nobody knows")


def test_an_armed_point_strikes(struck: list[str]) -> None:
    crash.point("submit-after-call")
    assert struck == ["submit-after-call"]


def test_a_point_that_is_not_on_the_list_is_a_fault_of_the_test_that_meets_it(struck: list[str]) -> None:
    with pytest.raises(KeyError, match="not in"):
        crash.point("a name that nobody knows")


def test_the_list_names_the_points_of_the_product_and_no_others() -> None:
    used = set()
    for path in (ROOT / "agent").rglob("*.py"):
        used |= set(re.findall(r"crash\.point\(\"([^\"]+)\"\)", path.read_text(encoding="utf-8")))
    assert used == set(crash.POINTS)
    assert len(set(crash.POINTS)) == len(crash.POINTS)
