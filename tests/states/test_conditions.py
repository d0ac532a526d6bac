"""The request's own stop conditions (E8): met only by what a look showed."""

from __future__ import annotations

from typing import Any

import pytest

from states.conditions import met_condition, texts_to_look_for
from states.events import LogsRead
from states.job import Job
from states.reading import Digest, Progress, Quote
from states.spec import StopCondition
from tests.states import builders as b


def looked(condition: dict[str, Any], digest: Digest) -> StopCondition | None:
    """A run with this condition, and a look at its log."""
    job: Job = b.in_running(request={"stop_when": (condition,)})
    event = LogsRead(at=b.after(90), name=job.attempt.name, digest=digest)
    return met_condition(job, event)


@pytest.mark.parametrize(
    ("condition", "metrics", "met"),
    [
        ({"metric": "acc", "above": 0.9}, {"acc": 0.91}, True),
        ({"metric": "acc", "above": 0.9}, {"acc": 0.9}, False),
        ({"metric": "acc", "above": 0.9}, {"f1": 0.99}, False),
        ({"metric": "val_loss", "below": 0.1}, {"val_loss": 0.05}, True),
        ({"metric": "val_loss", "below": 0.1}, {"val_loss": float("nan")}, False),
        ({"metric": "val_loss", "above": 9.0}, {"val_loss": float("inf")}, True),
    ],
)
def test_a_metric_crosses_its_bound(condition: dict[str, Any], metrics: dict[str, float], met: bool) -> None:
    found = looked(condition, Digest(progress=Progress(metrics=metrics)))
    assert (found is not None) is met


def test_the_loss_has_a_name_of_its_own() -> None:
    assert looked({"metric": "loss", "below": 1.0}, Digest(progress=Progress(loss=0.5))) is not None


def test_a_step_is_reached_by_the_main_counter() -> None:
    assert looked({"step": 300.0}, Digest()) is not None  # the job stands at 300
    assert looked({"step": 301.0}, Digest()) is None


def test_a_text_is_met_only_by_the_line_that_was_found() -> None:
    line = Digest(found=(Quote(line=3, text="early stopping: no gain for 5 epochs"),))
    assert looked({"line": "early stopping"}, line) is not None
    assert looked({"line": "EARLY STOPPING"}, line) is None


def test_running_time_is_the_timers_matter() -> None:
    assert looked({"wall_s": 1.0}, b.moving()) is None


def test_the_texts_to_look_for_are_those_of_the_conditions() -> None:
    job = b.in_running(request={"stop_when": ({"line": "enough"}, {"step": 5.0}, {"line": "done"})})
    assert texts_to_look_for(job) == ("enough", "done")
