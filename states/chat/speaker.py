"""What the readings of one message share: the message, its world, the language, and the ways to put a reading.

Never: decide what is read.
"""

from __future__ import annotations

from typing import Any

from states.chat.context import Context
from states.chat.marked import Marked
from states.chat.replies import say
from states.chat.understood import Intent, Understood
from states.questions import Language

NAMES_SHOWN = 8


class Speaker:
    """One message, and how readings of it are worded."""

    def __init__(self, said: Marked, context: Context, language: Language) -> None:
        self.said = said
        self.context = context
        self.language = language

    def say(self, key: str, **facts: Any) -> str:
        """A phrase in the language of the message."""
        return say(key, self.language, **facts)

    def ask(
        self,
        key: str,
        slots: dict[str, Any] | None = None,
        intent: Intent = "unclear",
        choices: tuple[str, ...] = (),
        **facts: Any,
    ) -> Understood:
        """A reading that asks back; choices: the names that would settle it."""
        facts = {"names": ", ".join(choices[:NAMES_SHOWN])} | facts
        reply = self.say(key, **facts)
        return Understood(intent=intent, slots=slots or {}, ask_back=True, reply=reply, choices=choices)

    def moot(self, intent: Intent, key: str, slots: dict[str, Any] | None = None, **facts: Any) -> Understood:
        """A reading that is clear, with nothing to do."""
        return Understood(intent=intent, slots=slots or {}, moot=True, reply=self.say(key, **facts))
