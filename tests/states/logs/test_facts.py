"""What one line tells, kept per text."""

from __future__ import annotations

import pytest

from states.logs.facts import FACT_CHARS_MAX, facts


def test_all_that_a_line_tells_at_once() -> None:
    told = facts("2031-01-01 10:00:00 step 12/90 loss: 2.5 [00:10<01:05, 1.2it/s]")
    assert next((one.name, one.value, one.total) for one in told.readings) == ("step", 12.0, 90.0)
    assert [piece.value for piece in told.pieces if piece.key == "loss"] == [2.5]
    assert told.pulse.eta_s == 65.0
    assert told.stamp is not None
    assert told.said.phase == ""


def test_a_request_that_succeeded_and_the_end_are_told() -> None:
    assert facts('10.0.0.1 - "GET /v1 HTTP/1.1" 200 OK').served
    assert facts("Training completed.").said.finished


def test_a_short_line_is_worked_out_once_and_a_long_one_each_time() -> None:
    assert facts("step 3 of 9") is facts("step 3 of 9")
    long = "step 3 of 9 " + "x" * FACT_CHARS_MAX
    assert facts(long) == facts(long)
    assert facts(long) is not facts(long)


@pytest.mark.parametrize(
    "line",
    [
        "srun: Terminating StepId=733.0",
        "slurmstepd: error: *** STEP 733.0 ON gpu4 CANCELLED AT 2026-03-01T04:10:22 DUE TO TIME LIMIT ***",
        "slurmstepd-gpu4: error: StepId=733.0 hit its memory limit",
    ],
)
def test_a_step_of_the_schedulers_books_is_no_work(line: str) -> None:
    told = facts(line)
    assert told.readings == ()
    assert told.pieces == ()
