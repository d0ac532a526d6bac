"""Which message goes where and when: loud at once, routine together, quiet hours that swallow no question."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from states.orders import QuietHours
from states.routing import NEAR_S, Notice, Plan, Rule, plan, quiet_end, wanted

NIGHT = QuietHours.model_validate({"from": "22:00", "to": "07:30"})
LUNCH = QuietHours.model_validate({"from": "12:00", "to": "13:00"})
EAST = timezone(timedelta(hours=8))


def at(clock: str, day: int = 10) -> datetime:
    hour, minute = clock.split(":")
    return datetime(2026, 3, day, int(hour), int(minute), tzinfo=UTC)


def report(when: datetime, *, loud: bool = False) -> Notice:
    return Notice("report", loud, when)


def question(when: datetime, answer_by: datetime) -> Notice:
    return Notice("question", True, when, answer_by)


def test_what_must_not_be_missed_comes_at_once_and_by_itself() -> None:
    assert plan(report(at("09:03"), loud=True), Rule(), at("09:03")) == Plan(at("09:03"), loud=True)


def test_routine_of_one_interval_comes_together() -> None:
    rule = Rule(group_s=900)
    times = [plan(report(at(clock)), rule, at(clock)) for clock in ("09:00", "09:07", "09:14", "09:15")]
    assert times == [Plan(at("09:15"), loud=False)] * 3 + [Plan(at("09:30"), loud=False)]


def test_without_an_interval_each_comes_by_itself() -> None:
    assert plan(report(at("09:07")), Rule(group_s=0), at("09:07")) == Plan(at("09:07"), loud=False)


def test_a_message_that_was_found_late_is_not_sent_into_the_past() -> None:
    found = plan(report(at("09:07")), Rule(group_s=60), at("11:00"))
    assert found == Plan(at("11:00"), loud=False)


@pytest.mark.parametrize(
    ("wants", "taken"),
    [
        ("all", {"question", "withdrawal", "loud", "routine"}),
        ("must-not-miss", {"question", "withdrawal", "loud"}),
        ("questions", {"question", "withdrawal"}),
    ],
)
def test_a_channel_takes_what_it_wants(wants: str, taken: set[str]) -> None:
    notices = {
        "question": question(at("09:00"), at("10:00")),
        "withdrawal": Notice("withdrawal", False, at("09:00")),
        "loud": report(at("09:00"), loud=True),
        "routine": report(at("09:00")),
    }
    rule = Rule.model_validate({"wants": wants})
    assert {name for name, notice in notices.items() if wanted(notice, rule)} == taken
    assert plan(notices["routine"], Rule(wants="questions"), at("09:00")) is None


def test_in_quiet_hours_what_can_wait_waits_even_if_it_is_loud() -> None:
    night = at("23:10")
    assert plan(report(night, loud=True), Rule(), night, quiet=NIGHT) == Plan(at("07:30", 11), loud=True)
    assert plan(report(night), Rule(), night, quiet=NIGHT) == Plan(at("07:30", 11), loud=False)


def test_a_question_that_is_due_before_the_morning_wakes() -> None:
    night = at("23:10")
    soon = plan(question(night, night + timedelta(minutes=30)), Rule(), night, quiet=NIGHT)
    assert soon == Plan(night, loud=True)


def test_a_question_waits_no_longer_than_leaves_time_to_answer() -> None:
    night = at("23:10")
    early = plan(question(night, at("08:00", 11)), Rule(), night, quiet=NIGHT)
    late = plan(question(night, at("12:00", 11)), Rule(), night, quiet=NIGHT)
    assert early == Plan(at("07:00", 11), loud=True)
    assert late == Plan(at("07:30", 11), loud=True)


def test_a_channel_that_wakes_nobody_has_no_quiet_hours() -> None:
    night = at("23:10")
    assert plan(report(night, loud=True), Rule(quiet=False), night, quiet=NIGHT) == Plan(night, loud=True)


@pytest.mark.parametrize(
    ("clock", "hours", "end"),
    [
        ("22:00", NIGHT, at("07:30", 11)),
        ("00:05", NIGHT, at("07:30")),
        ("07:29", NIGHT, at("07:30")),
        ("07:30", NIGHT, None),
        ("21:59", NIGHT, None),
        ("12:30", LUNCH, at("13:00")),
        ("13:00", LUNCH, None),
    ],
)
def test_quiet_hours_go_over_midnight(clock: str, hours: QuietHours, end: datetime | None) -> None:
    assert quiet_end(at(clock), hours, UTC) == end


def test_quiet_hours_are_those_of_the_zone() -> None:
    assert quiet_end(at("15:00"), NIGHT, EAST) == at("23:30")  # 23:00 there; they end at 07:30 there
    assert quiet_end(at("01:00"), NIGHT, EAST) is None  # 09:00 there


def test_hours_of_no_length_are_none() -> None:
    assert quiet_end(at("05:00"), QuietHours.model_validate({"from": "05:00", "to": "05:00"}), UTC) is None


MOMENTS = [at("00:00") + timedelta(minutes=37 * n) for n in range(80)]
HOURS = [
    QuietHours.model_validate({"from": begin, "to": end})
    for begin in ("00:00", "09:30", "13:00", "22:00", "23:59")
    for end in ("00:00", "07:30", "12:00", "22:00")
]


@pytest.mark.parametrize("hours", HOURS, ids=lambda hours: f"{hours.begin}-{hours.end}")
@pytest.mark.parametrize("left_s", [0.0, 60.0, NEAR_S, 2.5 * NEAR_S, 9 * NEAR_S, 40 * NEAR_S])
def test_no_question_is_ever_held_beyond_the_time_to_answer(hours: QuietHours, left_s: float) -> None:
    for now in MOMENTS:
        answer_by = now + timedelta(seconds=left_s)
        found = plan(question(now, answer_by), Rule(), now, quiet=hours)
        assert found is not None
        assert now <= found.send_at <= max(now, answer_by - timedelta(seconds=NEAR_S))
        assert found.loud


@pytest.mark.parametrize("group_s", [0.0, 60.0, 900.0, 7200.0])
@pytest.mark.parametrize("loud", [True, False])
def test_every_report_comes_within_a_day_and_never_at_night(loud: bool, group_s: float) -> None:
    for now in MOMENTS:
        found = plan(report(now, loud=loud), Rule(group_s=group_s), now, quiet=NIGHT)
        assert found is not None
        assert now <= found.send_at <= now + timedelta(days=1)
        assert quiet_end(found.send_at, NIGHT, UTC) is None
