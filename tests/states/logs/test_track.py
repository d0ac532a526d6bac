"""What all looks together teach: milestones, cadence, rate, ETA, and the joined loss series."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta

import pytest

from states.logs.track import CADENCES_MAX, HIGHEST_MAX, joined, moved
from states.progress import advance
from states.reading import LOSS_POINTS_MAX, Counter, Point, Progress, Track

START = datetime(2031, 5, 6, 7, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def at_step(value: float, total: float | None = 1000.0, **facts: object) -> Progress:
    main = Counter(name="step", value=value, total=total, unit="step")
    return Progress(main=main, counters=(main,)).model_copy(update=facts)


def looked(*looks: Progress, every: timedelta = 10 * MINUTE, fresh: bool = True) -> Track:
    track = Track()
    for number, look in enumerate(looks):
        track = advance(track, look, START + number * every, fresh=fresh)
    return track


def test_a_first_look_at_counters_is_a_milestone_when_it_was_written() -> None:
    wrote = START - 5 * MINUTE
    track = advance(Track(), at_step(40), START, fresh=True, wrote_at=wrote)
    assert track.milestone_at == wrote
    assert track.output_at == wrote
    assert track.started_at == START
    assert track.looks == 1


def test_a_first_look_at_nothing_is_none() -> None:
    track = advance(Track(), Progress(), START, fresh=True)
    assert track.milestone_at is None
    assert track.output_at == START


def test_a_counter_above_its_best_is_a_milestone() -> None:
    track = looked(at_step(10), at_step(20))
    assert track.milestone_at == START + 10 * MINUTE
    assert track.still_looks == 0
    assert track.highest == {"step": 20}


def test_output_without_a_milestone_is_counted_as_standing_still() -> None:
    track = looked(at_step(20), at_step(20), at_step(20))
    assert track.still_looks == 2
    assert track.milestone_at == START
    assert track.output_at == START + 20 * MINUTE


def test_silence_moves_nothing() -> None:
    track = advance(looked(at_step(20)), at_step(20), START + 60 * MINUTE, fresh=False)
    assert track.still_looks == 0
    assert track.output_at == START
    assert track.milestone_at == START
    assert track.looked_at == START + 60 * MINUTE


def test_a_main_counter_that_fell_is_a_new_segment_and_one_milestone() -> None:
    track = looked(at_step(500), at_step(30))
    assert track.segment == 1
    assert track.highest == {"step": 30}
    assert track.milestone_at == START + 10 * MINUTE
    again = advance(track, at_step(30), START + 20 * MINUTE, fresh=True)
    assert again.segment == 1
    assert again.still_looks == 1


def test_a_side_counter_that_fell_is_no_milestone_but_its_rise_is() -> None:
    def bar(value: float) -> Progress:
        side = Counter(name="bar:Fetching", value=value, total=100)
        return Progress(counters=(side,))

    track = looked(bar(60), bar(5))
    assert track.still_looks == 1
    assert looked(bar(60), bar(5), bar(9)).still_looks == 0


def test_a_new_phase_sentence_is_a_milestone() -> None:
    track = looked(Progress(phase="loading data"), Progress(phase="compiling"))
    assert track.milestone_at == START + 10 * MINUTE
    assert track.phase == "compiling"
    assert track.phase_since == START + 10 * MINUTE
    assert looked(Progress(phase="compiling"), Progress(phase="compiling")).still_looks == 1


def test_moved_names_the_counters() -> None:
    before = looked(at_step(10))
    assert [one.name for one in moved(before, at_step(11))] == ["step"]
    assert moved(before, at_step(10)) == ()


def test_the_cadence_of_the_log_goes_before_the_gap_between_looks() -> None:
    assert looked(at_step(10, cadence_s=30.0), at_step(20, cadence_s=30.0)).cadence_s == pytest.approx(30)
    assert looked(at_step(10), at_step(20), at_step(30)).cadence_s == pytest.approx(600)


def test_one_odd_gap_hardly_moves_the_cadence() -> None:
    track = looked(*[at_step(step, cadence_s=60.0) for step in range(5)], at_step(9, cadence_s=60_000.0))
    assert track.cadence_s == pytest.approx(60 * (1 + 0.3 * 3))


def test_each_phase_has_its_own_cadence() -> None:
    track = looked(
        at_step(10, cadence_s=30.0),
        at_step(11, cadence_s=900.0, phase="evaluating"),
        at_step(12, cadence_s=30.0),
    )
    assert track.cadences == {"evaluating": 900.0, "": 30.0}
    assert track.cadence_s == 30.0


def test_what_is_remembered_is_bounded() -> None:
    many = tuple(Counter(name=f"bar:{number}", value=1) for number in range(500))
    looks = [Progress(counters=many, phase=f"phase {number}", cadence_s=5.0) for number in range(50)]
    track = looked(*looks)
    assert len(track.highest) <= HIGHEST_MAX
    assert len(track.cadences) <= CADENCES_MAX


def test_the_rate_between_looks_gives_the_eta() -> None:
    track = looked(*[at_step(step) for step in (100, 160, 220, 280)])
    assert track.rate_per_s == pytest.approx(0.1)
    assert track.eta_s == pytest.approx(7200)
    assert track.eta_spread_s is not None
    assert track.eta_spread_s < 0.2 * 7200


def test_an_uneven_rate_widens_the_spread() -> None:
    even = looked(*[at_step(step) for step in (100, 160, 220, 280)])
    uneven = looked(*[at_step(step) for step in (100, 110, 270, 280)])
    assert even.rate_spread is not None
    assert uneven.rate_spread is not None
    assert uneven.rate_spread > 2 * even.rate_spread


def test_the_first_look_takes_the_rate_of_the_log() -> None:
    track = looked(at_step(100, rate_per_s=0.5))
    assert track.eta_s == pytest.approx(1800)
    assert track.eta_spread_s == pytest.approx(0.3 * 1800)


def test_no_total_no_eta_and_none_below_nought() -> None:
    assert looked(at_step(100, None, rate_per_s=0.5)).eta_s is None
    assert looked(at_step(1024, 1000, rate_per_s=0.5)).eta_s == 0


def test_the_logs_own_eta_is_kept_apart() -> None:
    track = looked(at_step(100, rate_per_s=0.5, log_eta_s=99.0))
    assert track.log_eta_s == 99.0
    assert track.eta_s == pytest.approx(1800)
    assert advance(track, at_step(100), START + MINUTE, fresh=False).log_eta_s == 99.0


def test_nan_is_dated_from_the_look_that_saw_it_first() -> None:
    track = looked(at_step(1), at_step(2, loss_nan_run=3), at_step(3, loss_nan_run=9))
    assert track.nan_since == START + 10 * MINUTE
    assert advance(track, at_step(4), START + 30 * MINUTE, fresh=True).nan_since is None


def test_repeats_add_up_until_a_milestone() -> None:
    assert looked(at_step(1), at_step(1, repeats=20), at_step(1, repeats=20)).repeats == 40
    assert looked(at_step(1), at_step(1, repeats=20), at_step(2)).repeats == 0


def points(*pairs: tuple[float, float]) -> tuple[Point, ...]:
    return tuple(Point(step=step, value=value) for step, value in pairs)


def test_overlapping_looks_join_without_doubles() -> None:
    old = points((1, 3.0), (2, 2.5), (3, 2.25))
    new = points((2, 2.5), (3, 2.25), (4, 2.0))
    assert joined(old, new) == points((1, 3.0), (2, 2.5), (3, 2.25), (4, 2.0))
    assert joined(old, old) == old


def test_points_of_one_epoch_share_their_step() -> None:
    old = points((1, 3.0), (1, 2.5))
    new = points((1, 2.5), (1, 2.25), (1, 2.0))
    assert joined(old, new) == points((1, 3.0), (1, 2.5), (1, 2.25), (1, 2.0))


def test_a_second_run_is_appended() -> None:
    assert joined(points((90, 1.0)), points((1, 3.0), (2, 2.5))) == points((90, 1.0), (1, 3.0), (2, 2.5))


def test_points_without_a_counter_are_numbered_on() -> None:
    old = points((1, 3.0), (2, 2.5))
    new = points((1, 2.5), (2, 2.25))
    assert joined(old, new, ordinal=True) == points((1, 3.0), (2, 2.5), (3, 2.25))


def test_nan_points_meet_nan_points() -> None:
    old = points((1, 3.0), (2, math.nan))
    assert len(joined(old, old)) == 2


def test_a_long_series_is_thinned() -> None:
    track = Track()
    for look in range(40):
        losses = points(*[(look * 20 + at, 5 - at / 100) for at in range(20)])
        track = advance(track, at_step(look * 20 + 19, losses=losses), START + look * MINUTE, fresh=True)
    assert len(track.losses) <= LOSS_POINTS_MAX
    assert track.losses[-1].step == 799
    assert track.losses[0].step == 0


def test_a_track_with_nan_comes_back_from_its_snapshot() -> None:
    track = looked(at_step(1, losses=points((1, math.nan), (2, math.inf))))
    back = Track.model_validate_json(track.model_dump_json())
    assert math.isnan(back.losses[0].value)
    assert back.losses[1].value == math.inf
    assert back.milestone_at == track.milestone_at
