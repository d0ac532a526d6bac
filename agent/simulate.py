"""Simulation from the outside: play many seeds, play a share of them twice, make small what fails (`wk simulate`).

Never: a seed that passes because it was not looked at: what cannot be played is a failure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from agent.clock import SystemClock
from agent.simulation.run import Ran, run_data
from agent.simulation.saving import save
from agent.simulation.shrink import shrink
from agent.simulation.stories import data_of
from agent.simulation.workers import play_seeds

TWICE_EVERY = 20
"""Every so many seeds one is played a second time, with another hash seed."""

HASH_SEEDS = (1, 2)
SHRUNK_MAX = 5
"""How many failing seeds are made small; the others are told by number."""


class Simulated(NamedTuple):
    """What came of all seeds. failed: those with faults; unlike: those whose two playings differ.

    saved: the files of the failing ones, made small. seconds: of wall time for the first playing; hours: of virtual.
    """

    seeds: int
    failed: tuple[Ran, ...]
    twice: int
    unlike: tuple[int, ...]
    saved: tuple[Path, ...]
    ends: Counter[str]
    questions: int
    submits: int
    runs: int
    seconds: float
    hours: float

    @property
    def holds(self) -> bool:
        """Nothing failed, and every second playing was as the first."""
        return not self.failed and not self.unlike

    def lines(self) -> list[str]:
        """For people."""
        each = self.seeds / self.seconds if self.seconds else 0.0
        ends = ", ".join(f"{count} {state}" for state, count in self.ends.most_common())
        lines = [
            f"{self.seeds} seeds in {self.seconds:.0f} s ({each:.1f} a second), {self.hours:,.0f} virtual hours",
            f"{self.runs} runs: {ends}; {self.submits} submits, {self.questions} questions",
            f"{self.twice} played twice under two hash seeds, {len(self.unlike)} differ",
        ]
        for ran in self.failed[:50]:
            lines += [f"FAIL seed {ran.seed}", *(f"       {fault}" for fault in ran.faults[:5])]
        lines += [f"FAIL seed {seed}: two playings differ" for seed in self.unlike]
        lines += [f"written down: {file} (play it: wk scenario run {file})" for file in self.saved]
        return [*lines, "all hold" if self.holds else f"{len(self.failed)} seeds failed"]


def simulate(
    seeds: Sequence[int],
    *,
    jobs: int = 1,
    to: Path | None = None,
    twice_every: int = TWICE_EVERY,
    told: Callable[[Ran], None] = lambda ran: None,
) -> Simulated:
    """Play the seeds. to: the folder for failing stories, made small (None: they are not made small).

    told: called for each seed as it is done. Raises RuntimeError when a process dies.
    """
    clock = SystemClock()
    began = clock.now()
    first = play_seeds(seeds, jobs=jobs, hash_seed=HASH_SEEDS[0], told=told)
    seconds = (clock.now() - began).total_seconds()
    again = [seed for seed in seeds if seed % twice_every == 0]
    marks = {ran.seed: ran.mark for ran in first}
    second = play_seeds(again, jobs=jobs, hash_seed=HASH_SEEDS[1])
    failed = tuple(ran for ran in first if ran.faults)
    return Simulated(
        seeds=len(first),
        failed=failed,
        twice=len(second),
        unlike=tuple(ran.seed for ran in second if ran.mark != marks[ran.seed]),
        saved=tuple(small(ran.seed, to) for ran in failed[:SHRUNK_MAX]) if to is not None else (),
        ends=Counter(state for ran in first for state in ran.ends),
        questions=sum(ran.questions for ran in first),
        submits=sum(ran.submits for ran in first),
        runs=sum(len(ran.ends) for ran in first),
        seconds=seconds,
        hours=sum(ran.seconds for ran in first) / 3600.0,
    )


def small(seed: int, folder: Path) -> Path:
    """Make the story of a failing seed small and write it as a scenario below the folder."""
    data = shrink(seed, data_of(seed))
    return save(folder, seed, data, run_data(seed, data).faults)
