"""The stories in Brain++'s own words: each goes through `normalise` and the real machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.app import DRIVERS
from agent.scenario import run_file

STORIES = sorted((Path(__file__).parents[2] / "scenarios" / "clusters" / "brainpp").glob("*.yaml"))


def test_there_are_ten_or_more() -> None:
    assert len(STORIES) >= 10


@pytest.mark.parametrize("path", STORIES, ids=lambda path: path.stem)
def test_the_story_holds(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(DRIVERS, "brainpp", "agent.clusters.brainpp:BrainppCluster")
    assert run_file(path).faults == ()
