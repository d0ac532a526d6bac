"""The clock as a port: the system's own, and a virtual one that jumps (scenarios and simulation are product).

Wall time is UTC and aware, for deadlines that people see. Nothing else in the product reads a clock.

Never: naive datetimes.
"""

from __future__ import annotations

import secrets
import time
from datetime import UTC, datetime, timedelta
from typing import Protocol


class Clock(Protocol):
    """What time it is, and waiting for it."""

    def now(self) -> datetime:
        """Aware UTC."""
        ...

    def sleep(self, seconds: float) -> None:
        """Return after that long (a virtual clock jumps)."""
        ...


class SystemClock:
    """The machine's clock."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


class VirtualClock:
    """A clock that moves only when told. `jump_to` never goes back; `step` may (clock faults)."""

    def __init__(self, start: datetime) -> None:
        self._now = start

    def now(self) -> datetime:
        return self._now

    def sleep(self, seconds: float) -> None:
        self.step(seconds)

    def jump_to(self, at: datetime) -> None:
        self._now = max(self._now, at)

    def step(self, seconds: float) -> None:
        self._now += timedelta(seconds=seconds)


class OtherClock:
    """The clock of another machine: `ahead_s` seconds ahead of the first one (clock faults of scenarios)."""

    def __init__(self, first: Clock) -> None:
        self._first = first
        self.ahead_s = 0.0

    def now(self) -> datetime:
        return self._first.now() + timedelta(seconds=self.ahead_s)

    def sleep(self, seconds: float) -> None:
        self._first.sleep(seconds)


def serial(characters: int = 6) -> str:
    """A short random id of lower-case letters and digits, without look-alikes; for run ids and lease tokens.

    No vowel, `k` or `w`: it spells no word. One that ended in `pwd` or `key` would be taken for a credential's name,
    and what stands behind it would be redacted.
    """
    alphabet = "bcdfghjmnpqrstvxyz23456789"
    return "".join(secrets.choice(alphabet) for _ in range(characters))
