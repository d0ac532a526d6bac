"""Shell completion of run and question ids, straight from the database (`agent/peek.py`).

Never: an error or a slow import: a TAB that finds nothing is silent.
"""

from __future__ import annotations

import os

import typer


def complete_run(incomplete: str) -> list[str]:
    """Ids of runs that begin like this, live ones first."""
    return _peeked("run_ids", incomplete)


def complete_question(incomplete: str) -> list[str]:
    """Ids of open questions that begin like this."""
    return _peeked("question_ids", incomplete)


def complete_reply(ctx: typer.Context, incomplete: str) -> list[str]:
    """Keys of the options that the question before it has, with `=` where one takes a value."""
    from agent.peek import Peek

    try:
        peek = Peek.of(os.environ)
        kind = peek.question_kind(str(ctx.params.get("question") or "")) if peek is not None else ""
        if not kind or ctx.params.get("reply"):
            return []
        from states.questions import QUESTIONS

        keys = [option.key + ("=" if option.value else "") for option in QUESTIONS[kind].options]
    except Exception:
        return []
    return [key for key in keys if key.startswith(incomplete)]


def _peeked(what: str, incomplete: str) -> list[str]:
    from agent.peek import Peek

    try:
        peek = Peek.of(os.environ)
        found: list[str] = getattr(peek, what)() if peek is not None else []
    except Exception:
        return []
    return [text for text in found if text.startswith(incomplete)]
