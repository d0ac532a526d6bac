"""Heavy intermediates below the workspace (RULES D6)."""

from __future__ import annotations

import pytest

from tests.states.lint.judged import NOTHING, of


@pytest.mark.parametrize(
    "text",
    [
        "python -u t.py --tmp-dir /ws/tmp",
        "python -u t.py --temp_folder=runs/tmp",
        "python -u t.py --spill-dir ./spill",
        "TMPDIR=/ws/tmp python -u t.py",
        "export TMPDIR=/ws/tmp; python -u t.py",
    ],
)
def test_kept(text: str) -> None:
    assert of("intermediates_kept", text) == {"note 1"}


@pytest.mark.parametrize(
    "text",
    [
        "python -u t.py --tmp-dir /tmp/x",
        "python -u t.py --scratch $SLURM_TMPDIR/x",
        "python -u t.py --temperature 0.7",
        "python -u t.py --temp 1/2 --tmp-dir ~/x",
        "python -u t.py --output_dir /ws/o --cache-dir /ws/cache",
        "TMPDIR=/tmp/x python -u t.py",
        "echo --tmp-dir /ws/tmp",
    ],
)
def test_not_kept(text: str) -> None:
    assert of("intermediates_kept", text) == NOTHING


def test_the_jobs_own_variables_count() -> None:
    assert of("intermediates_kept", "python -u t.py", env={"TMPDIR": "/ws/tmp"}) == {"note 1"}
