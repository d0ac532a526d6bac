"""Directives: lost, rejected, commented out on purpose, and the missing limit."""

from __future__ import annotations

import pytest

from tests.states.lint.judged import NOTHING, of

HEAD = "#!/bin/bash\n#SBATCH --time=1:00:00\n"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("# first\n#!/bin/bash\n#SBATCH -p gpu\n", 2),
        ("#SBATCH -p gpu\npython -u t.py\n", 1),
        ("##!/bin/bash\n#SBATCH -p gpu\n", 1),
        (HEAD + "module load x\n#SBATCH --gres=gpu:1\n", 4),
        (HEAD + " #SBATCH --gres=gpu:1\n", 3),
        (HEAD + "SBATCH --gres=gpu:1\n", 3),
        (HEAD + "#SBATCH -gres=gpu:1\n", 3),
        (HEAD + "#SBATCH --ntask=4\n", 3),
        (HEAD + "#SBATCH --mem = 4G\n", 3),
        (HEAD + "#SBATCH --mem\n", 3),
        (HEAD + "#SBATCH --output=$HOME/x.out\n", 3),
        (HEAD + "#SBATCH –-mem=4G\n", 3),
        ("#!/bin/bash\n#SBATCH --time=24h\n", 2),
        ("#!/bin/bash\n# SBATCH --time=1:00:00\n", 2),
    ],
)
def test_what_the_scheduler_would_not_take(text: str, line: int) -> None:
    assert of("bad_directive", text + "python -u t.py\n") == {f"refuse {line}"}


@pytest.mark.parametrize(
    "line",
    [
        "##SBATCH --qos=x",
        "#####SBATCH -p new",
        "#SBATCH  --gres gpu:1   # one card",
        "#SBATCH -n4",
        "#SBATCH --cpus-per-task 4",
        "#SBATCH --time=2-12:00",
        "#SBATCH --mail-user=<you>@host.example",
        "#SBATCH --array=1-10%2",
        "#SBATCH --constraint='a|b'",
    ],
)
def test_what_it_takes(line: str) -> None:
    assert of("bad_directive", HEAD + line + "\npython -u t.py\n") == NOTHING


def test_a_half_shebang_elsewhere_is_a_note() -> None:
    assert of("bad_directive", "#/bin/sh\npython -u t.py\n", cluster="ray") == {"note 1"}


def test_windows_line_ends() -> None:
    assert of("bad_directive", HEAD.replace("\n", "\r\n") + "python -u t.py\r\n") == {"refuse 1"}


def test_the_time_limit() -> None:
    assert of("no_time_limit", "#!/bin/bash\n#SBATCH -p gpu\npython -u t.py\n") == {"note 0"}
    assert of("no_time_limit", HEAD + "python -u t.py\n") == NOTHING
    assert of("no_time_limit", "#!/bin/bash\n#PBS -l walltime=1:00:00\npython -u t.py\n") == NOTHING
    assert of("no_time_limit", "sbatch <<EOF\n#!/bin/bash\npython -u t.py\nEOF\n") == {"note 0"}
    assert of("no_time_limit", "sbatch -t 10 <<EOF\n#!/bin/bash\npython -u t.py\nEOF\n") == NOTHING
