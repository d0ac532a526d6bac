"""What words mean, in English and Chinese: the patterns of `vocabulary.toml`, compiled when they are first asked for.

Never: a decision; the grammar is in `orders`, `runs`, `reads` and `answers`.
"""

from __future__ import annotations

import importlib.resources
import re
import tomllib
from collections.abc import Mapping
from functools import cache

TABLE = "vocabulary.toml"
OBJECT = (
    "(?:(?:the|my|our|this|that|a|these|those|your|its|it's|of) )*"
    "(?:(?:running|queued|pending|live|active|current|stuck|hung|hanging|damn|stupid|failed|failing|crashed|broken"
    "|dead|slow|long|bad|whole|first|training|entire|poor|silly) )*"
    "(?:[\ue100-\ue3ff]|it|this|that|them|thing|job|jobs|run|runs|task|tasks|training|experiment|experiments"
    "|process|one|ones|eval|sweep|trainings)"
    "(?: (?:job|run|task|training|one|experiment|process|jobs|runs))?"
)
"""An English noun phrase for a run: a name, a pronoun, `the stuck one`."""


@cache
def words() -> Mapping[str, Mapping[str, list[str]]]:
    """{idea: {"en": patterns, "zh": patterns}}."""
    return tomllib.loads((importlib.resources.files("states.chat") / TABLE).read_text(encoding="utf-8"))


@cache
def source(idea: str) -> str:
    """The pattern of an idea as text, to be put into a larger one. KeyError for an idea that is not there."""
    english, chinese = (
        "|".join(words()[idea][language]).replace("{obj}", OBJECT) for language in ("en", "zh")
    )
    bounded = rf"(?<![a-z0-9_'-])(?:{english})(?![a-z0-9_'-])"
    return f"(?:{bounded}|(?:{chinese}))" if chinese else f"(?:{bounded})"


@cache
def pattern(idea: str) -> re.Pattern[str]:
    """The compiled pattern of an idea, both languages."""
    return re.compile(source(idea), re.ASCII)


def has(idea: str, text: str) -> bool:
    """Whether the text says this anywhere."""
    return pattern(idea).search(text) is not None
