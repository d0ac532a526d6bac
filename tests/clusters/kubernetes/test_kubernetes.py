"""Kubernetes: the contract, against an emulated API server over real HTTP."""

from __future__ import annotations

import pytest

from tests.clusters.contract import ClusterContract

pytest.importorskip("kubernetes", reason="the extra `kubernetes` is not installed")


class TestTheContract(ClusterContract):
    """With the `bench` of this folder."""
