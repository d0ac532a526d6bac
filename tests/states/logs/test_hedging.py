"""Wording: what only advises or supposes is no evidence; what is mild was lived through."""

from __future__ import annotations

import pytest

from states.logs import hedging

WHAT = "out of memory"


@pytest.mark.parametrize(
    "line",
    [
        "you may encounter an out of memory error",
        "Consider a smaller batch to avoid out of memory",
        "if you see out of memory, shard more",
        "  --on-oom MODE   what to do when out of memory",
        "Namespace(lr=3, note='out of memory')",
        "out of memory in the cache: falling back to the host",
        "out of memory while probing; this can be safely ignored",
    ],
)
def test_advice_supposition_and_options_are_no_evidence(line: str) -> None:
    assert hedging.supposed(line, line.index(WHAT))


@pytest.mark.parametrize(
    "line",
    [
        "RuntimeError: out of memory",
        "out of memory. If reserved memory is large try a smaller batch",
        "ERROR: out of memory",
    ],
)
def test_a_statement_is_evidence_whatever_advice_follows(line: str) -> None:
    assert not hedging.supposed(line, line.index(WHAT))


@pytest.mark.parametrize(
    ("line", "mild"),
    [
        ("WARNING x: cannot reach the hub", True),
        ("2024-05-06 07:08:09 | INFO | a:b:3 - cannot reach the hub", True),
        ("cannot reach the hub, retrying in 3 s", True),
        ("W0506 07:08:09 a.cc:3] cannot reach the hub", True),
        ("NCCL WARN cannot reach the peer", False),
        ("ERROR x: cannot reach the hub", False),
        ("cannot reach the hub", False),
        ("INFO last words: ERROR cannot reach the hub", False),
    ],
)
def test_what_is_below_error_level_or_tried_again_is_mild(line: str, mild: bool) -> None:
    assert hedging.mild(line) is mild


@pytest.mark.parametrize(
    "line", ["go.sh: line 3: x: command not found", "cp: cannot stat 'a'", "/bin/sh: 1: x: not found"]
)
def test_a_shell_s_complaint_is_known(line: str) -> None:
    assert hedging.of_shell(line)
    assert not hedging.of_shell("ValueError: " + line)


def test_the_rest_after_a_logger_s_prefix() -> None:
    assert hedging.after_logger("[a.py:3] ValueError: odd") == "ValueError: odd"
    assert hedging.after_logger("2024 - demo - ERROR - ValueError: odd") == "ValueError: odd"
    assert hedging.after_logger("ValueError - odd") is None
