"""Requests to run something: what is to be run, and whether the message asks for it now.

A submit is asked for by a verb with a command, a request file or an earlier run. What stands before the command must
be understood to the last word; a condition, a doubt or a question about it is no request (A1, A4, A8).

Never: a command that the message does not hold; the silent dropping of a change to an earlier run.
"""

from __future__ import annotations

import re
from typing import Any, Literal, NamedTuple

from states.chat import figures
from states.chat.marked import COMMAND, FILE, Marked
from states.chat.vocabulary import has, pattern, source

What = Literal["run", "again", "restart", "bare", "nothing"]

_STRIP = re.compile(
    rf"{source('opening')}|{source('closing')}|{source('around_a_run')}|\d+(?:\.\d+)?|[\ue010-\uf8ff]"
    r"|--?[a-z][\w-]*|[^\w\u3400-\u9fff]",
    re.ASCII,
)
_LEAD = re.compile(
    rf"^(?:(?:{source('opening')}|[\ue010-\uf8ff]|\d+|gpus?|卡|[,: ]|normal|idle|lane"
    rf"|on|用|在)[ :,]*)*+(?:{source('run')})",
    re.ASCII,
)
_PRONOUN = r"(?:it|this|that|them|one|everything)(?![a-z])|一下|它|这个|那个"


class Ask(NamedTuple):
    """What is to be run. clean: nothing but known words stands before it, and nothing around it hedges.

    left: words that were not understood, so that the reply can say that they were not taken over.
    """

    what: What
    clean: bool
    slots: dict[str, Any]
    left: str = ""


def find(said: Marked) -> Ask | None:
    """What the message asks to be run; None if it does not speak of running anything."""
    text = said.text
    slots = figures.resources(said) | figures.places(said)
    if has("submit_only", text):
        slots["_submit_only"] = True
    if has("predict_only", text):
        slots |= {"_submit_only": True, "predict_only": True}
    held = said.of(COMMAND)
    if held:
        slots["command"] = held[0].text
    condition = figures.stop_if(text)
    if condition:
        slots["stop_if"] = condition
    if has("again", text):
        return Ask("again", _is_sure(text, "again"), slots, _left(pattern("again").sub(" ", text)))
    if has("restart", text) and not held:
        return Ask("restart", False, slots)
    if held or (said.of(FILE) and has("run", text)):
        return _with_command(text, slots)
    if _LEAD.match(text) or (slots.get("_submit_only") and has("run", text)):
        rest = _left(pattern("run").sub(" ", text, count=1))
        figure = {name for name in slots if name not in ("_submit_only",)}
        return Ask("nothing", False, slots, rest or "x" * bool(figure))
    return None


def _with_command(text: str, slots: dict[str, Any]) -> Ask:
    mark = re.search(f"[{COMMAND}{FILE}]", text)
    assert mark is not None
    before, after = text[: mark.start()], text[mark.end() :]
    asked = has("run", before) or has("run", after.split(",")[0]) or slots.get("_submit_only")
    left_before = _left(
        pattern("run").sub(" ", pattern("submit_only").sub(" ", pattern("predict_only").sub(" ", before)))
    )
    figure = set(slots) & {"gpu", "replicas", "lane", "priority", "group", "image", "mounts"}
    sure = not left_before and _is_sure(text, "run")
    stated = re.search(
        r"(?<![a-z])(?:is|are|was|needs?|needed|it|my|uses?|takes?)(?![a-z])|是|需要|的(?:命令|脚本)", before
    )
    if not asked and (not figure or stated):
        return Ask("bare", False, slots, left_before)
    return Ask("run", sure, slots, _left(pattern("submit_only").sub(" ", after)))


def _is_sure(text: str, verb: str) -> bool:
    """Nothing makes the running conditional, doubtful or a thing of the past."""
    if has("polite_question", text):
        text = text.replace("?", " ", 1)
    text = pattern("submit_only").sub(" ", text)
    if figures.stop_if(text):
        text = text.replace(figures.stop_if(text), " ")
    text = re.sub(
        r"(?<![a-z])(?:can|could|would|will) (?:you|u)(?![a-z])(?: please)?|(?:能不能"
        r"|能否|可否|可以|能)?(?:请你?|帮我|帮忙|麻烦你?)|(?:好|行|可以)[吗么]\??$",
        " ",
        text,
    )
    text = pattern(verb).sub(" ", text)
    marks = ("condition", "negation", "never_mind", "reported")
    if any(has(idea, text) for idea in marks) or re.search(
        r"(?<![a-z])(?:or|but|should|shall|maybe|perhaps|might|would|wait|what|how|why"
        r"|which|did|does|was|were|has|have|is there|he|she|they|vs)(?![a-z])|还是|要不"
        r"|是不是|会不会|该不该|吗|么\?|怎么|为什么|多久|几|什么|啥|需要",
        text,
    ):
        return False
    return "?" not in text


def _left(text: str) -> str:
    """The words that nobody accounts for."""
    return " ".join(_STRIP.sub(" ", text).split())


def leads(text: str) -> bool:
    """The message begins with the verb, apart from an opening."""
    return _LEAD.match(text) is not None


def is_pronoun_only(text: str) -> bool:
    """`run it`: nothing is said about what."""
    bare = pattern("run").sub(" ", text, count=1)
    return (
        re.fullmatch(
            rf"(?:{_PRONOUN}|{source('opening')}|{source('closing')}|[^\w\u3400-\u9fff])*+", bare, re.ASCII
        )
        is not None
    )
