"""What a soak does and when, drawn from its seed before it begins: jobs, kills, and what people do.

Never: a draw while it runs; what the real processes make of it is theirs.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from agent.simulation.chance import Chance
from tests.soak.trainee import ENDS, SICK

KINDS = (
    (6.0, "good"), (2.0, "fails"), (1.0, "loud"), (1.0, "leaky"), (2.0, "asks"),
    (1.0, "hangs"), (0.7, "stubborn"), (0.7, "loops"), (0.7, "diverges"),
)  # fmt: skip
"""Share and kind of what is delegated (`trainee.py`)."""

JOB = "delegated"
EVERY_S: dict[str, float] = {
    JOB: 1.5,
    "agent killed": 20.0,
    "agent stopped for a while": 30.0,
    "a second agent begun": 60.0,
    "job's program killed": 12.0,
    "job's wrapper killed": 20.0,
    "local job's launcher killed": 20.0,
    "stopped by a person": 15.0,
    "delegated again": 10.0,
}
"""Seconds between two of a kind, in the mean."""
OF_SLURM: dict[str, float] = {"slurmctld killed": 45.0, "slurmd killed": 45.0}

CALM = 0.75
"""From this part of the time on the agent is left alone, so that one life of it is long."""
LEFT_ALONE = ("agent killed", "agent stopped for a while")


class Act(NamedTuple):
    """One thing to do. at_s: from the beginning. draw: chooses among what is there then, in [0, 1). lasts_s: how long
    it takes (a job's length, how long something is away). kind: of a job; of a kill: of which kind, "" for any."""

    at_s: float
    what: str
    draw: float
    lasts_s: float
    kind: str = ""
    cluster: str = "local"


def schedule(seed: int, seconds: float, *, slurm: bool) -> list[Act]:
    """Everything of a soak of so many seconds, by time."""
    acts = []
    for number, (what, every_s) in enumerate((EVERY_S | (OF_SLURM if slurm else {})).items()):
        chance = Chance(1000 * seed + number)
        until = seconds * CALM if what in LEFT_ALONE else seconds
        at_s = 0.0
        while (at_s := at_s - every_s * math.log(1.0 - chance.number())) < until:
            acts.append(_act(at_s, what, chance, slurm))
    return sorted(acts)


def _act(at_s: float, what: str, chance: Chance, slurm: bool) -> Act:
    if what == JOB:
        kind = chance.by_weight(KINDS)
        where = "slurm" if slurm and chance.happens(0.4) else "local"
        return Act(at_s, what, chance.number(), chance.span(1, 24), kind, where)
    lasts_s = chance.between(1, 12) if chance.happens(0.5) else 0.0
    if what == "agent stopped for a while":
        lasts_s = chance.between(0.5, 12)
    return Act(at_s, what, chance.number(), lasts_s)


__all__ = ["CALM", "ENDS", "JOB", "SICK", "Act", "schedule"]
