"""`conda activate` with and without its hook."""

from __future__ import annotations

import pytest

from tests.states.lint.judged import NOTHING, of


@pytest.mark.parametrize(
    "text",
    [
        "conda activate x",
        "conda init bash\nconda activate x",
        "conda shell.bash activate x",
        "module load cuda\nconda activate x",
    ],
)
def test_without_a_hook(text: str) -> None:
    assert len(of("conda_no_hook", text + "\npython -u t.py")) == 1


def test_a_child_shell_needs_its_own() -> None:
    text = "source /c/etc/profile.d/conda.sh\nconda activate x\nsrun bash -c 'conda activate x && python -u t.py'"
    assert of("conda_no_hook", text) == {"warn 3"}


@pytest.mark.parametrize(
    "hook",
    [
        "source /c/etc/profile.d/conda.sh",
        'eval "$(conda shell.bash hook)"',
        'source "$(conda info --base)/etc/profile.d/conda.sh"',
        "source ~/.bashrc",
        "source /c/bin/activate",
        "module load anaconda3",
        "#!/bin/bash -l",
        "source setup.sh",
    ],
)
def test_with_a_hook(hook: str) -> None:
    assert of("conda_no_hook", hook + "\nconda activate x\npython -u t.py") == NOTHING
