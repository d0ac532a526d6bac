"""What a chat message asks for, by a grammar in English and Chinese, without a model (RULES A, B6, G).

    message -> marked (names, commands, quotes, values masked) -> answers, orders, runs, reads -> Understood

An act (stop, delete, answer, submit) is read out of a message only when the clause that orders it is understood to
its last word and nothing around it hedges; otherwise the reading asks back. Reads are harmless and read generously.

Never: carry anything out; keep or repeat a credential (B6).
"""

from states.chat.context import Asked, Context, Option, Seen, asked, context_of
from states.chat.follow_up import settled
from states.chat.understand import understand
from states.chat.understood import Understood

__all__ = ["Asked", "Context", "Option", "Seen", "Understood", "asked", "context_of", "settled", "understand"]
