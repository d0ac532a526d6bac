"""The shape of a line: its text with every digit made 0, so that what depends on no digit's value is worked out once.

A log says the same few sentences thousands of times with other numbers. Whether an expression that tells no
digit from another matches, and where, is the same for all lines of one shape; results are kept per shape, for
short shapes only and for a bounded number of them.

Never: keep a shape for an expression that names a digit; keep a text with its numbers.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import TypeVar

SHAPES_MAX = 1_024
SHAPE_CHARS_MAX = 1_000
"""Longer lines are worked out each time: they are rare, and keeping them would cost memory."""

_ASCII_DIGIT = re.compile("[0-9]")
_T = TypeVar("_T")
_DIGITS = bytes.maketrans(b"123456789", b"000000000")


def shape(text: str) -> str:
    """The text with every ASCII digit made 0; all positions stay."""
    return text.encode("utf-8", "surrogatepass").translate(_DIGITS).decode("utf-8", "surrogatepass")


def has_digit(text: str) -> bool:
    """Whether any character is a digit of any script."""
    return _ASCII_DIGIT.search(text) is not None or (not text.isascii() and any(map(str.isdigit, text)))


def per_shape(function: Callable[[str], _T]) -> Callable[[str], _T]:
    """Keeps the results of a function of a shape. The function must give the same for all texts of that shape."""
    kept = functools.lru_cache(maxsize=SHAPES_MAX)(function)

    @functools.wraps(function)
    def ask(of: str) -> _T:
        return kept(of) if len(of) <= SHAPE_CHARS_MAX else function(of)

    return ask
