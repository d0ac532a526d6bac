"""The nearest known name, for messages about one that is not known.

Never: guess silently (the name is offered, not taken).
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """`did you mean 'x'?`, or every known name where none is near."""
    names = list(known)
    near = get_close_matches(name, names, n=1)
    return f"did you mean {near[0]!r}?" if near else f"known here: {', '.join(sorted(names))}"
