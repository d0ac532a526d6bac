"""examples/digits/train.py, run as a cluster would run it: as a program of its own, on the real images."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

SCRIPT = Path(__file__).parents[2] / "examples" / "digits" / "train.py"
STEPS = ["--steps", "60", "--every", "10", "--checkpoint-every", "10", "--keep", "2"]


def command(out: Path, *flags: str) -> list[str]:
    return [sys.executable, "-W", "error", str(SCRIPT), "--out", str(out), *STEPS, *flags]


def run(out: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command(out, *flags), capture_output=True, text=True, check=False)


def milestones(log: str) -> list[tuple[int, float]]:
    """The step and the loss of each line that has them."""
    return [(int(step), float(loss)) for step, loss in re.findall(r"^step (\d+)/60 loss (\S+)", log, re.M)]


def checkpoints(out: Path) -> list[str]:
    return sorted(path.name for path in (out / "checkpoints").iterdir())


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """One uninterrupted run, with a stall on its way: its folder and its log."""
    out = tmp_path_factory.mktemp("whole")
    done = run(out, "--stall-at", "25", "--stall-s", "0.5")
    assert done.returncode == 0, done.stderr
    return out, done.stdout


def test_the_loss_falls_and_the_accuracy_is_real(whole: tuple[Path, str]) -> None:
    out, log = whole
    seen = milestones(log)
    assert [step for step, _ in seen] == [10, 20, 30, 40, 50, 60]
    assert seen[-1][1] < seen[0][1] / 2
    metrics = json.loads((out / "metrics.json").read_text())
    assert metrics["steps"] == 60
    assert metrics["loss"] == pytest.approx(seen[-1][1], abs=1e-4)
    assert 0.8 < metrics["accuracy"] <= 1.0


def test_only_the_last_checkpoints_are_kept(whole: tuple[Path, str]) -> None:
    assert checkpoints(whole[0]) == ["step-000050.npz", "step-000060.npz"]


def test_a_stall_prints_without_a_new_milestone(whole: tuple[Path, str]) -> None:
    lines = whole[1].splitlines()
    at = lines.index("data: loading shard 3 of 4, retrying")
    assert lines[at - 1].startswith("step 20/60")
    assert lines[at + 1].startswith("step 30/60")


def test_a_crashed_run_resumes_at_its_last_checkpoint_and_ends_with_the_same_model(
    whole: tuple[Path, str], tmp_path: Path
) -> None:
    crashed = run(tmp_path, "--crash-at", "35")
    assert crashed.returncode == 1
    assert "RuntimeError" in crashed.stderr
    assert not (tmp_path / "model.npz").exists()
    assert checkpoints(tmp_path) == ["step-000020.npz", "step-000030.npz"]

    resumed = run(tmp_path, "--resume")
    assert resumed.returncode == 0
    assert "resuming from step 30" in resumed.stdout
    assert milestones(resumed.stdout) == milestones(whole[1])[3:]
    with np.load(tmp_path / "model.npz") as model, np.load(whole[0] / "model.npz") as expected:
        for name in expected.files:
            np.testing.assert_array_equal(model[name], expected[name])


def test_a_complete_run_is_not_resumed_but_run_anew(tmp_path: Path) -> None:
    first, second = run(tmp_path, "--resume"), run(tmp_path, "--resume")
    assert second.returncode == 0
    assert milestones(second.stdout) == milestones(first.stdout)


def test_a_diverged_run_stays_nan_and_a_stopped_one_leaves_a_checkpoint(tmp_path: Path) -> None:
    flags = ("--nan-at", "15", "--step-delay-s", "0.02")
    with subprocess.Popen(command(tmp_path, *flags), stdout=subprocess.PIPE, text=True) as training:
        assert training.stdout is not None
        lines = iter(training.stdout.readline, "")
        log = [next(line for line in lines if line.startswith(f"step {step}/")) for step in (10, 20, 30)]
        training.send_signal(signal.SIGTERM)
        last = list(lines)[-1]
        assert training.wait() == 128 + signal.SIGTERM
    assert ["nan" in line for line in log] == [False, True, True]
    step = int(re.fullmatch(r"stopped by SIGTERM at step (\d+), checkpoint written\n", last)[1])  # type: ignore[index]
    assert 30 <= step < 60
    assert checkpoints(tmp_path)[-1] == f"step-{step:06d}.npz"


def test_wrong_flags_are_refused_before_anything_is_written(tmp_path: Path) -> None:
    out = tmp_path / "never"
    refused = run(out, "--steps", "0")
    assert refused.returncode == 2
    assert "0 is not 1 or more" in refused.stderr
    assert not out.exists()
