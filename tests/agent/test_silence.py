"""A machine that stands still in the middle of a look (a suspended laptop, a paused VM) has not made a job silent.

The read of a log is of the moment at which it began; nothing later may be held against the job (E6, E7).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from agent.clusters.scripted import JobScript, Moment
from states.job import State
from states.observation import Phase
from tests.agent.fakes import Desk

HOURS_S = 3 * 3600.0
STEADY = JobScript(
    moments=(
        Moment(0, Phase.pending),
        Moment(30, Phase.running),
        Moment(90_000, Phase.succeeded, {"exit_code": 0}),
    ),
    log=tuple((20.0 * n, f"step {n}/4000 loss {3 - n / 4000:.4f}") for n in range(1, 4000)),
    record=0,
)
SILENT = STEADY._replace(log=STEADY.log[:60])


def watched(here: Desk) -> str:
    """A run whose cadence is learnt."""
    job_id = here.delegate()
    here.run(lambda: bool(here.job(job_id).track.cadence_s and here.job(job_id).track.output_cadence_s))
    assert here.job(job_id).state is State.running
    return job_id


@pytest.mark.parametrize("tells_log_time", [True, False], ids=["log time told", "not told"])
@pytest.mark.parametrize("stands_still", ["before the piece is read", "after the piece is read"])
def test_a_pause_within_a_read_stops_nothing_and_asks_nothing(
    desk: Callable[..., Desk], monkeypatch: pytest.MonkeyPatch, stands_still: str, tells_log_time: bool
) -> None:
    here = desk(STEADY)
    monkeypatch.setattr(
        here.cluster,
        "capabilities",
        here.cluster.capabilities.model_copy(update={"tells_log_time": tells_log_time}),
    )
    job_id = watched(here)
    logs, slept = here.cluster.logs, []

    def drowsy(*given: Any, **more: Any) -> Any:
        if slept:
            return logs(*given, **more)
        slept.append(here.clock.now())
        if stands_still.startswith("before"):
            here.clock.step(HOURS_S)
        piece = logs(*given, **more)
        if stands_still.startswith("after"):
            here.clock.step(HOURS_S)
        return piece

    monkeypatch.setattr(here.cluster, "logs", drowsy)
    here.run(lambda: bool(slept), waves=20)
    here.run(lambda: (here.clock.now() - slept[0]).total_seconds() > 2 * HOURS_S, waves=400)
    job = here.job(job_id)
    assert (job.state, job.stop, [q.kind for q in job.questions]) == (State.running, None, [])
    assert here.cluster.count("stop") == 0


def test_one_that_is_silent_is_found_out_all_the_same(desk: Callable[..., Desk]) -> None:
    here = desk(SILENT)
    job_id = watched(here)
    here.run(lambda: here.job(job_id).stop is not None, waves=400)
    assert here.job(job_id).stop is not None
