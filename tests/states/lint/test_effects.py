"""Lines without effect."""

from __future__ import annotations

import pytest

from tests.states.lint.judged import NOTHING, of


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("CUDA_VISIBLE_DEVICES=0,1\npython -u t.py", 1),
        ('srun bash -c "cd /ws/x"\npython -u t.py', 1),
        ("srun module load x\npython -u t.py", 1),
        ("for n in a b; do\n ssh $n\n mkdir /x\ndone", 2),
        ("bash ~/.bashrc\npython -u t.py", 1),
        ("#!/bin/bash\nalias py=python\npy t.py", 2),
    ],
)
def test_no_effect(text: str, line: int) -> None:
    assert of("no_effect", text) == {f"warn {line}"}


@pytest.mark.parametrize(
    "text",
    [
        "export CUDA_VISIBLE_DEVICES=0,1\npython -u t.py",
        "CUDA_VISIBLE_DEVICES=0,1\nexport CUDA_VISIBLE_DEVICES\npython -u t.py",
        "CUDA_VISIBLE_DEVICES=0,1 python -u t.py",
        "NCCL_X=1\npython -u t.py --x $NCCL_X",
        "set -a\nOMP_NUM_THREADS=1\npython -u t.py",
        'srun bash -c "cd /ws/x && python -u t.py"',
        "ssh host ls",
        "#!/bin/sh\nalias py=python\npy t.py",
        "NAME=x\npython -u t.py",
    ],
)
def test_an_effect(text: str) -> None:
    assert of("no_effect", text) == NOTHING


def test_what_stands_behind_an_exit_is_a_note() -> None:
    assert of("no_effect", "python -u t.py\nexit\necho never") == {"note 3"}
