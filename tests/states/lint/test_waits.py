"""Jobs that hold cards without work, and waits that may never end."""

from __future__ import annotations

import pytest

from tests.states.lint.judged import NOTHING, of, python


@pytest.mark.parametrize(
    "line",
    [
        "sleep infinity",
        "sleep 2d",
        "bash -c 'sleep 360000'",
        "tail -f /dev/null",
        "while true; do date; sleep 60; done",
        "while :; do sleep 60; done",
        "jupyter lab --no-browser",
        "watch nvidia-smi",
        "while sleep 60; do :; done",
        "sleep infinity &\nwait",
        "python -c 'import time; time.sleep(90000)'",
    ],
)
def test_a_keepalive_is_asked_about(line: str) -> None:
    assert of("keepalive", line) == {"ask 1"}


@pytest.mark.parametrize(
    "line",
    [
        "sleep 30",
        "while true; do nvidia-smi; sleep 60; done &\npython -u t.py",
        "while true; do python -u t.py; sleep 5; done",
        "while true; do sleep 5; test -f x && break; done",
        "jupyter nbconvert --execute a.ipynb",
        "for i in 1 2; do sleep 9000; done",
    ],
)
def test_a_pause_or_a_monitor_is_none(line: str) -> None:
    assert of("keepalive", line) == NOTHING


@pytest.mark.parametrize(
    "line",
    [
        "until curl -s localhost:8000/health; do sleep 5; done",
        "while [ ! -f ready ]; do sleep 5; done",
        "while true; do if nc -z h 1; then break; fi; sleep 1; done",
        'while true; do s=$(curl -s h); if [ "$s" = 200 ]; then bash go.sh; break; fi; sleep 1; done',
    ],
)
def test_a_wait_without_end(line: str) -> None:
    assert of("unbounded_wait", line) == {"warn 1"}


@pytest.mark.parametrize(
    "line",
    [
        "for i in $(seq 60); do nc -z h 1 && break; sleep 2; done",
        "while ! nc -z h 1; do sleep 1; n=$((n+1)); [ $n -gt 60 ] && exit 1; done",
        "while kill -0 $pid; do sleep 5; done",
        "timeout 60 bash -c 'until nc -z h 1; do sleep 1; done'",
        "while read -r line; do echo $line; sleep 1; done < list",
    ],
)
def test_a_wait_with_an_end(line: str) -> None:
    assert of("unbounded_wait", line) == NOTHING


def test_python_that_only_sleeps() -> None:
    assert python("keepalive", "import time\nwhile True:\n    print('up')\n    time.sleep(60)\n") == {"ask 2"}
    assert python("keepalive", "import time\nwhile True:\n    train()\n    time.sleep(60)\n") == NOTHING
