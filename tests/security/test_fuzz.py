"""The targets of `make fuzz` hold for a glance of drawn inputs, so that none of them rots.

Never: a time-out that decides; the number of inputs is fixed.
"""

from __future__ import annotations

import pytest

from agent.simulation.chance import Chance
from tests.security.fuzz import SEEDS, TARGETS, drawn


@pytest.mark.parametrize("name", TARGETS)
def test_a_target_holds(name: str) -> None:
    chance = Chance(len(name))
    for data in (*SEEDS, b"", *(drawn(chance) for _ in range(40))):
        TARGETS[name](data)


@pytest.mark.slow
@pytest.mark.parametrize("name", TARGETS)
def test_a_target_holds_for_long(name: str) -> None:
    chance = Chance(len(name) + 1000)
    for _ in range(4000):
        TARGETS[name](drawn(chance))
