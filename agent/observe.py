"""What the loop tells of itself while it works: pieces of work with a name, as spans, figures and words on log lines.

Nothing listens unless something was put in (`agent/metrics.py`, `agent/tracing.py`); then a piece of work costs a
function call. The pieces that a log line stands in are known to it either way (`agent.app.JsonLines`).

Never: a text of a run (only names: ids, kinds, outcomes); a failure of who listens that reaches the work.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from contextvars import ContextVar
from types import MappingProxyType
from typing import Protocol

log = logging.getLogger(__name__)

Labels = Mapping[str, str]
NOWHERE: Labels = MappingProxyType({})
_inside: ContextVar[Labels] = ContextVar("inside", default=NOWHERE)


class Listener(Protocol):
    """Is told of every piece of work, around it. What the work raises passes through the context manager."""

    def during(self, what: str, labels: Labels) -> AbstractContextManager[None]: ...


_listeners: list[Listener] = []


def listen(listener: Listener) -> None:
    """Tell it from here on."""
    if listener not in _listeners:
        _listeners.append(listener)


def forget(listener: Listener) -> None:
    """Tell it no longer."""
    if listener in _listeners:
        _listeners.remove(listener)


def anyone() -> bool:
    """Whether anything listens."""
    return bool(_listeners)


def here() -> Labels:
    """The labels of the work that is under way in this thread, the inner ones over the outer ones."""
    return _inside.get()


@contextmanager
def during(what: str, **labels: str) -> Iterator[None]:
    """One piece of work: turn, effect, wave, cluster_call, delivery. labels: names, never texts."""
    before = _inside.set({**_inside.get(), **labels})
    try:
        if not _listeners:
            yield
            return
        with ExitStack() as stack:
            for listener in tuple(_listeners):
                try:
                    stack.enter_context(listener.during(what, labels))
                except Exception:
                    log.exception("%s could not be told of %s", type(listener).__name__, what)
            yield
    finally:
        _inside.reset(before)
