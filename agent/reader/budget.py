"""What readings may cost: limits per run and per day, a reservation before each call, a note after it (PAID).

A call is made only when its worst case still fits, with the calls under way counted in, so that a limit is never
passed by this process. A model without a known price is held by the number of calls alone.

Never: call the model; let a call go unnoted.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import NamedTuple, Protocol

from agent.clock import Clock
from agent.reader.prices import Tokens, cost_usd
from agent.reader.reply import Answer, NoAnswer
from agent.settings import ModelSettings

DAY = timedelta(hours=24)
"""The budget of a day is that of the last 24 hours, whatever the time zone."""

JOB_CALLS_MAX = 40
DAY_CALLS_MAX = 2000
BYTES_PER_TOKEN_MIN = 2
"""Cautious: text takes three to four bytes a token, digits and symbols fewer."""


class Limits(NamedTuple):
    """Bounds of one run and of 24 hours, in US dollars by list price and in calls."""

    job_usd: float
    day_usd: float
    job_calls: int = JOB_CALLS_MAX
    day_calls: int = DAY_CALLS_MAX

    @classmethod
    def of(cls, settings: ModelSettings) -> Limits:
        """The limits that are set."""
        return cls(settings.job_budget_usd, settings.day_budget_usd)


class Spent(NamedTuple):
    """What was noted: US dollars as far as prices are known, and calls."""

    usd: float = 0.0
    calls: int = 0


class Entry(NamedTuple):
    """One call. key: the input's hash. kind: "read", or why it is void. job_id: "" when no run asked.

    answer: None when nothing came back. cost_usd: None when the price is not known.
    """

    key: str
    job_id: str
    at: datetime
    model: str
    kind: str
    answer: Answer | None
    cost_usd: float | None


class Ledger(Protocol):
    """Where calls are noted and readings are remembered. Implementations are thread-safe."""

    def remembered(self, key: str) -> Answer | None:
        """The newest answer to this very input that gave a reading."""
        ...

    def spent_by(self, job_id: str) -> Spent:
        """By one run, since ever."""
        ...

    def spent_since(self, at: datetime) -> Spent:
        """By all, since then."""
        ...

    def note(self, entry: Entry) -> None:
        """Keep one call."""
        ...


class Notebook:
    """A ledger in memory: for a single command, for tests and for scenarios."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []

    def remembered(self, key: str) -> Answer | None:
        hits = (entry.answer for entry in reversed(self.entries) if entry.key == key and entry.kind == "read")
        return next(hits, None)

    def spent_by(self, job_id: str) -> Spent:
        return _sum([entry for entry in self.entries if entry.job_id == job_id])

    def spent_since(self, at: datetime) -> Spent:
        return _sum([entry for entry in self.entries if entry.at >= at])

    def note(self, entry: Entry) -> None:
        self.entries.append(entry)


class Budget:
    """Keeps the limits over a ledger, for all threads of one process."""

    def __init__(self, ledger: Ledger, limits: Limits, clock: Clock) -> None:
        self.ledger = ledger
        self._limits, self._clock = limits, clock
        self._lock = threading.Lock()
        self._under_way: dict[object, tuple[str, float]] = {}

    @contextmanager
    def reserved(self, job_id: str, worst_usd: float | None) -> Iterator[None]:
        """Holds the worst case of one call while it is made. Raises NoAnswer("budget") when it does not fit."""
        ticket = object()
        with self._lock:
            self._refuse_if_over(job_id, worst_usd or 0.0)
            self._under_way[ticket] = (job_id, worst_usd or 0.0)
        try:
            yield
        finally:
            with self._lock:
                del self._under_way[ticket]

    def _refuse_if_over(self, job_id: str, worst_usd: float) -> None:
        limits, held = self._limits, self._under_way.values()
        day = self.ledger.spent_since(self._clock.now() - DAY)
        if day.calls + len(held) >= limits.day_calls:
            raise NoAnswer(
                "budget", f"{limits.day_calls} readings were made within 24 hours: that is the limit"
            )
        if day.usd + sum(usd for _, usd in held) + worst_usd > limits.day_usd:
            raise NoAnswer("budget", _over("24 hours", day.usd, limits.day_usd, "day_budget_usd"))
        if not job_id:
            return
        own = [usd for holder, usd in held if holder == job_id]
        run = self.ledger.spent_by(job_id)
        if run.calls + len(own) >= limits.job_calls:
            raise NoAnswer("budget", f"{limits.job_calls} readings were made for this run: that is the limit")
        if run.usd + sum(own) + worst_usd > limits.job_usd:
            raise NoAnswer("budget", _over("this run", run.usd, limits.job_usd, "job_budget_usd"))


def worst_case_usd(model: str, sent: str, output_tokens: int) -> float | None:
    """What a call can cost at most; None for a model without a known price."""
    tokens = Tokens(input=len(sent.encode()) // BYTES_PER_TOKEN_MIN, output=output_tokens)
    return cost_usd(model, tokens)


def _sum(entries: list[Entry]) -> Spent:
    return Spent(sum(entry.cost_usd or 0.0 for entry in entries), len(entries))


def _over(whose: str, spent: float, limit: float, setting: str) -> str:
    return (
        f"the budget of {whose} for the model is used up (${spent:.4f} of ${limit:.2f}, and one more reading"
        f" might not fit); raise `model.{setting}` to allow more"
    )
