"""What was understood of one message: the intent, its slots, whether to ask back, and the words to say.

Never: an act in a reading that asks back; the surface carries out nothing then.
"""

from __future__ import annotations

from typing import Any, Literal

from states.reading import Frozen

Intent = Literal[
    "capacity", "list", "status", "check_once", "tail", "events", "why", "watch", "run", "submit_only", "stop",
    "delete", "stop+delete", "answer", "library", "help", "unclear",
]  # fmt: skip

ACTS = frozenset({"run", "submit_only", "stop", "delete", "stop+delete", "answer", "watch"})
"""Intents that change something when they are carried out."""


class Understood(Frozen):
    """The reading of a message. ask_back: one question must be answered first, and `reply` puts it.

    slots: only what the message or the context settles; `job` is a name, several names joined by commas, or `*`.
    moot: understood, and there is nothing to do (nothing live, no such run, a closed question); `reply` says so.
    choices: the names that would each complete it, for a surface that offers them.
    """

    intent: Intent
    slots: dict[str, Any] = {}
    ask_back: bool = False
    moot: bool = False
    reply: str = ""
    choices: tuple[str, ...] = ()

    @property
    def is_act(self) -> bool:
        """Whether carrying it out changes anything (never for one that asks back)."""
        nothing = (
            self.ask_back or self.moot or "refused" in self.slots or bool(self.slots.get("predict_only"))
        )
        return self.intent in ACTS and not nothing
