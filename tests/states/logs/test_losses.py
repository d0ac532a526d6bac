"""Which figure is the training loss, and how a series stays bounded."""

from __future__ import annotations

import math

import pytest

from states.logs.counters import keyed
from states.logs.losses import LossBook, nan_run, thinned
from states.reading import LOSS_POINTS_MAX, Point


def last_loss(*texts: str) -> float | None:
    book = LossBook()
    for index, text in enumerate(texts):
        book.add(keyed(text), index)
    points = book.points.get(book.chosen())
    return points[-1][1] if points else None


@pytest.mark.parametrize(
    ("text", "loss"),
    [
        ("step 5 | loss 2.5 | lm 3.5", 2.5),
        ("train_loss: 1.25 val_loss: 1.75", 1.25),
        ("val_loss: 1.75 train_loss: 1.25", 1.25),
        ("lm loss: 3.500000E+00 | loss scale: 4096.0", 3.5),
        ("total_loss: 8.5 loss_cls: 3.5 loss_box: 5.0", 8.5),
        ("aux_loss_0: 0.5 total_loss: 8.5 eval_loss: 0.1", 8.5),
        ("v_loss 2.5  loss 0.5  v_kl 9.0", 0.5),
        ("Train Loss mse: 0.25, Train Loss ce: 0.75", 0.25),
        ("step:9 - actor/pg_loss:np.float64(0.125) - actor/lr:1e-6", 0.125),
        ("|    loss   | 7.5   |", 7.5),
        ("损失: 1.5, 步数: 10", 1.5),
        ("Loss 5.12e+00 (5.30e+00)", 5.12),
        ("eval_loss: 0.75", 0.75),
        ("loss_scale: 65536 grad_norm: 2.0", None),
        ("best loss: 0.5 so far", 0.5),
    ],
)
def test_the_training_loss_is_chosen_by_its_name(text: str, loss: float | None) -> None:
    assert last_loss(text) == loss


def test_a_loss_that_is_not_a_number_is_kept() -> None:
    found = last_loss("loss 2.0", "loss nan")
    assert found is not None
    assert math.isnan(found)


def test_the_choice_holds_when_validation_speaks_last() -> None:
    assert last_loss("train/loss:0.5", "train/loss:0.4", "val/loss:0.9") == 0.4


def test_nan_run() -> None:
    assert nan_run([1.0, math.nan, 2.0, math.inf, math.nan]) == 2
    assert nan_run([1.0]) == 0
    assert nan_run([]) == 0


def test_thinning_keeps_the_newest_and_the_order() -> None:
    points = [Point(step=step, value=step / 7) for step in range(5_000)]
    kept = thinned(points)
    assert len(kept) <= LOSS_POINTS_MAX
    assert kept[0] == points[0]
    assert kept[-100:] == tuple(points[-100:])
    assert [point.step for point in kept] == sorted(point.step for point in kept)
    assert thinned(points[:10]) == tuple(points[:10])


def test_metrics_are_bounded_and_keep_the_latest() -> None:
    book = LossBook()
    for index in range(500):
        book.add(keyed(f"metric_{index}a: 1.5 accuracy: {index}.5"), index)
    assert len(book.metrics) <= 48
    assert book.metrics["accuracy"] == 499.5
