"""The values of a named metric, each at the step it was printed at (E8)."""

from __future__ import annotations

from states.logs.watched import POINTS_MAX, values_of
from states.progress import measure
from states.text import lines


def found(text: str, *names: str) -> dict[str, list[tuple[float, float]]]:
    cleaned = lines(text)
    read = values_of(names, cleaned, measure(cleaned))
    return {name: [(point.step, point.value) for point in points] for name, points in read.items()}


def test_a_value_stands_at_the_step_of_its_line_or_of_the_one_above() -> None:
    text = "step 10/90 loss: 3.0\nstep 20/90 loss: 2.5 acc: 0.4\nval_loss: 2.75\nstep 30/90 loss: 2.0\n"
    assert found(text, "acc", "val_loss") == {"acc": [(20, 0.4)], "val_loss": [(20, 2.75)]}


def test_only_the_named_key_counts() -> None:
    text = "step 10/90 loss: 3.0 best_acc: 0.9\nstep 20/90 loss: 2.5 acc: 0.4\n"
    assert found(text, "acc") == {"acc": [(20, 0.4)]}
    assert found(text, "ACC") == {}


def test_a_value_before_any_step_belongs_nowhere() -> None:
    assert found("acc: 0.1\nstep 5/90 loss: 3.0\nstep 6/90 loss: 3.0\n", "acc") == {}


def test_the_newest_values_are_kept() -> None:
    text = "".join(f"step {n}/900 loss: 2.0 acc: {n / 1000}\n" for n in range(1, 200))
    kept = found(text, "acc")["acc"]
    assert len(kept) == POINTS_MAX
    assert kept[-1] == (199, 0.199)
