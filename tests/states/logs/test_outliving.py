"""What a run lived through: rising counters, another try, a process that talks on."""

from __future__ import annotations

import pytest

from states import text
from states.causes import diagnose
from states.logs import outliving

ODD = 'Traceback (most recent call last):\n  File "/w/a.py", line 3, in go\n    x()\nValueError: odd\n'


def rises(log: str) -> dict[str, list[int]]:
    return outliving.rises(text.lines(log))


def test_counters_of_every_shape_rise() -> None:
    assert rises("step 1\nstep 2\nstep 2\nstep 3\n") == {"step": [1, 3]}
    assert rises("[10/90] x\n[20/90] x\n") == {"of 90": [1]}
    assert rises("Epoch: 1\nEpoch: 2\n") == {"epoch": [1]}


@pytest.mark.parametrize(
    "log",
    [
        "attempt 1/5\nattempt 2/5\n",
        "Retry 1/5\nRetry 2/5\n",
        "waited step 1\nwaited step 2\n",
        "at 10.0.0.1/24\nat 10.0.0.2/24\n",
    ],
)
def test_numbers_that_rise_without_work_do_not_count(log: str) -> None:
    assert rises(log) == {}


def test_three_rises_outlive_an_event_and_two_do_not() -> None:
    assert outliving.outlived(4, [[3, 5, 6, 7]])
    assert not outliving.outlived(4, [[3, 4, 5, 6]])


def causes(log: str, **known: object) -> tuple[str, bool]:
    said = diagnose(text.lines(log), **known)  # type: ignore[arg-type]
    return said.cause, said.fatal


def test_a_lone_last_exception_is_never_survived() -> None:
    assert causes("INFO a\n" * 30 + ODD) == ("code.exception", True)


def test_a_service_that_answers_on_after_a_traceback_lives() -> None:
    assert causes(ODD + "INFO served one\n" * 25) == ("none", False)
    assert causes(ODD + "INFO served one\n" * 5) == ("code.exception", True)


def test_another_rank_s_talk_does_not_save_one_that_died() -> None:
    dead = "".join(f"[rank1]: {line}\n" for line in ODD.rstrip().split("\n"))
    assert causes(dead + "[rank0]: INFO still here\n" * 25) == ("code.exception", True)


def test_a_logged_error_with_informing_lines_after_it_is_survived() -> None:
    assert causes(
        "2024 - x - ERROR - Error code: 401 - refused\n2024 - x - INFO - a\n2024 - x - INFO - b\n"
    ) == ("none", False)


def test_a_script_goes_on_after_a_shell_s_complaint() -> None:
    missing = "go.sh: line 2: nvidia-smi: command not found\n"
    assert causes(missing) == ("command.not_found", True)
    assert causes(missing + "starting\n" * 9) == ("none", False)


def test_an_outlived_exception_counts_again_when_the_run_failed_with_nothing_else() -> None:
    steps = "".join(f"step {n}\n" for n in range(9))
    assert causes(ODD + steps) == ("none", False)
    assert causes(ODD + steps, exit_code=1)[0] == "code.exception"
