"""Work in the background: waited for, or lost with the script."""

from __future__ import annotations

import pytest

from tests.states.lint.judged import NOTHING, of


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("nohup python -u t.py > log &", 1),
        ("for i in 0 1; do\n python -u t.py $i &\ndone", 2),
        ("python -u a.py &\npython -u b.py", 1),
        ("tmux new-session -d 'python -u t.py'", 1),
        ("(cd x && python -u t.py) &", 1),
        ("for i in 0 1 2; do\n python -u t.py &\n if [ $i = 1 ]; then wait; fi\ndone", 2),
    ],
)
def test_nobody_waits(text: str, line: int) -> None:
    assert of("background_no_wait", text) == {f"warn {line}"}


@pytest.mark.parametrize(
    "text",
    [
        "python -u a.py &\nwait",
        "p=()\nfor i in 0 1; do python -u t.py & p+=($!); done\nfor x in ${p[@]}; do wait $x; done",
        "nvidia-smi dmon > log &\npython -u t.py",
        "vllm serve /ws/m &\npython -u client.py",
        "python -u -m http.server &\npython -u t.py",
        "rjob submit --name a -- python -u t.py &",
    ],
)
def test_it_is_waited_for_or_only_helps(text: str) -> None:
    assert of("background_no_wait", text) == NOTHING
