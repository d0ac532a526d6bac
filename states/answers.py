"""What a reply means: an option by its key or number, or a value where one is asked (RULES G1, G4).

Never: take a word of a sentence for a value; accept an option that is not there.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from states.questions import Option, Question


class Choice(NamedTuple):
    """An answer that was understood: the option, and the value it carries ("" if none)."""

    option: Option
    value: str


class NotAnAnswer(NamedTuple):
    """Why a reply does not answer the question, and what would."""

    reason: str


def understand(question: Question, reply: str) -> Choice | NotAnAnswer:
    """A reply by option key, by its number (1-based), or in free text where exactly one option takes a value (G1).

    `key value`, `key=value` and `key: value` give an option its value.
    """
    text = reply.strip()
    options = question.template.options
    for number, option in enumerate(options, start=1):
        rest = _after(text, option.key, str(number))
        if rest is None:
            continue
        if option.value and not rest:
            return NotAnAnswer(f"option {option.key!r} needs a value: {option.key} <{option.value}>")
        if not option.value and rest:
            continue
        return checked(option, rest)
    free = [option for option in options if option.value]
    if len(free) == 1 and text and _looks_like_value(free[0], text):
        return checked(free[0], text)
    keys = ", ".join(f"{number} {option.key}" for number, option in enumerate(options, start=1))
    return NotAnAnswer(f"{text!r} is not one of the options: {keys}")


def _after(text: str, key: str, number: str) -> str | None:
    """What follows the option's key or number in the reply; None when it does not start with either."""
    for head in (key, number):
        found = re.fullmatch(
            rf"{re.escape(head)}(?:\s*[=:]\s*|\s+|$)(.*)", text, re.IGNORECASE | re.DOTALL | re.ASCII
        )
        if found:
            return found[1]
    return None


def _looks_like_value(option: Option, text: str) -> bool:
    """Free text is taken for a value only when it has the value's shape; words of a sentence have not."""
    if option.value == "gpu":
        return _is_count(text)
    return " " not in text and any(sign in text for sign in "/:.")


def checked(option: Option, value: str) -> Choice | NotAnAnswer:
    """The option with a value of the shape that it takes."""
    if option.value == "gpu" and not _is_count(value):
        return NotAnAnswer(f"option {option.key!r} needs a whole number of GPUs, not {value!r}")
    return Choice(option, value)


def _is_count(text: str) -> bool:
    """ASCII digits alone: other scripts' digits are digits to Python and no number to `int`."""
    return text.isascii() and text.isdigit()
