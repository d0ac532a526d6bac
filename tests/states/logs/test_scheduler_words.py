"""The scheduler's words and exit codes as events."""

from __future__ import annotations

import pytest

from states.logs import scheduler_words
from states.logs.log_events import Weight
from states.logs.signatures import load


def causes(*reasons: str, silent: bool = True) -> list[str]:
    return [event.cause for event in scheduler_words.said(reasons, load(), silent=silent)]


def test_words_are_read_in_their_order() -> None:
    assert causes("OOMKilled", "NODE_FAIL") == ["memory.host", "node.lost"]


def test_a_troubled_start_that_is_over_is_left_out() -> None:
    assert causes("FailedScheduling", "Started container main") == []
    assert causes("ImagePullBackOff", "Successfully pulled image") == []
    assert set(causes("Started container main", "Preempted by pod 7")) == {"scheduling.preempted"}


def test_output_shows_that_waiting_is_over() -> None:
    assert causes("Priority") == ["scheduling.capacity"]
    assert causes("Priority", silent=False) == []


@pytest.mark.parametrize(
    ("exit_code", "signal", "cause"),
    [
        (127, None, "command.not_found"),
        (137, None, "process.killed"),
        (-9, None, "process.killed"),
        (None, 9, "process.killed"),
        (139, None, "code.exception"),
        (None, 7, "memory.shm"),
    ],
)
def test_an_exit_code_tells_how_it_ended(exit_code: int | None, signal: int | None, cause: str) -> None:
    (event,) = scheduler_words.exited(exit_code, signal, load())
    assert (event.cause, event.weight) == (cause, Weight.end)


@pytest.mark.parametrize("exit_code", [None, 0, 1, 2, 255])
def test_other_codes_tell_nothing(exit_code: int | None) -> None:
    assert scheduler_words.exited(exit_code, None, load()) == []
