"""Quotes that do not do what they seem to."""

from __future__ import annotations

import pytest

from tests.states.lint.judged import NOTHING, of


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("python -u t.py --out=“runs”", "warn 1"),
        ("python -u t.py –epochs 3", "warn 1"),
        ("python -u t.py --out\u00a0runs", "warn 1"),
        ('echo go\npython -u t.py --name "abc\n', "warn 2"),
        ("python -u t.py --out '$OUT/x'", "note 1"),
        ('python -u t.py --data "~/data"', "note 1"),
    ],
)
def test_what_goes_wrong(text: str, found: str) -> None:
    assert of("quoting", text) == {found}


@pytest.mark.parametrize(
    "text",
    [
        "echo “hello”",
        "# it’s fine\npython -u t.py",
        "python -u t.py --prompt 'say “hi” to all'",
        "srun bash -c 'python -u t.py --rank $SLURM_PROCID'",
        'python -u t.py --out "$OUT/x"',
    ],
)
def test_what_is_meant(text: str) -> None:
    assert of("quoting", text) == NOTHING
