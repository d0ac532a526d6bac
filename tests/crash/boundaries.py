"""The checked-in list: which crash points are passed while an effect of each kind is carried out.

A new kind of effect has no line here and fails a test, and so does one that passes a point which is not listed; then
its story is told in `tests/crash/test_boundaries.py`, where every line is killed at.

Points of the loop around the effects (a wave, a lease) are in `OUTSIDE`.
"""

from __future__ import annotations

AFTER = ("effect-performed", "result-committed")
"""Done and not yet recorded; recorded."""

OF_EFFECT: dict[str, tuple[str, ...]] = {
    "run_check": (*AFTER, "event-committed"),
    "submit": ("effect-begun", "submit-before-call", "submit-after-call", *AFTER, "event-committed"),
    "find_by_name": (*AFTER, "event-committed"),
    "read_logs": ("log-read", *AFTER, "event-committed"),
    "interpret": ("effect-begun", *AFTER, "event-committed"),
    "stop_job": ("stop-after-call", *AFTER, "event-committed"),
    "delete_job": (*AFTER, "event-committed"),
    "ask": ("message-delivered", *AFTER),
    "withdraw": ("message-delivered", *AFTER),
    "report": ("message-delivered", *AFTER),
    "collect": (*AFTER, "event-committed"),
    "remember": AFTER,
    "delegate": ("event-committed", "child-delegated", *AFTER),
    "tell_parent": ("event-committed", "parent-told", *AFTER),
    "stop_child": ("event-committed", *AFTER),
}
"""Effect -> the points that it passes."""

OF_DELIVERY = ("delivery-claimed", "delivery-begun", "delivery-sent", "delivery-recorded")
"""Points on the way of a message to a channel (`tests/crash/test_deliveries.py`)."""

OUTSIDE = ("wave-claimed", "wave-observed", "quiet-rested", "lease-claimed")
"""Points that belong to no effect."""
