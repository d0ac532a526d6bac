"""Durations and time stamps in the shapes logs use."""

from __future__ import annotations

import re

import pytest

from states.logs.stamps import DURATION, clock, duration_s, stamp


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0:03:01", 181),
        ("12:05", 725),
        ("171:22:00", 616_920),
        ("2 days, 3:20:05", 184_805),
        ("1 day, 0:00:01", 86_401),
        ("3d 4h", 273_600),
        ("13m 22s", 802),
        ("1h 16m", 4_560),
        ("2h30m", 9_000),
        ("9s", 9),
        ("45 seconds", 45),
        ("1.5 hours", 5_400),
        ("3小时20分", 12_000),
        ("00:01:30.5", 90.5),
    ],
)
def test_durations(text: str, seconds: float) -> None:
    found = re.match(DURATION, text)
    assert found is not None
    assert duration_s(found[0]) == seconds


def test_no_duration() -> None:
    assert duration_s("?") is None


@pytest.mark.parametrize(
    ("first", "second", "gap"),
    [
        ("2031-05-06 07:08:09,500 INFO a", "2031-05-06 07:08:10,000 INFO b", 0.5),
        ("2031-05-06T07:08:09Z a", "2031-05-07T07:08:09Z b", 86_400),
        ("[05/06 07:08:09 d2]: a", "[05/06 07:09:09 d2]: b", 60),
        ("26/05/31 07:08:09 INFO a", "26/05/31 07:08:19 INFO b", 10),
        ("I0506 07:08:09.000000 12 a.py:3] a", "I0506 07:08:11.250000 12 a.py:3] b", 2.25),
        ("07:08:09.100 [I] a", "07:08:10.100 [I] b", 1),
        ("[23:59:50,000] a", "[00:00:10,000] b", 20),
        ("May  6 07:08:09 node a", "May  6 07:08:19 node b", 10),
        ('{"time_ms": 1700000000000}', '{"time_ms": 1700000001500}', 1.5),
        ("::: 1700000000.250 a", "::: 1700000003.250 b", 3),
    ],
)
def test_the_gap_between_two_stamps(first: str, second: str, gap: float) -> None:
    before, after = clock([stamp(first), stamp(second)])
    assert before is not None
    assert after is not None
    assert after - before == pytest.approx(gap)


def test_lines_without_a_stamp_stand_at_the_last_one() -> None:
    times = clock(
        [stamp(text) for text in ["no stamp", "2031-05-06 07:08:09 a", "between", "2031-05-06 07:08:19 b"]]
    )
    assert times[0] is None
    assert times[1] == times[2]
    assert times[3] == pytest.approx((times[1] or 0) + 10)


def test_clocks_of_another_shape_do_not_mix() -> None:
    times = clock([stamp(text) for text in ["07:00:00 a", "2031-05-06 07:08:09 b", "2031-05-06 07:08:10 c"]])
    assert times[0] is None
    assert (times[2] or 0) - (times[1] or 0) == 1


def test_ranks_out_of_step_are_no_midnight() -> None:
    times = clock([stamp(text) for text in ["07:00:02 a", "07:00:01 b", "07:00:03 c"]])
    assert (times[2] or 0) - (times[0] or 0) == 1


@pytest.mark.parametrize(
    "text", ["", "eta 0:03:01 left", "99:99:99 no", "2031-13-45 07:08:09 no", "1234567890123456"]
)
def test_no_stamp(text: str) -> None:
    assert stamp(text) is None
