"""Whole little logs in shapes that no benchmark holds (`heldout/*.toml`), each judged as `wk read` judges a file.

They were written from knowledge of the tools before the reader saw them, to measure how general it is.
"""

from __future__ import annotations

import math
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from states.policy import Policy
from states.reading import Scene, Track
from states.text import lines
from states.verdict import Looked, look

FOLDER = Path(__file__).parent / "heldout"
_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def held(table: str) -> list[dict[str, Any]]:
    logs: list[dict[str, Any]] = tomllib.loads((FOLDER / f"{table}.toml").read_text("utf-8"))["log"]
    assert logs, "an empty table shows nothing"
    return logs


def read(log: dict[str, Any]) -> Looked:
    text = log["text"].lstrip("\n")
    scene = Scene(
        phase="unknown",
        reasons=tuple(log.get("reasons", ())),
        exit_code=log.get("exit"),
        silence_s=log.get("silence"),
    )
    return look(lines(text), scene, Policy(), before=Track(), fingerprint="f", bytes_read=len(text))


def wrong_progress(log: dict[str, Any]) -> list[str]:
    """What the reading of a log that did not fail gets wrong; empty when it is right."""
    seen = read(log)
    progress, wrong = seen.digest.progress, []
    if seen.verdict.name not in (log["verdict"], *log.get("accept", ())):
        wrong.append(f"verdict {seen.verdict.name}: {seen.verdict.summary}")
    main = progress.main
    among = {one.name: one.value for one in progress.counters}
    if "step" in log and (main is None or main.value != log["step"]):
        wrong.append(f"main {main and (main.name, main.value)} of {among}")
    if "seen" in log and log["seen"] not in among.values():
        wrong.append(f"seen {among}")
    if "total" in log and log["total"] not in [one.total for one in progress.counters]:
        wrong.append(f"total {[one.total for one in progress.counters]}")
    if "loss" in log and (progress.loss is None or not math.isclose(progress.loss, log["loss"])):
        wrong.append(f"loss {progress.loss}")
    if "eta_s" in log and (progress.log_eta_s is None or abs(progress.log_eta_s - log["eta_s"]) > 1):
        wrong.append(f"eta {progress.log_eta_s}")
    return wrong


def wrong_cause(log: dict[str, Any]) -> list[str]:
    """What the reading of a failed, or only frightening, log gets wrong."""
    seen, wrong = read(log), []
    told = seen.digest.diagnosis
    if told.cause != log["cause"]:
        wrong.append(
            f"cause {told.cause} also {told.also}, evidence {[quote.text for quote in told.evidence]}"
        )
    if log["cause"] == "none":
        if seen.verdict.name in ("failed", "failing", "looping", "hung"):
            wrong.append(f"verdict {seen.verdict.name}: {seen.verdict.summary}")
        return wrong
    raw = [_ANSI.sub("", line) for line in log["text"].lstrip("\n").split("\n")]
    quoted = [quote.text for quote in told.evidence] + [
        raw[quote.line - 1] for quote in told.evidence if quote.line
    ]
    if not any(log["root"] in text for text in quoted):
        wrong.append(f"evidence {[(quote.line, quote.text[:100]) for quote in told.evidence]}")
    return wrong


@pytest.mark.parametrize("table", ["training", "tools", "second_progress", "third", "fifth"])
def test_how_far_a_run_is(table: str) -> None:
    assert {log["name"]: wrong for log in held(table) if (wrong := wrong_progress(log))} == {}


@pytest.mark.parametrize("table", ["failures_runs", "failures_around", "second_failures", "fourth"])
def test_what_a_run_failed_of(table: str) -> None:
    assert {log["name"]: wrong for log in held(table) if (wrong := wrong_cause(log))} == {}
