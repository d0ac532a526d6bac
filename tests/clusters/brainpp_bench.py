"""A fake Brain++ in a test's own folder: two cores, two GPUs, one namespace with a GPU and a CPU group.

The tools are real executables started by the driver; what they are told to do wrong is in `switch`.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agent.clusters.brainpp import BrainppCluster
from agent.clusters.local_time import pause
from states.spec import Spec

FAKE = Path(__file__).parent / "fake_brainpp"
ACCESS_KEY, SECRET_KEY = "persons-access-key-id", "persons-very-secret-key"
SECRETS = {
    "BRAINPP_ACCESS_KEY_ID": ACCESS_KEY,
    "BRAINPP_SECRET_ACCESS_KEY": SECRET_KEY,
    "BRAINPP_CHARGED_GROUP": "lab-a:team_gpu,lab-a:team_cpu",
}
FILESYSTEM = "gpfs://fs1/people/someone"


class BrainppBench:
    """See `tests.clusters.contract.Bench`. switches: as SWITCHES of the fake."""

    wait_s = 20.0
    without: Mapping[str, str] = {
        "test_a_second_job_of_one_name_is_refused_or_told": (
            "what Brain++ says to a metadata name that is taken is not publicly known; the fake refuses it, and"
            " test_brainpp has what the driver makes of that"
        )
    }
    whole: Mapping[str, Any] = {"cpu": 2.0}

    def __init__(self, folder: Path, **options: Any) -> None:
        self.folder = folder
        self.workspace = folder / "workspace"
        self.workspace.mkdir()
        self.state = folder / "platform"
        self.state.mkdir()
        self.secrets = dict(SECRETS)
        self.tools = {tool: self._tool(tool) for tool in ("rjob", "brainctl")}
        self.options = {
            **self.tools,
            "root": str(folder / "notes"),
            "storage": {str(self.workspace): FILESYSTEM, "/shared": "gpfs://fs1/shared"},
            "log_settle_s": 0.01,
            "entry": "https://cluster.example",
            "secrets": self.secrets.get,
            **options,
        }

    def client(self, **options: Any) -> BrainppCluster:
        return BrainppCluster("brainpp", {**self.options, **options})

    def severed(self) -> BrainppCluster:
        """Its network is away."""
        away = self.folder / "away"
        away.mkdir()
        (away / "switches.json").write_text('{"away": "all"}')
        return self.client(rjob=self._tool("rjob", away), brainctl=self._tool("brainctl", away))

    def spec(self, *command: str, **changes: Any) -> Spec:
        figures = {"cpu": 1, "memory_mib": 10, "image": "registry.example/team/base:1"}
        return Spec(command=command, **{**figures, "workspace": str(self.workspace), **changes})

    def calls(self) -> int:
        return len(self.said())

    def said(self) -> list[dict[str, Any]]:
        """Every call so far, as the tools saw it."""
        file = self.state / "calls.jsonl"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    def switch(self, **switches: Any) -> None:
        file = self.state / "switches.json"
        known = json.loads(file.read_text()) if file.exists() else {}
        file.write_text(json.dumps(known | switches))

    def jobs(self) -> dict[str, Any]:
        """The platform's own record of its jobs, by `namespace/name`."""
        return json.loads((self.state / "jobs.json").read_text())

    def close(self) -> None:
        """Kill every replica, also one that is only about to be, until each has its end written down."""
        while left := [pid for pid in self._pid_files() if not pid.with_suffix(".exit").exists()]:
            for pid in filter(Path.exists, left):
                with contextlib.suppress(ProcessLookupError, FileNotFoundError):
                    os.killpg(int(pid.read_text()), signal.SIGKILL)
            pause(0.005)

    def _pid_files(self) -> list[Path]:
        """One for each replica that was started."""
        if not (self.state / "jobs.json").exists():
            return []
        return [
            self.state / f"{job['namespace']}~{job['name']}~{rank}.pid"
            for job in self.jobs().values()
            if job["runs"] and job["phase"] in ("Starting", "Running", "Killing")
            for rank in range(job["figures"]["replicas"])
        ]

    def _tool(self, tool: str, state: Path | None = None) -> str:
        """A tool that knows its platform although its environment is scrubbed."""
        path = self.folder / f"{tool}{'-away' if state else ''}"
        script = FAKE / tool
        path.write_text(
            f'#!/bin/sh\nFAKE_BRAINPP="{state or self.state}" exec "{sys.executable}" -S -E "{script}" "$@"\n'
        )
        path.chmod(0o755)
        return str(path)
