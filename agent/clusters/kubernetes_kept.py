"""The last lines of jobs that were stopped: Kubernetes removes a pod's log together with the pod.

One private file for each such job, in a folder of this machine; another machine has no log of it, and says so.

Never: keep more than a bounded piece, or of more jobs than FILES_MAX; fail a stop.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from agent.clusters.kubernetes_places import Place
from agent.paths import private, state_dir

FILES_MAX = 200


class Kept:
    """The folder, made when the first log is kept. root: None for the usual one of this cluster."""

    def __init__(self, root: Path | None, cluster: str) -> None:
        self._root, self._cluster = root, cluster

    def read(self, place: Place) -> bytes | None:
        """What was kept of this job; None when nothing was, or it cannot be read."""
        try:
            return self._file(place).read_bytes()
        except OSError:
            return None

    def write(self, place: Place, data: bytes) -> None:
        """Keep it in one step; a later piece replaces an earlier one unless it is empty. Raises OSError."""
        _, _, lines = data.partition(b"\n")
        if not lines:
            return
        private(self._folder())
        file = self._file(place)
        draft = file.with_name(f"{file.name}.{os.getpid()}")
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as out:
            out.write(data)
        draft.replace(file)
        self._prune()

    def forget(self, place: Place) -> None:
        """Idempotent."""
        with contextlib.suppress(OSError):
            self._file(place).unlink(missing_ok=True)

    def _folder(self) -> Path:
        return self._root or state_dir(os.environ) / "kubernetes" / self._cluster.replace("/", "-")

    def _file(self, place: Place) -> Path:
        return self._folder() / f"{place.namespace}~{place.name}.log"

    def _prune(self) -> None:
        files = sorted(self._folder().glob("*.log"), key=lambda file: file.stat().st_mtime)
        for file in files[:-FILES_MAX]:
            file.unlink(missing_ok=True)
