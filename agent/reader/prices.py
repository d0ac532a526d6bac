"""What a reply costs: a small table of list prices with its date (STACK 1: no client tells them).

Never: guess the price of a model that is not in the table.
"""

from __future__ import annotations

from datetime import date
from typing import NamedTuple

AS_OF = date(2026, 11, 30)
"""When the prices were read from the provider's own pages."""

_MILLION = 1_000_000
_CACHE_WRITE = 1.25
"""Price of writing to the provider's prompt cache, as a multiple of ordinary input."""


class Tokens(NamedTuple):
    """Tokens of one reply. Thinking is part of `output`; cached ones are not part of `input`."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0

    @property
    def total(self) -> int:
        return sum(self)


class Price(NamedTuple):
    """US dollars per million tokens. cache_read: the input price where it is not known."""

    input: float
    output: float
    cache_read: float


PRICES: dict[str, Price] = {
    "claude-haiku-5-5": Price(0.10, 0.50, 0.01),  # prompts up to 100,000 tokens; ours are far below
    "claude-sonnet-5-5": Price(2.0, 10.0, 0.20),
    "claude-opus-5-5": Price(4.0, 20.0, 4.0),
    "claude-fable-5-1": Price(10.0, 50.0, 10.0),
}


def price_of(model: str) -> Price | None:
    """The price of a model, or of the dated version of one (`<name>-20261007`); None when not known."""
    if model in PRICES:
        return PRICES[model]
    base, _, stamp = model.rpartition("-")
    return PRICES.get(base) if len(stamp) == 8 and stamp.isdigit() else None


def cost_usd(model: str, tokens: Tokens) -> float | None:
    """Cost in US dollars by the list price; None for a model that is not in the table."""
    price = price_of(model)
    if price is None:
        return None
    inputs = tokens.input + tokens.cache_write * _CACHE_WRITE
    cost = inputs * price.input + tokens.cache_read * price.cache_read + tokens.output * price.output
    return cost / _MILLION
