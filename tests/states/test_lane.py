"""The lane goes by what a preemption costs, never by whether the job "has checkpoints" (RULES C8)."""

from __future__ import annotations

from typing import Any

import pytest

from states.job import Job
from states.lane import lane_row, may_go_idle, preemption
from tests.states import builders as b

HOUR = 3600.0


def job(lanes: tuple[str, ...] = ("normal", "idle"), every_s: float | None = None, **asked: Any) -> Job:
    made = b.new_job(request=asked)
    offered = made.capabilities.model_copy(update={"lanes": lanes, "idle_preempted_every_s": every_s})
    return made.but(capabilities=offered)


@pytest.mark.parametrize(
    ("asked", "lost_s", "cheap"),
    [
        ({"checkpoint_every_s": 600, "expected_s": 6 * HOUR}, 600, True),
        ({"checkpoint_every_s": 1800}, 1800, True),
        ({"checkpoint_every_s": 1801}, 1801, False),
        ({"checkpoint_every_s": 4 * HOUR, "expected_s": 24 * HOUR}, 4 * HOUR, False),
        ({"checkpoint_every_s": 4 * HOUR, "expected_s": 900}, 900, True),
        ({"expected_s": 900}, 900, True),
        ({"time_limit_s": 5 * HOUR}, 5 * HOUR, False),
        ({}, None, False),
    ],
)
def test_what_a_preemption_costs(asked: dict[str, Any], lost_s: float | None, cheap: bool) -> None:
    """The way back to the last saved state, or to the beginning; what nobody knows is not cheap."""
    cost = preemption(job(**asked))
    assert (cost.lost_s, cost.cheap) == (lost_s, cheap)
    assert cost.why


def test_the_arithmetic_is_in_the_words() -> None:
    assert "up to 10 min of 6 h" in preemption(job(checkpoint_every_s=600, expected_s=6 * HOUR)).why
    assert "more than 30 min" in preemption(job(checkpoint_every_s=7200)).why
    assert "saves its state" in preemption(job(expected_s=900)).why


def test_a_run_that_is_not_started_again_is_never_cheap() -> None:
    assert not preemption(job(checkpoint_every_s=60, max_restarts=0)).cheap


def test_how_often_it_is_preempted_counts_where_the_cluster_tells() -> None:
    asked: dict[str, Any] = {"checkpoint_every_s": 600, "expected_s": 6 * HOUR}
    rare = preemption(job(every_s=2 * HOUR, **asked))
    assert rare.cheap
    assert "makes 15 min 00 s in all" in rare.why or "makes 15 min in all" in rare.why
    assert not preemption(job(every_s=600, **asked)).cheap
    assert not preemption(job(every_s=HOUR, **asked)).cheap  # six in six hours, three restarts


class TestRow:
    CHEAP: dict[str, Any] = {"checkpoint_every_s": 300, "expected_s": 2 * HOUR}
    COSTLY: dict[str, Any] = {"checkpoint_every_s": 3 * HOUR, "expected_s": 24 * HOUR}

    def test_normal_is_the_default_however_cheap(self) -> None:
        row = lane_row(job(**self.CHEAP))
        assert (row.level, row.found, row.facts) == ("fine", {}, {})

    def test_an_explicit_lane_is_kept(self) -> None:
        kept = lane_row(job(lane="idle", **self.CHEAP))
        warned = lane_row(job(lane="idle", **self.COSTLY))
        assert (kept.level, kept.found) == ("fine", {})
        assert (warned.level, warned.found) == ("warn", {})
        assert "lane: normal" in warned.facts["note"]
        assert lane_row(job(lane="idle")).level == "warn"
        assert lane_row(job(lane="normal", **self.COSTLY)).level == "fine"

    def test_a_lane_that_the_cluster_has_not_is_warned_of(self) -> None:
        row = lane_row(job(("normal",), lane="idle", **self.CHEAP))
        assert row.level == "warn"
        assert "no idle lane" in row.evidence

    def test_a_preference_takes_it_where_it_is_cheap_and_the_bare_choice_waits_for_want_of_room(self) -> None:
        assert lane_row(job(lane="cheap", **self.CHEAP)).found == {"lane": "idle"}
        assert lane_row(job(lane="cheap", **self.COSTLY)).found == {}
        assert lane_row(job(lane="auto", **self.CHEAP)).found == {}

    @pytest.mark.parametrize(
        ("made", "may"),
        [
            (job(lane="auto", **CHEAP), True),
            (job(lane="cheap", **CHEAP), True),
            (job(lane="auto", **COSTLY), False),
            (job(("normal",), lane="auto", **CHEAP), False),
            (job(lane="normal", **CHEAP), False),
            (job(**CHEAP), False),
        ],
    )
    def test_only_a_choice_that_is_ours_may_go_idle(self, made: Job, may: bool) -> None:
        assert may_go_idle(made) is may
