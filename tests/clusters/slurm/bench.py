"""The tests' Slurm as the contract wants it: node n1 alone, partition `solo`, idle lane `solospot`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from agent.clusters.run import Ran
from agent.clusters.slurm import SlurmCluster
from agent.clusters.slurm_commands import Commands
from agent.clusters.slurm_lookup import Lookup
from states.observation import Observation
from states.spec import Spec
from tests.clusters.slurm.configuration import CPUS
from tests.clusters.slurm.engine import Slurm

Until = Callable[..., Observation]


class Counted(Commands):
    """Counts the programs it starts."""

    started: list[str]

    def run(self, program: str, *words: str, stdin: str | None = None, timeout_s: float | None = None) -> Ran:
        self.started.append(program)
        return super().run(program, *words, stdin=stdin, timeout_s=timeout_s)


class SlurmBench:
    """One test's clients and workspace on a cluster that is shared by the session."""

    wait_s = 60.0
    without: Mapping[str, str] = {}
    whole: Mapping[str, Any] = {"cpu": float(CPUS)}

    def __init__(self, slurm: Slurm, folder: Path, **options: Any) -> None:
        self.slurm = slurm
        self.workspace = folder / "workspace"
        self.workspace.mkdir()
        self.options = {
            "conf": str(slurm.conf), "partition": "solo", "idle": {"partition": "solospot"}, **options
        }  # fmt: skip
        self.started: list[str] = []

    def client(self, **options: Any) -> SlurmCluster:
        """It has asked already what the cluster is like and who it is there: once is enough for a process."""
        made = SlurmCluster("slurm", {**self.options, **options})
        made.commands = Counted(made.options)
        made.commands.started = self.started
        made.lookup = Lookup(made.commands)
        made.facts()
        made.lookup.user()
        return made

    def client_now(self, **options: Any) -> SlurmCluster:
        """One that has not asked anything yet."""
        return SlurmCluster("slurm", {**self.options, **options})

    def severed(self) -> SlurmCluster:
        """Nobody listens where it looks for the controller."""
        return SlurmCluster("slurm", {**self.options, "conf": str(self.slurm.nowhere)})

    def spec(self, *command: str, **changes: Any) -> Spec:
        figures = {"cpu": 1.0, "memory_mib": 20, "workspace": str(self.workspace), **changes}
        return Spec(command=command, **figures)

    def calls(self) -> int:
        return len(self.started)
