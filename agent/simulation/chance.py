"""Chance from a seed: the same numbers on every machine and with every version of Python.

Never: a number from anywhere else.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")

_MASK = (1 << 64) - 1


class Chance:
    """A stream of numbers (SplitMix64: Steele, Lea, Flood 2014). seed: any whole number from 0."""

    def __init__(self, seed: int) -> None:
        self._state = int.from_bytes(hashlib.sha256(str(seed).encode()).digest()[:8])

    def number(self) -> float:
        """Even in [0, 1)."""
        self._state = (self._state + 0x9E3779B97F4A7C15) & _MASK
        mixed = self._state
        mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & _MASK
        return ((mixed ^ (mixed >> 31)) >> 11) / (1 << 53)

    def happens(self, share: float) -> bool:
        """True in this share of cases."""
        return self.number() < share

    def between(self, low: float, high: float) -> float:
        """Even between two bounds."""
        return low + (high - low) * self.number()

    def whole(self, low: int, high: int) -> int:
        """A whole number, both bounds included."""
        return low + int(self.number() * (high - low + 1))

    def span(self, low_s: float, high_s: float) -> float:
        """Whole seconds, even on a logarithmic scale: short ones as often as long ones."""
        return float(round(low_s * (high_s / low_s) ** self.number()))

    def normal(self) -> float:
        """Of mean 0 and deviation 1 (Box and Muller)."""
        return math.sqrt(-2.0 * math.log(1.0 - self.number())) * math.cos(2.0 * math.pi * self.number())

    def one_of(self, options: Sequence[T]) -> T:
        """One of them, all alike."""
        return options[int(self.number() * len(options))]

    def by_weight(self, options: Sequence[tuple[float, T]]) -> T:
        """One of them by its weight: (weight, option)."""
        left = self.number() * sum(weight for weight, _ in options)
        for weight, option in options:
            left -= weight
            if left < 0:
                return option
        return options[-1][1]
