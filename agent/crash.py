"""Named crash points: no-ops in life, SIGKILL in the crash tests.

`POINTS` is the checked-in list; a point that is not in it raises at import of its user's test, and an effect without
points fails a test, so nothing new can be left untested (RELIABILITY 4).

Never: a behaviour of its own in production.
"""

from __future__ import annotations

from collections.abc import Callable

POINTS: tuple[str, ...] = (
    "event-committed",
    "effect-begun",
    "effect-performed",
    "result-committed",
    "submit-before-call",
    "submit-after-call",
    "stop-after-call",
    "message-delivered",
    "log-read",
    "wave-claimed",
    "wave-observed",
    "quiet-rested",
    "lease-claimed",
    "child-delegated",
    "parent-told",
    "delivery-claimed",
    "delivery-begun",
    "delivery-sent",
    "delivery-recorded",
)

_armed: Callable[[str], None] | None = None


def point(name: str) -> None:
    """Pass a crash point. Nothing happens unless a test has armed one."""
    if _armed is not None:
        if name not in POINTS:
            raise KeyError(f"{name} is not in agent.crash.POINTS")
        _armed(name)


def arm(strike: Callable[[str], None] | None) -> None:
    """Tests only: call `strike(name)` at each point; None disarms."""
    global _armed
    _armed = strike
