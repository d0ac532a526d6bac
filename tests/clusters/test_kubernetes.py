"""Kubernetes: the contract, against an emulated API server over real HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clusters.contract import ClusterContract
from tests.clusters.kubernetes.bench import KubernetesBench

pytest.importorskip("kubernetes", reason="the extra `kubernetes` is not installed")


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[KubernetesBench]:
    bench = KubernetesBench(tmp_path)
    yield bench
    bench.close()


class TestTheContract(ClusterContract):
    """With the `bench` of this file."""
