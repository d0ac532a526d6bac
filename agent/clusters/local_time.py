"""The time of this machine's processes: the wall, a clock that never jumps, a short wait.

Detached jobs, their launchers and calls to other programs live in no other time than this; a virtual
clock could not reach them. Light enough for a launcher.

Never: be asked by anything that decides about a delegated run; that time comes from agent/clock.py.
"""

from __future__ import annotations

import select
import time
from datetime import UTC, datetime


def now() -> datetime:
    """The wall clock, aware, in UTC."""
    return datetime.fromtimestamp(time.clock_gettime(time.CLOCK_REALTIME), UTC)


def monotonic_s() -> float:
    """Seconds on a clock that is never set; only differences mean anything."""
    return time.clock_gettime(time.CLOCK_MONOTONIC)


def pause(seconds: float) -> None:
    """Wait, for a moment that nothing announces."""
    select.select([], [], [], seconds)
