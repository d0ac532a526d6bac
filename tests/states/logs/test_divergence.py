"""RULES E7: what the numbers say, and what they do not."""

from __future__ import annotations

import pytest

from states.reading import Point
from tests.states.judging import POLICY, STEP, judged, steps


class TestDivergence:
    """E7: NaN that stays is provable; overflow in warm-up and a spike that recovers are not even failing."""

    def test_nan_at_many_steps_is_provably_wasted(self) -> None:
        finite = (Point(step=1, value=2.5), Point(step=2, value=float("nan")))
        verdict = judged(steps(loss=float("nan"), loss_nan_run=POLICY.nan_steps, losses=finite))
        assert (verdict.name, verdict.provable, verdict.topic) == ("failing", True, "nan")

    @pytest.mark.parametrize(("times", "provable"), [(1, False), (3, False), (4, True)])
    def test_a_loss_that_never_was_a_number_takes_longer_to_prove(self, times: int, provable: bool) -> None:
        assert judged(steps(loss_nan_run=times * POLICY.nan_steps)).provable is provable

    @pytest.mark.parametrize(
        ("run", "name"), [(0, "progressing"), (1, "progressing"), (2, "ambiguous"), (19, "failing")]
    )
    def test_fewer_are_said_but_not_stopped(self, run: int, name: str) -> None:
        verdict = judged(steps(loss_nan_run=run))
        assert (verdict.name, verdict.provable) == (name, False)

    def test_overflow_is_normal_in_warm_up_and_failing_late(self) -> None:
        early = STEP.model_copy(update={"value": 12.0})
        assert judged(steps(main=early, overflow_run=11)).name == "progressing"
        verdict = judged(steps(overflow_run=11))
        assert (verdict.name, verdict.provable) == ("failing", False)

    @pytest.mark.parametrize(
        ("values", "missing", "name"),
        [
            ((2.1, 2.0, 2.2, 2.1, 2.0, 2.1), 0, "progressing"),
            ((2.1, 2.0, 2.2, 6.5, 6.8, 6.6), 0, "ambiguous"),
            ((2.1, 2.0, 2.2, 6.5, 6.8, 6.6), 2, "failing"),
            ((2.1, 2.0, 6.5, 4.0, 2.3, 2.2), 0, "progressing"),
            ((0.01, 0.02, 0.01, 0.09, 0.08, 0.09), 0, "progressing"),
            ((0.0,) * 6, 0, "ambiguous"),
            ((4.2,) * 6, 0, "progressing"),
        ],
    )
    def test_a_loss_that_runs_away_is_asked_about(
        self, values: tuple[float, ...], missing: int, name: str
    ) -> None:
        points = tuple(Point(step=at, value=value) for at, value in enumerate(values))
        verdict = judged(steps(losses=points, loss_missing_steps=missing))
        assert (verdict.name, verdict.provable) == (name, False)
