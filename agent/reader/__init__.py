"""The model that reads what the rules cannot settle: a bounded, redacted log in, a checked reading out (DESIGN 6).

`prompt` asks, `messages` calls, `reply` checks, `budget` holds the limits, `prices` says what it cost, `read` keeps
the order of them, `recorded` replays. The database behind it is `agent/readings.py`.

Never: decide anything about a job (I2); import the store, the machine or a cluster.
"""

from __future__ import annotations

from collections.abc import Callable

from agent.clock import Clock
from agent.reader.budget import Ledger, Limits, Notebook
from agent.reader.messages import MessagesApi
from agent.reader.prompt import Facts
from agent.reader.read import Caller, ModelReader
from agent.reader.reply import Reading, Void
from agent.settings import ModelSettings

__all__ = ["API_KEY", "Caller", "Facts", "ModelReader", "Notebook", "Reading", "Void", "model_reader"]

API_KEY = "ANTHROPIC_API_KEY"
"""Name of the key, in the secrets store or the environment."""


def model_reader(
    settings: ModelSettings,
    key: str | None,
    *,
    clock: Clock,
    ledger: Ledger,
    redact: Callable[[str], str] = str,
) -> ModelReader | None:
    """The reader of these settings; None without a key or when it is switched off: everything works without (I3)."""
    if not settings.enabled or not key:
        return None
    caller = MessagesApi(settings, key, clock)
    return ModelReader(caller, ledger, clock, limits=Limits.of(settings), redact=redact)
