"""The benchmark of the reader, on two tiny corpora of its own."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import yaml

from tests.benchmarks.reading import main
from tests.benchmarks.stories import action_of

CRASH = 'Traceback (most recent call last):\n  File "fit.py", line 9, in fit\nKeyError: "depth"\n'
STEPS = "".join(f"2031-04-05 06:07:{at:02d} step {at}/90 loss {2 - at / 90:.2f}\n" for at in range(60))


def run(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setattr(sys, "argv", ["reading", *words])
    return main()


def put(folder: Path, log: str, label: dict[str, object]) -> None:
    folder.mkdir(parents=True)
    (folder / "log.txt").write_text(log)
    (folder / "case.yaml").write_text(yaml.safe_dump(label))


def failure(cause: str, verdict: str, root_line: str) -> dict[str, object]:
    return {"cause": cause, "also": [], "verdict": verdict, "root_line": root_line}


def moving(verdict: str, step: float, silence_s: float | None = None) -> dict[str, object]:
    truth = {
        "verdict": verdict,
        "step_last": {"value": step, "unit": "step"},
        "loss_last": 1.34,
        "eta_s": None,
        "silence_s_at_observation": silence_s,
    }
    return {"truth": truth}


def test_it_says_so_when_the_corpora_are_absent(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert run(monkeypatch, str(tmp_path / "absent")) == 0
    assert "not here" in capsys.readouterr().out


def test_hits_misses_alarms_and_wrong_stops_are_counted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr("tests.benchmarks.reading.SPEED_MB", 5)
    put(tmp_path / "failures" / "hit", STEPS + CRASH, failure("code.exception", "failed", "KeyError"))
    put(tmp_path / "failures" / "alarm", CRASH, failure("none", "progressing", "nothing"))
    put(tmp_path / "progress" / "hit", STEPS, moving("progressing", 59))
    put(tmp_path / "progress" / "wrong", STEPS, moving("progressing", 60, 9000.0))
    assert run(monkeypatch, str(tmp_path), "--misses") == 0
    shown = capsys.readouterr().out
    assert "cause                         1 of    2   50.0 %" in shown
    assert "evidence line                 1 of    1  100.0 %" in shown
    assert "step is main                  1 of    2   50.0 %" in shown
    assert "wrong stops   1 ['wrong']" in shown
    assert "false alarms  1 ['alarm']" in shown
    assert "none -> code.exception" in shown


@pytest.mark.parametrize(
    ("history", "action"),
    [
        ([{"t": 0, "phase": "PENDING", "norm": "pending", "reason": "Priority"}], "wait"),
        ([{"t": 0, "phase": "PENDING", "norm": "pending", "reason": "PartitionTimeLimit"}], "fix_spec"),
        ([{"t": 0, "phase": "PENDING", "norm": "pending", "reason": "JobHeldUser"}], "ask"),
        ([{"t": 0, "phase": "CANCELLED", "norm": "stopped"}], "wrap_up"),
        ([{"t": 0, "phase": "PREEMPTED", "norm": "preempted"}], "resubmit"),
        ([{"t": 0, "phase": "?", "norm": "unknown"}], "ask"),
        ([{"t": at, "phase": "Running", "norm": "running", "exit_code": 1} for at in (0, 900)], "stop"),
        (
            [{"t": 0, "phase": "Failed", "norm": "failed", "reason": "OOMKilled", "exit_code": 137}],
            "fix_spec",
        ),
    ],
)
def test_a_story_comes_to_an_action(history: list[dict[str, object]], action: str) -> None:
    assert action_of({"history": history}) == action
