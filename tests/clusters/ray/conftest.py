"""What the tests of a real Ray have: a bench, a client, a way to wait for a phase. `ray` is the file's own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.clusters.base import Ref
from agent.clusters.ray import RayCluster
from states.observation import Observation, Phase
from tests.clusters.bench import OVER, Eventually, look
from tests.clusters.ray.bench import RayBench, Until
from tests.clusters.ray.engine import Ray


@pytest.fixture
def bench(ray: Ray, tmp_path: Path) -> Iterator[RayBench]:
    bench = RayBench(ray, tmp_path)
    yield bench
    bench.clear()


@pytest.fixture
def cluster(bench: RayBench) -> RayCluster:
    return bench.client()


@pytest.fixture
def until(bench: RayBench, eventually: Eventually) -> Until:
    """`until(ref, Phase.running)`: the first look that shows one of these phases (by default any end)."""

    def wait(ref: Ref, *phases: Phase) -> Observation:
        client = bench.client()
        seen: Observation = eventually(
            lambda: seen if (seen := look(client, ref)).phase in (phases or OVER) else None,
            within_s=bench.wait_s,
        )
        return seen

    return wait
