"""A local cluster of a known size in a test's own folder, and the certainty that nothing of it lives on."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import psutil

from agent.clusters.local import LocalCluster
from agent.clusters.local_records import Store
from agent.clusters.local_time import pause
from states.spec import Spec


class CountedLocal(LocalCluster):
    """Counts how often its state is asked."""

    def __init__(self, name: str, options: Mapping[str, Any], count: Callable[[], None]) -> None:
        super().__init__(name, options)
        self.count = count

    @contextlib.contextmanager
    def _locked(self) -> Iterator[Store]:
        self.count()
        with super()._locked() as store:
            yield store


class LocalBench:
    """Two cores, 2000 MiB and two (named, not real) GPUs; a stop's grace is short."""

    wait_s = 15.0
    without: Mapping[str, str] = {}
    whole: Mapping[str, Any] = {"cpu": 2.0}

    def __init__(self, folder: Path, **options: Any) -> None:
        self.folder = folder
        self.workspace = folder / "workspace"
        self.workspace.mkdir()
        self.root = folder / "state"
        self.options = {
            "root": self.root, "cpu": 2, "memory_mib": 2000, "gpu": 2, "stop_grace_s": 0.3, **options
        }  # fmt: skip
        self._calls = 0

    def client(self) -> LocalCluster:
        return CountedLocal("local", self.options, self._count)

    def severed(self) -> LocalCluster:
        """Its state folder is a file: the disk answers, and not with a folder."""
        (self.folder / "away").touch()
        return LocalCluster("local", {**self.options, "root": self.folder / "away"})

    def spec(self, *command: str, **changes: Any) -> Spec:
        figures = {"cpu": 0.25, "memory_mib": 10, "workspace": str(self.workspace), **changes}
        return Spec(command=command, **figures)

    def calls(self) -> int:
        return self._calls

    def close(self) -> None:
        """Kill every process that stands in the workspace or by its jobs, until there is none."""
        while left := [process for process in psutil.process_iter() if self._is_ours(process)]:
            for process in left:
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.kill()
            pause(0.01)

    def launchers(self) -> list[psutil.Process]:
        """Those that stand by this bench's jobs."""
        return [process for process in psutil.process_iter() if self._stands_by(process)]

    def _count(self) -> None:
        self._calls += 1

    def _is_ours(self, process: psutil.Process) -> bool:
        try:
            return Path(process.cwd()).is_relative_to(self.folder) or self._stands_by(process)
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            return False

    def _stands_by(self, process: psutil.Process) -> bool:
        try:
            return str(self.root) in process.cmdline() and process.status() != psutil.STATUS_ZOMBIE
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            return False
