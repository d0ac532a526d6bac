"""How the figures are taken: CPU or wall seconds of a repeated call, the best of a few rounds.

Never: a mean over rounds (what else the machine does only ever adds).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

ROUNDS = 3


class Figure(NamedTuple):
    """One line of the table."""

    what: str
    value: float
    unit: str


def per_second(call: Callable[[], object], *, for_s: float = 0.4) -> float:
    """Calls a second of CPU time."""
    return 1.0 / seconds(call, for_s=for_s, clock=time.process_time)


def seconds(
    call: Callable[[], object], *, for_s: float = 0.4, clock: Callable[[], float] = time.perf_counter
) -> float:
    """Seconds of one call, of the best of ROUNDS rounds."""
    best = float("inf")
    for _ in range(ROUNDS):
        calls, began = 0, clock()
        while (spent := clock() - began) < for_s:
            call()
            calls += 1
        best = min(best, spent / calls)
    return best
