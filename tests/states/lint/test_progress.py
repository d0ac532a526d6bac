"""Output that is thrown away, late, or never made."""

from __future__ import annotations

import pytest

from tests.states.lint.judged import NOTHING, of, python

LOOP = "for e in range(9):\n    for b in data:\n        loss = net(b)\n        loss.backward()\n        opt.step()\n"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("python -u t.py > /dev/null 2>&1", 1),
        ("#!/bin/bash\n#SBATCH --output=/dev/null\npython -u t.py", 2),
        ("python -u t.py --disable_tqdm true --logging_strategy no", 1),
    ],
)
def test_thrown_away(text: str, line: int) -> None:
    assert of("no_progress", text) == {f"warn {line}"}


def test_only_the_work_counts() -> None:
    assert of("no_progress", "ls x > /dev/null\npython -u t.py 2> /dev/null") == NOTHING


def test_a_silent_loop() -> None:
    assert python("no_progress", LOOP) == {"warn 1"}
    assert python("no_progress", LOOP + "    print(e)\n") == NOTHING
    assert python("no_progress", "from tqdm import trange\n" + LOOP.replace("range", "trange", 1)) == NOTHING


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("python t.py", {"note 1"}),
        ("torchrun --nproc_per_node=4 t.py", {"note 1"}),
        ("python -u t.py", NOTHING),
        ("export PYTHONUNBUFFERED=1\npython t.py", NOTHING),
        ("PYTHONUNBUFFERED=1 srun python t.py", NOTHING),
        ("stdbuf -oL python t.py", NOTHING),
        ("python -c 'import torch'", NOTHING),
    ],
)
def test_buffered(text: str, found: set[str]) -> None:
    assert of("stdout_buffered", text) == found
    assert of("stdout_buffered", text, env={"PYTHONUNBUFFERED": "1"}) == NOTHING


@pytest.mark.parametrize(
    ("call", "found"),
    [
        ("pl.Trainer(enable_progress_bar=False)", {"warn 1"}),
        ("pl.Trainer(enable_progress_bar=False, callbacks=[c])", NOTHING),
        ("TrainingArguments('o', disable_tqdm=True, logging_strategy='no', save_total_limit=1)", {"warn 1"}),
        ("TrainingArguments('o', disable_tqdm=True, save_total_limit=1)", NOTHING),
        ("net.fit(x, y, verbose=0)", {"warn 1"}),
    ],
)
def test_bars_that_are_off(call: str, found: set[str]) -> None:
    assert python("no_progress", call + "\n") == found
