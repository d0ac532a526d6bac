"""Package installs: every way in, and what only looks like one (RULES C12)."""

from __future__ import annotations

import pytest

from tests.states.lint.judged import NOTHING, of, python

WORK = "\npython -u train.py\n"


@pytest.mark.parametrize(
    "line",
    [
        "pip install torch",
        "pip3 --quiet install -r req.txt",
        "/opt/env/bin/pip install --no-index w.whl",
        "python -m pip install -U x",
        "conda install -y numpy",
        "mamba env create -f e.yml",
        "uv pip sync req.txt",
        "uv run --with rich python -u a.py",
        "apt-get update && apt-get install -y git",
        "npm ci",
        "python setup.py develop",
        "srun bash -c 'cd x && pip install .'",
        "test -d env || pip install x",
        "bash Miniconda3-latest-Linux-x86_64.sh -b",
        "Rscript -e 'install.packages(\"x\")'",
        'ray job submit --runtime-env-json \'{"pip": ["x"]}\' -- python -u t.py',
    ],
)
def test_an_install_is_refused(line: str) -> None:
    assert of("package_install", line + WORK) == {"refuse 1"}


@pytest.mark.parametrize(
    "line",
    [
        "pip list",
        "pip uninstall -y x",
        "pip install --dry-run x",
        'echo "run pip install x first"',
        "# pip install x",
        "conda activate x",
        "apt list --installed",
        "f() { pip install x; }",
        "cat > Dockerfile <<EOF\nRUN pip install x\nEOF",
    ],
)
def test_what_is_none_is_left_alone(line: str) -> None:
    assert of("package_install", line + WORK) == NOTHING


def test_a_function_that_is_called_installs() -> None:
    assert of("package_install", "f() {\n pip install x\n}\nf" + WORK) == {"refuse 2"}


def test_a_staging_job_installs_on_purpose() -> None:
    text = "python -m venv env\nenv/bin/pip install -r req.txt\npython -c 'import torch'\n"
    assert of("package_install", text) == {"note 2"}
    assert of("package_install", text + WORK, staging=True) == {"note 2"}


def test_python_that_installs() -> None:
    code = (
        "import os, sys, subprocess, ray\n"
        "os.system('pip install x')\n"
        "subprocess.check_call([sys.executable, '-m', 'pip', 'install', 'x'])\n"
        "ray.init(runtime_env={\n 'pip': ['x']})\n"
        "subprocess.run(['pip', 'list'])\n"
    )
    assert python("package_install", code) == {"refuse 2", "refuse 3", "refuse 5"}
