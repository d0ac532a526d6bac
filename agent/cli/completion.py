"""Shell completion of run and question ids, straight from the database (`agent/peek.py`).

Never: an error or a slow import: a TAB that finds nothing is silent.
"""

from __future__ import annotations

import os


def complete_run(incomplete: str) -> list[str]:
    """Ids of runs that begin like this, live ones first."""
    return _peeked("run_ids", incomplete)


def complete_question(incomplete: str) -> list[str]:
    """Ids of open questions that begin like this."""
    return _peeked("question_ids", incomplete)


def _peeked(what: str, incomplete: str) -> list[str]:
    from agent.peek import Peek

    try:
        peek = Peek.of(os.environ)
        found: list[str] = getattr(peek, what)() if peek is not None else []
    except Exception:
        return []
    return [text for text in found if text.startswith(incomplete)]
