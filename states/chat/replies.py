"""What the chat says to a reading: the phrases of `replies.toml`, with their facts put in.

Never: a sentence that is written elsewhere; a fact that the phrase does not name.
"""

from __future__ import annotations

import importlib.resources
import tomllib
from collections.abc import Mapping
from functools import cache
from typing import Any

from states.questions import Language

TABLE = "replies.toml"


@cache
def phrases() -> Mapping[str, Mapping[Language, str]]:
    """{key: {"en": text, "zh": text}}."""
    return tomllib.loads((importlib.resources.files("states.chat") / TABLE).read_text(encoding="utf-8"))


def say(key: str, language: Language, **facts: Any) -> str:
    """A phrase with its facts put in. KeyError for a phrase or a fact that is missing."""
    return phrases()[key][language].format_map(facts).strip()
