"""Causes of failed runs: whole little logs (`little_logs.toml`), and what the scheduler says beside them."""

from __future__ import annotations

import time
import tomllib
from pathlib import Path

import pytest

from states import text
from states.causes import diagnose
from states.logs import signatures
from states.reading import Diagnosis, Line


def read(log: str, **known: object) -> Diagnosis:
    return diagnose(text.lines(log), **known)  # type: ignore[arg-type]


def block(*frames: str, error: str) -> str:
    """A traceback through the given `path:function`s that ends in `error`."""
    told = "".join(
        f'  File "{path}", line 7, in {name}\n    call()\n'
        for path, _, name in (f.partition(":") for f in frames)
    )
    return f"Traceback (most recent call last):\n{told}{error}\n"


RUNS = tomllib.loads((Path(__file__).parent / "little_logs.toml").read_text(encoding="utf-8"))["run"]
FAILED = [run for run in RUNS if run["cause"] != "none"]
HEALTHY = [run for run in RUNS if run["cause"] == "none"]


@pytest.mark.parametrize("run", FAILED, ids=lambda run: str(run["name"]))
def test_a_failed_run_has_its_cause_and_the_line_that_shows_it(run: dict[str, str]) -> None:
    said = read(run["log"])
    assert said.cause == run["cause"]
    assert any(run["root"] in quote.text for quote in said.evidence), said.evidence
    assert all(quote.text in run["log"].split("\n")[quote.line - 1] for quote in said.evidence)


@pytest.mark.parametrize("run", HEALTHY, ids=lambda run: str(run["name"]))
def test_scary_lines_in_a_healthy_log_are_no_failure(run: dict[str, str]) -> None:
    said = read(run["log"])
    assert (said.cause, said.fatal) == ("none", False), said


STEPS = "".join(f"step {n}/500 loss: {3.0 / n:.4f}\n" for n in range(1, 9))

SAID: list[tuple[tuple[str, ...], int | None, str, str]] = [
    (("OOMKilled",), 137, "go.sh: line 3: 7 Killed   python t.py\n", "memory.host"),
    ((), 137, "go.sh: line 3: 7 Killed   python t.py\n", "memory.host"),
    ((), 137, STEPS, "process.killed"),
    (("TIMEOUT",), None, STEPS, "scheduling.time_limit"),
    (
        ("PREEMPTED",),
        None,
        STEPS + "[rank0]: RuntimeError: Connection reset by peer\n",
        "scheduling.preempted",
    ),
    (("NODE_FAIL",), None, STEPS, "node.lost"),
    (("ImagePullBackOff",), None, "", "image.not_found"),
    (
        ("ImagePullBackOff", 'Failed to pull image "hub.example/a": pull access denied'),
        None,
        "",
        "image.auth",
    ),
    (("Evicted", "The node was low on resource: ephemeral-storage."), None, STEPS, "storage.full"),
    (("Priority",), None, "", "scheduling.capacity"),
    (("0/4 nodes are available: 4 Insufficient example.com/gpu.",), None, "", "scheduling.capacity"),
    (("insufficient group quota: cpu : 65/64",), None, "", "scheduling.quota"),
    (("Error",), 1, block("/w/t.py:m", error="ValueError: odd"), "code.exception"),
    (("Running", "Started container main"), None, STEPS, "none"),
    ((), 127, "", "command.not_found"),
]


@pytest.mark.parametrize(("reasons", "exit_code", "log", "cause"), SAID)
def test_what_the_scheduler_says_confirms_or_starts(
    reasons: tuple[str, ...], exit_code: int | None, log: str, cause: str
) -> None:
    assert read(log, reasons=reasons, exit_code=exit_code).cause == cause


def test_a_confirmed_kill_keeps_the_other_reading() -> None:
    said = read("go.sh: line 3: 7 Killed   python t.py\n")
    assert said.cause == "process.killed"
    assert "memory.host" in said.also


def test_waiting_in_the_queue_is_not_fatal() -> None:
    assert not read("", reasons=("Priority",)).fatal


def test_a_loop_of_failed_fetches_is_named_but_not_fatal() -> None:
    said = read("curl: (7) Failed to connect to files.example port 443\n" * 9)
    assert (said.cause, said.fatal) == ("network.timeout", False)


def test_evidence_keeps_the_original_line_numbers() -> None:
    said = read("one\rtwo\n\n" + block("/w/t.py:m", error="ValueError: odd"))
    assert [quote.line for quote in said.evidence] == [6]


def test_evidence_is_the_line_as_it_stood_with_the_rank_before_it() -> None:
    said = read(
        '[rank2]: Traceback (most recent call last):\n[rank2]:   File "/w/t.py", line 7, in m\n'
        "[rank2]: RuntimeError: CUDA out of memory.\n"
    )
    assert said.evidence[0].text == "[rank2]: RuntimeError: CUDA out of memory."


def test_of_a_long_line_the_telling_piece_is_quoted() -> None:
    (evidence,) = read("x " * 2000 + "RuntimeError: CUDA out of memory. " + "y " * 2000).evidence
    assert "CUDA out of memory" in evidence.text
    assert len(evidence.text) <= 600


def test_samples_of_noise_and_advice_are_no_evidence() -> None:
    for entry in signatures.load().entries:
        if entry.role in ("noise", "advice"):
            assert diagnose([Line(1, entry.sample)]).cause == "none", entry.id


def test_a_faster_matcher_can_be_plugged_in() -> None:
    known = signatures.load()
    asked: list[str] = []

    def candidates(line: str) -> list[int]:
        asked.append(line)
        return [at for at, entry in enumerate(known.entries) if entry.id == "cuda-oom"]

    assert diagnose([Line(1, "CUDA out of memory")], candidates=candidates).cause == "memory.gpu"
    assert asked == ["CUDA out of memory"]


def test_hostile_lines_cost_no_more_than_linear_time() -> None:
    hostile = [
        "Traceback (most recent call last): " * 300,
        "CUDA error: " + "a" * 12_000,
        "nodes are available: " * 600,
        "Error: " * 1700,
        '  File "' + "x" * 12_000,
        "NCCL WARN " * 1200,
        "loss: nan " * 1200,
        "(pid=" * 2400,
    ]
    begun = time.perf_counter()
    diagnose([Line(number, one) for number, one in enumerate(hostile * 5, 1)])
    assert time.perf_counter() - begun < 5.0
