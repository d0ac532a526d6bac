"""What a soak measures of its agents, and its table.

Never: a figure without its unit.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence

import psutil

from agent.clusters.local_time import monotonic_s

MIB = 1 << 20
WARM_S = 10.0
"""An agent has imported what it uses and filled its caches by then."""


class Life:
    """One agent process from its first sample to its last. Seconds, bytes, file descriptors."""

    def __init__(self, process: psutil.Process) -> None:
        self.process = process
        self.began = self.at = monotonic_s()
        self.cpu_s = 0.0
        self.rss: list[tuple[float, int]] = []
        self.descriptors: list[int] = []

    def sample(self) -> None:
        """Look once; an agent that was killed meanwhile keeps its last figures."""
        with contextlib.suppress(psutil.Error):
            with self.process.oneshot():
                times = self.process.cpu_times()
                rss, descriptors = self.process.memory_info().rss, self.process.num_fds()
            self.at = monotonic_s()
            self.cpu_s = times.user + times.system + times.children_user + times.children_system
            self.rss.append((self.at - self.began, rss))
            self.descriptors.append(descriptors)

    @property
    def seconds(self) -> float:
        return self.at - self.began

    def warm(self) -> list[int]:
        """RSS from WARM_S on."""
        return [rss for after_s, rss in self.rss if after_s >= WARM_S]


def figures(lives: Sequence[Life], runs: int, database_bytes: int) -> dict[str, str]:
    """The agents' cost in words. Memory is of the longest life, from when it was warm to its end."""
    if not lives:
        return {}
    longest = max(lives, key=lambda life: life.seconds)
    warm = longest.warm() or [rss for _, rss in longest.rss] or [0]
    watched_s = sum(life.seconds for life in lives)
    share = sum(life.cpu_s for life in lives) / max(watched_s, 1e-9)
    descriptors = longest.descriptors or [0]
    return {
        "lives of the agent": f"{len(lives)}, the longest {longest.seconds:.0f} s",
        "its memory in that life": (
            f"{warm[0] / MIB:.1f} MiB when warm, {warm[-1] / MIB:.1f} at the end, {max(warm) / MIB:.1f} at most"
        ),
        "its file descriptors": f"{descriptors[0]} then, {descriptors[-1]} at the end, {max(descriptors)} at most",
        "CPU of all lives": f"{100 * share:.1f} % of a core, with the programs it called",
        "database": f"{database_bytes / 1024 / max(runs, 1):.0f} KiB a run",
    }


def table(parts: Mapping[str, Mapping[str, object]]) -> str:
    """Titles and lines of two columns."""
    width = max((len(name) for lines in parts.values() for name in lines), default=0)
    return "\n".join(
        f"{title}\n" + "".join(f"  {name:<{width}}  {value}\n" for name, value in lines.items())
        for title, lines in parts.items()
    )
