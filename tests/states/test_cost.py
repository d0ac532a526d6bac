"""What a run costs, and which specs are worth a preview (RULES C13, D4)."""

from __future__ import annotations

from typing import Any

import pytest

from states.cost import dear, gpu_hours, length_s, uncertain, why_preview
from states.goals import StopCondition
from states.job import Job
from tests.states import builders as b

HOUR = 3600.0


def job(**asked: Any) -> Job:
    return b.new_job(request=asked)


def test_the_length_is_the_least_of_what_is_known() -> None:
    assert length_s(b.request()) is None
    assert length_s(b.request(time_limit_s=9 * HOUR)) == 9 * HOUR
    assert length_s(b.request(time_limit_s=9 * HOUR, expected_s=HOUR)) == HOUR
    wall = StopCondition(wall_s=60.0)
    assert length_s(b.request(time_limit_s=HOUR, stop_when=(StopCondition(step=5.0), wall))) == 60


def test_gpu_hours_count_all_replicas() -> None:
    assert gpu_hours(job(gpu=4, replicas=3, time_limit_s=2 * HOUR)) == 24
    assert gpu_hours(job(gpu=4)) is None
    assert gpu_hours(job(gpu=0)) == 0


def test_dear_is_more_than_the_policy_says() -> None:
    """The bound itself is not beyond it."""
    assert dear(job(gpu=8, time_limit_s=HOUR)) == ""
    assert dear(job(gpu=8, time_limit_s=HOUR + 1)) != ""
    assert "16 GPU-hours, more than 8" in dear(job(gpu=8, replicas=2, time_limit_s=HOUR))
    assert dear(job(gpu=1, time_limit_s=9 * HOUR, policy={})) != ""
    assert dear(job(gpu=8, time_limit_s=2 * HOUR).but(policy_set={"expensive_gpu_hours": 100.0})) == ""


def test_gpus_for_an_unknown_time_are_dear_and_a_cpu_job_is_not() -> None:
    assert "not known" in dear(job(gpu=1))
    assert dear(job(gpu=0)) == ""


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"replicas": 2}, "2 nodes"),
        ({"gpu": 3}, "3 GPUs a node"),
        ({"extra_args": ("--flag",)}, "raw arguments"),
    ],
)
def test_an_uncertain_spec_says_why(asked: dict[str, Any], said: str) -> None:
    assert said in uncertain(job(**asked))


@pytest.mark.parametrize("gpu", [0, 1, 2, 4, 8])
def test_an_ordinary_spec_is_not_previewed(gpu: int) -> None:
    assert why_preview(job(gpu=gpu, time_limit_s=HOUR)) == ""
