"""A loss that is no number to the end, and what only looks like one."""

from __future__ import annotations

import pytest

from states import text
from states.logs import nan_losses
from states.logs.signatures import load


def first_line(log: str) -> int | None:
    events = nan_losses.not_a_number(text.lines(log), load())
    return events[0].sign.evidence.line if events else None


@pytest.mark.parametrize(
    ("log", "line"),
    [
        ("loss: 2\nloss: nan\nloss: nan\n", 2),
        ("{'loss': nan}\n{'loss': nan}\n", 1),
        ("step 3 | lm loss value: NaN\nstep 4 | lm loss value: NaN\n", 1),
        ("bar loss=inf\nbar loss=inf\nbar loss=inf\n", 1),
        ("{'loss': 0.0, 'grad_norm': nan}\n{'loss': 0.0, 'grad_norm': nan}\n", 1),
        ("loss tensor(nan)\nloss tensor(nan)\n", 1),
    ],
)
def test_a_run_of_nan_to_the_end_stands_at_its_first_line(log: str, line: int) -> None:
    assert first_line(log) == line


@pytest.mark.parametrize(
    "log",
    [
        "loss: nan\n",
        "loss: nan\nloss: nan\nloss: 2.5\n",
        "loss: 2.5 nan iterations: 0\nloss: 2.4 nan iterations: 0\n",
        "loss: 2.5 grad_norm: nan\nloss: 2.4 grad_norm: nan\n",
        "loss: nan val loss: 3.1\nloss: nan val loss: 3.0\n",
        "glossary nan\nglossary nan\n",
    ],
)
def test_what_only_looks_like_it_is_left_alone(log: str) -> None:
    assert first_line(log) is None
