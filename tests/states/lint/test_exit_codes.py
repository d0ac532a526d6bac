"""Exit codes that get lost: a failed run would report success."""

from __future__ import annotations

import pytest

from tests.states.lint.judged import NOTHING, of


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("python -u t.py\necho done", 1),
        ("python -u t.py\nconda deactivate", 1),
        ("python -u t.py | tee log", 1),
        ("python -u t.py || true", 1),
        ("python -u t.py \\\n --x 1 \\\n && echo OK || echo FAILED", 3),
        ("if python -u t.py; then echo ok; else echo bad; fi", 1),
        ("python -u a.py &\nwait", 2),
        ("python -u t.py\nexit 0", 1),
        ("bash -c 'python -u t.py; echo done'", 1),
    ],
)
def test_a_failure_would_be_lost(text: str, line: int) -> None:
    assert f"warn {line}" in of("exit_code_masked", text)


@pytest.mark.parametrize(
    "text",
    [
        "python -u t.py",
        "set -e\npython -u t.py\necho done",
        "#!/bin/bash -e\npython -u t.py\necho done",
        "set -o pipefail\npython -u t.py | tee log",
        "python -u t.py | tee log\nexit ${PIPESTATUS[0]}",
        "python -u t.py\nrc=$?\necho done\nexit $rc",
        "python -u t.py || exit 1",
        "python -u t.py || { echo bad; exit 1; }",
        "if ! python -u t.py; then exit 1; fi",
        "module load x\npython -u t.py",
        "echo start | tee log\npython -u t.py",
    ],
)
def test_it_comes_through(text: str) -> None:
    assert of("exit_code_masked", text) == NOTHING


def test_a_submit_line_is_a_note() -> None:
    assert of("exit_code_masked", "rlaunch --gpu=1 -- python -u t.py | tee log") == {"note 1"}
