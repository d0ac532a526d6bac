"""Outputs that do not outlive the job (RULES D6)."""

from __future__ import annotations

import pytest

from tests.states.lint.judged import NOTHING, of, python


@pytest.mark.parametrize(
    "text",
    [
        "python -u t.py --output_dir /tmp/o",
        "python -u t.py --save-dir=$TMPDIR/o",
        "python -u t.py --out /elsewhere/o",
        "python -u t.py > /tmp/log",
        "lm_eval --model vllm --tasks x",
    ],
)
def test_lost(text: str) -> None:
    assert of("output_node_local", text) == {"warn 1"}


@pytest.mark.parametrize(
    "text",
    [
        "python -u t.py --output_dir /ws/o",
        "python -u t.py --output_dir runs/o",
        "python -u t.py --output_dir $OUT/o",
        "python -u t.py --cache_dir /tmp/c --data /tmp/d",
        "python -u t.py --model_dir /tmp/m --output_dir /ws/o",
        "python -u t.py --output_dir $TMPDIR/o\ncp -r $TMPDIR/o /ws/",
        "trap 'cp -r /tmp/o /ws/' EXIT\npython -u t.py --output_dir /tmp/o",
        "lm_eval --model vllm --output_path /ws/o",
    ],
)
def test_kept_or_only_in_between(text: str) -> None:
    assert of("output_node_local", text) == NOTHING


def test_a_variable_stands_for_any_one_name() -> None:
    line = "python -u t.py --output_dir /data/$USER/o"
    assert of("output_node_local", line, workspace=["/data/kim"]) == NOTHING
    assert of("output_node_local", line, workspace=["/other/kim"]) == {"warn 1"}


def test_python_that_writes_to_the_node() -> None:
    code = "import torch\nOUT = '/tmp/o'\ntorch.save(net, f'{OUT}/a.pt')\nf(output_dir='/ws/o')\nf(output_dir=OUT)\n"
    assert python("output_node_local", code) == {"warn 3", "warn 5"}
