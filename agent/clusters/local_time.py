"""placeholder"""
from __future__ import annotations
import select, time
from datetime import UTC, datetime
def now() -> datetime: return datetime.fromtimestamp(time.clock_gettime(time.CLOCK_REALTIME), UTC)
def monotonic_s() -> float: return time.clock_gettime(time.CLOCK_MONOTONIC)
def pause(s: float) -> None: select.select([], [], [], s)
