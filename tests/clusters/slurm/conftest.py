"""The tests' Slurm: one without accounting for the session, shared by the files; a workspace and client per test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.clusters.base import Ref
from agent.clusters.slurm import SlurmCluster
from states.observation import Observation, Phase
from tests.clusters.bench import OVER, Eventually, look
from tests.clusters.slurm.bench import SlurmBench, Until
from tests.clusters.slurm.engine import Slurm, running


@pytest.fixture(scope="session")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    yield from running(tmp_path_factory.mktemp("slurm"), accounting=False)


@pytest.fixture
def bench(slurm: Slurm, tmp_path: Path) -> Iterator[SlurmBench]:
    yield SlurmBench(slurm, tmp_path, partition="normal", idle={"partition": "idle"})
    slurm.clear()


@pytest.fixture
def cluster(bench: SlurmBench) -> SlurmCluster:
    return bench.client()


@pytest.fixture
def until(cluster: SlurmCluster, eventually: Eventually) -> Until:
    """`until(ref, Phase.running)`: the first look that shows one of these phases (by default any end)."""

    def wait(ref: Ref, *phases: Phase) -> Observation:
        found: Observation = eventually(
            lambda: seen if (seen := look(cluster, ref)).phase in (phases or OVER) else None
        )
        return found

    return wait
