"""The last lines of jobs that were stopped: Kubernetes removes a pod's log together with the pod.

One private file for each such job, in a folder of this machine; another machine has no log of it, and says so. Its
first line is the pod's name; the others are the log's as the API told them, each with its time, without credentials.

Never: put a credential on this machine's disk; keep more than a bounded piece, or of more jobs than FILES_MAX; fail
a stop.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from itertools import takewhile
from pathlib import Path

from agent.clusters.kubernetes_objects import moment
from agent.clusters.kubernetes_places import Place
from agent.paths import private, state_dir

FILES_MAX = 200


class Kept:
    """The folder, made when the first log is kept. root: None for the usual one of this cluster."""

    def __init__(self, root: Path | None, cluster: str, redact: Callable[[str], str]) -> None:
        self._root, self._cluster, self._redact = root, cluster, redact

    def read(self, place: Place) -> bytes | None:
        """What was kept of this job; None when nothing was, or it cannot be read."""
        try:
            return self._file(place).read_bytes()
        except OSError:
            return None

    def write(self, place: Place, data: bytes) -> None:
        """Keep it in one step; a later piece replaces an earlier one unless it is empty. Raises OSError."""
        pod, _, lines = data.partition(b"\n")
        if not lines:
            return
        data = pod + b"\n" + without_credentials(lines, self._redact)
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


def without_credentials(lines: bytes, redact: Callable[[str], str]) -> bytes:
    """The lines of a log without what `redact` takes out. It sees the text as the program wrote it, without the times
    in front, since a key can go over several lines; the lines that are left keep their times."""
    times, texts = [], []
    for line in lines.decode(errors="replace").split("\n"):
        at, space, said = line.partition(" ")
        timed = bool(space) and moment(at) is not None
        times.append(f"{at} " if timed else "")
        texts.append(said if timed else line)
    told = redact("\n".join(texts)).split("\n")
    if len(told) != len(texts):  # one went over several lines: those below it keep their times
        pairs = zip(reversed(told), reversed(texts), strict=False)
        below = sum(1 for _ in takewhile(lambda pair: pair[0] in (pair[1], redact(pair[1])), pairs))
        times = [*times[: len(told) - below], *times[len(times) - below :]]
    return "\n".join(map("".join, zip(times, told, strict=True))).encode()
