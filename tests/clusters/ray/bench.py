"""The tests' Ray as the contract wants it: one node with two cores, a workspace that it sees, counted calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from agent.clusters.base import Ref
from agent.clusters.ray import RayCluster
from agent.clusters.ray_delete import JOBS
from agent.clusters.ray_http import Answer, Http
from agent.clusters.ray_logs import TERMINAL
from agent.clusters.ray_runs import facts, folder_of
from states.observation import Observation
from states.spec import Spec
from tests.clusters.ray.engine import Ray, free_ports

CPUS = 2
Until = Callable[..., Observation]


class Counted(Http):
    """Counts its calls."""

    count: Callable[[], None]

    def _call(self, *words: Any, **named: Any) -> Answer:
        self.count()
        return super()._call(*words, **named)


class RayBench:
    """One test's clients and workspace on a cluster that is shared by the session."""

    wait_s = 40.0
    without: Mapping[str, str] = {}
    whole: Mapping[str, Any] = {"cpu": float(CPUS)}

    def __init__(self, ray: Ray, folder: Path, **options: Any) -> None:
        self.ray = ray
        self.workspace = folder / "workspace"
        self.workspace.mkdir()
        self.options = {
            "address": ray.address,
            "workspace_visible": True,
            "heartbeat_s": 0.4,
            "root": folder / "notes",
            **options,
        }
        self._calls = 0

    def client(self, **options: Any) -> RayCluster:
        made = RayCluster("ray", {**self.options, **options})
        counted = Counted(made.options, lambda _: None)
        counted.count = self._count
        made.http = counted
        return made

    def severed(self) -> RayCluster:
        """Nobody listens where it looks for the dashboard."""
        (port,) = free_ports(1)
        return RayCluster("ray", {**self.options, "address": f"http://127.0.0.1:{port}"})

    def spec(self, *command: str, **changes: Any) -> Spec:
        figures = {"cpu": 0.25, "memory_mib": 10, "workspace": str(self.workspace), **changes}
        return Spec(command=command, **figures)

    def calls(self) -> int:
        return self._calls

    def clear(self) -> None:
        """End and remove every job. One that still waits is withdrawn, and removed when Ray has come to it."""
        client = RayCluster("ray", self.options)

        def lives(record: Mapping[str, Any]) -> bool:
            return record["status"] not in TERMINAL and "withdrawn" not in facts(folder_of(record))

        for record in client._records():
            if record["status"] not in TERMINAL:
                client.stop(Ref(str(record["submission_id"])))
        self.ray.wait(lambda: not any(map(lives, client._records())), 30.0)
        for record in client._records():
            if record["status"] in TERMINAL:
                client.http.send("DELETE", f"{JOBS}{record['submission_id']}")

    def _count(self) -> None:
        self._calls += 1
