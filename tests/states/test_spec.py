"""What the person asked for, and the spec as far as that alone settles it (RULES A5, C3, C4, C8)."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from states.spec import Lane, Request, draft, in_proportion
from tests.states import builders as b


@pytest.mark.parametrize("written", ["auto", "free"])
def test_a_figure_that_is_left_free(written: str) -> None:
    """C4: one GPU until the row `size` has looked at the task."""
    asked = Request.model_validate({"command": "python t.py", "gpu": written})
    assert (asked.gpu, asked.gpu_free) == (0, True)
    assert draft(asked, workspace="ws").gpu == 1
    assert Request.model_validate(asked.model_dump()) == asked


def test_a_free_figure_may_have_a_least() -> None:
    asked = b.request(gpu="auto", gpu_min=4)
    assert draft(asked, workspace="ws").gpu == 4
    with pytest.raises(ValidationError, match="gpu_min is above gpu"):
        b.request(gpu=2, gpu_min=4)


def test_a_figure_that_is_no_number_is_refused() -> None:
    with pytest.raises(ValidationError, match="gpu"):
        b.request(gpu="many")


@pytest.mark.parametrize(
    ("asked", "drafted"),
    [(None, "normal"), ("normal", "normal"), ("idle", "idle"), ("auto", "normal"), ("cheap", "normal")],
)
def test_the_lane_is_normal_unless_idle_is_named(asked: str | None, drafted: Lane) -> None:
    """C8."""
    assert draft(b.request(lane=asked), workspace="ws").lane == drafted


def test_cpu_and_memory_follow_the_gpus_unless_they_are_given() -> None:
    assert in_proportion(b.request(), 4) == (32.0, 131_072)
    assert in_proportion(b.request(), 0) == (1.0, 1024)
    assert in_proportion(b.request(cpu=3, memory_mib=500), 4) == (3.0, 500)
