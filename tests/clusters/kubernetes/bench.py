"""A Kubernetes cluster of a known size in a test's own folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agent.clusters.kubernetes import KubernetesCluster
from states.spec import Spec
from tests.clusters.kubernetes.server import Emulator


class KubernetesBench:
    """Two nodes: one of two cores, 2000 MiB and two GPUs, and a smaller one that is cordoned."""

    wait_s = 20.0
    without: Mapping[str, str] = {}
    whole: Mapping[str, Any] = {"cpu": 2.0}

    def __init__(self, folder: Path, **options: Any) -> None:
        self.folder = folder
        self.workspace = folder / "workspace"
        self.workspace.mkdir()
        self.emulator = Emulator()
        self.emulator.node(
            "n1", cpu="2", memory=f"{2000 << 10}Ki", gpu="2", pods="110"
        )  # as kubelets word it
        for name, value in (("usual", 100), ("spare", -10)):
            self.emulator.store.create("priorityclasses", {"metadata": {"name": name}, "value": value})
        self.options = {
            "kubeconfig": self.emulator.write_kubeconfig(folder / "here.kubeconfig"),
            "storage": {str(self.workspace): f"host:{self.workspace}"},
            "priority_class": "usual",
            "idle_priority_class": "spare",
            "stop_grace_s": 2,
            "timeout_s": 10,
            "root": folder / "kept",
            **options,
        }

    def client(self, **options: Any) -> KubernetesCluster:
        return KubernetesCluster("kubernetes", {**self.options, **options})

    def severed(self) -> KubernetesCluster:
        """Nobody listens at that port."""
        away = self.emulator.write_kubeconfig(self.folder / "away.kubeconfig", "http://127.0.0.1:9")
        return KubernetesCluster("kubernetes", {**self.options, "kubeconfig": away})

    def spec(self, *command: str, **changes: Any) -> Spec:
        figures = {
            "cpu": 0.25,
            "memory_mib": 10,
            "workspace": str(self.workspace),
            "image": "here/any:1",
            **changes,
        }
        return Spec(command=command, **figures)

    def calls(self) -> int:
        return len(self.emulator.calls)

    def close(self) -> None:
        self.emulator.close()
