"""Figures and log lines as people write them, in digits and words of both languages."""

from __future__ import annotations

import pytest

from states.chat import Context, figures
from states.chat.marked import marked


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("8 gpus", {"gpu": 8}),
        ("八张卡", {"gpu": 8}),
        ("sixteen cards", {"gpu": 16}),
        ("单卡", {"gpu": 1}),
        ("2x8", {"gpu": 8, "replicas": 2}),
        ("4 nodes, 32 gpus", {"gpu": 8, "replicas": 4}),
        ("4 nodes with 8 gpus each", {"gpu": 8, "replicas": 4}),
        ("每台八卡, 两台机器", {"gpu": 8, "replicas": 2}),
        ("3 nodes, 8 gpus", {"gpu": 8, "replicas": 3}),
        ("1 node 8 gpus", {"gpu": 8}),
        ("--gpu 4 --replicas 2", {"gpu": 4, "replicas": 2}),
        ("16 h100s", {"gpu": 16, "gpu_type": "H100"}),
        ("64g memory and 12 cores", {"memory_mib": 65536, "cpu": 12}),
        ("优先级 3, 闲时", {"priority": 3, "lane": "idle"}),
        ("nothing here", {}),
    ],
)
def test_resources_are_per_replica(text: str, found: dict[str, object]) -> None:
    assert figures.resources(marked(text, Context())) == found


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("last 40 lines", 40),
        ("tail -n 30", 30),
        ("tail -100", 100),
        ("两百行", 200),
        ("最后50行", 50),
        ("last -3 lines", -3),
        ("0 lines", 0),
        ("a thousand words", None),
        ("step 40", None),
    ],
)
def test_lines(text: str, lines: int | None) -> None:
    assert figures.lines_of(text) == lines


@pytest.mark.parametrize(
    ("text", "number"), [("12", 12), ("十六", 16), ("二十", 20), ("两千", 2000), ("eight", 8)]
)
def test_numbers(text: str, number: int) -> None:
    assert figures.count_of(text) == number
    with pytest.raises(ValueError, match="x"):
        figures.count_of("x")
