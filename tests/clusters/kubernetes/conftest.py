"""What the tests of the Kubernetes cluster have: a bench, a client, a way to wait for a phase."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.clusters.base import Ref
from agent.clusters.kubernetes import KubernetesCluster
from states.observation import Observation, Phase
from tests.clusters.bench import OVER, Eventually, look
from tests.clusters.kubernetes.bench import KubernetesBench
from tests.clusters.kubernetes.steps import Until


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[KubernetesBench]:
    bench = KubernetesBench(tmp_path)
    yield bench
    bench.close()


@pytest.fixture
def cluster(bench: KubernetesBench) -> KubernetesCluster:
    return bench.client()


@pytest.fixture
def until(bench: KubernetesBench, eventually: Eventually) -> Until:
    """`until(ref, Phase.running)`: the first look that shows one of these phases (by default any end)."""

    def wait(ref: Ref, *phases: Phase, client: KubernetesCluster | None = None) -> Observation:
        asked = client or bench.client()

        def shows() -> Observation | None:
            seen = look(asked, ref)
            return seen if seen.phase in (phases or OVER) and not seen.finishing else None

        found: Observation = eventually(shows, within_s=bench.wait_s)
        return found

    return wait
