"""What the loop had to swallow while a story was played: an exception that no fault of the story explains is a fault.

Never: a refusal or an outage that the story itself brings about.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from agent.scenarios.memory import Broken

LOGGERS = ("agent.wave", "agent.outbox", "agent.turn")


@contextmanager
def heard() -> Iterator[list[str]]:
    """Within: the loop's log is silent, and the list grows by each kind of exception that it swallowed."""
    swallowed: list[str] = []
    handler = _Swallowed(swallowed)
    loggers = [logging.getLogger(name) for name in LOGGERS]
    before = [logger.propagate for logger in loggers]
    for logger in loggers:
        logger.addHandler(handler)
        logger.propagate = False
    try:
        yield swallowed
    finally:
        for logger, propagate in zip(loggers, before, strict=True):
            logger.removeHandler(handler)
            logger.propagate = propagate


class _Swallowed(logging.Handler):
    """Keeps what was logged with an exception, each kind once."""

    def __init__(self, kept: list[str]) -> None:
        super().__init__(logging.ERROR)
        self._kept = kept

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        said = f"an exception was swallowed: {type(error).__name__}: {error}"
        if error is not None and not isinstance(error, Broken) and said not in self._kept:
            self._kept.append(said)
