"""The guard of the simulated worlds knows a healthy job from a wasted one by what its script would have printed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from agent.clusters.scripted import JobScript, Moment, ScriptedJob
from agent.scenarios.wellness import next_milestone_s
from states.observation import Phase

BEGAN = datetime(2031, 3, 14, 9, tzinfo=UTC)
RUNS = (Moment(0, Phase.pending), Moment(100, Phase.running), Moment(5_100, Phase.succeeded))
STEADY = tuple((10.0 * n, f"step {n}/600 loss 2.5") for n in range(1, 600))


def stopped(log: tuple[tuple[float, str], ...], after_s: float) -> ScriptedJob:
    """Stopped so long after it began to run."""
    job = ScriptedJob("j1", "run-a1", JobScript(RUNS, log), BEGAN)
    job.stopped_at = BEGAN + timedelta(seconds=100 + after_s)
    return job


def test_a_job_in_the_middle_of_its_steps_was_well() -> None:
    assert next_milestone_s(stopped(STEADY, 1_003)) == 7


@pytest.mark.parametrize(
    ("log", "after_s"),
    [
        (STEADY[:100], 3_000),  # it hung
        ((*STEADY[:50], *((at_s, "step 50/600 loss 2.5") for at_s, _ in STEADY[50:])), 3_000),  # it looped
        ((*STEADY[:50], (505.0, "step 51/600 loss nan"), *STEADY[51:]), 3_000),  # it diverged
        (STEADY[:2], 25),  # nobody knows its cadence
        ((*STEADY[:50], (4_000.0, "step 51/600 loss 2.5")), 3_000),  # it hung for long, and came back
        (STEADY, 5_001),  # it was over by then
    ],
)
def test_one_that_was_not_or_of_which_nobody_knows(
    log: tuple[tuple[float, str], ...], after_s: float
) -> None:
    assert next_milestone_s(stopped(log, after_s)) is None


def test_one_that_was_not_stopped_is_none_of_it() -> None:
    job = stopped(STEADY, 1_003)
    job.stopped_at = None
    assert next_milestone_s(job) is None
