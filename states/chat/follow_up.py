"""What a short message settles of a reading that asked back just before: a name, its number in the list, or a yes.

Only a conversation has a before; the one message after the asking may settle it, and nothing later does.

Never: a delete settled by anything but the name spelled out (A7); a yes that chooses between several.
"""

from __future__ import annotations

import re

from states.chat.context import Context
from states.chat.marked import JOB, marked
from states.chat.referents import Meant, spelled
from states.chat.replies import say
from states.chat.understood import ACTS, Understood
from states.chat.vocabulary import has, pattern, source
from states.questions import Language

_NUMBER = re.compile(
    r"(?:the |number |no\.? ?|#|第)?(\d)(?:st|nd|rd|th|个)?(?: one)?(?:吧|please)?", re.ASCII
)
_YES = re.compile(rf"(?:{source('yes')}|{source('courtesy')}|{source('closing')}|[ ,.!吧])++", re.ASCII)


def settled(before: Understood, message: str, context: Context) -> Understood | None:
    """The earlier reading made complete; None if this message does not do that and is to be read by itself."""
    if not before.ask_back or before.intent in ("unclear", "answer"):
        return None
    said = marked(message, context)
    language: Language = "zh" if said.chinese else "en"
    text = said.text.strip(" .!,~")
    if before.choices:
        return _chosen(before, text, spelled(said, context), context, language)
    job = before.slots.get("job", "")
    acts = before.intent in ("stop", "run", "submit_only") and (
        job in context.live or "command" in before.slots
    )
    if acts and _YES.fullmatch(text) and has("yes", text):
        return before.model_copy(update={"ask_back": False, "reply": ""})
    return None


def _chosen(
    before: Understood, text: str, meant: Meant | None, context: Context, language: Language
) -> Understood | None:
    number = _NUMBER.fullmatch(text)
    bare = pattern("closing").sub(" ", pattern("opening").sub(" ", text))
    only = not re.sub(r"[\ue100-\ue3ff\W]|(?<![a-z])(?:the|that|one|job|run)(?![a-z])|任务|那个", "", bare)
    names = meant.names if meant is not None and only else ()
    if number and 0 < int(number[1]) <= len(before.choices) and "delete" not in before.intent:
        names = (before.choices[int(number[1]) - 1],)
    if len(names) != 1 or names[0] not in before.choices:
        return None
    if "delete" in before.intent and not re.search(f"[{JOB}]", text):
        return None
    return _complete(before, names[0], context, language)


def _complete(before: Understood, name: str, context: Context, language: Language) -> Understood:
    """The reading with the run put in, where what the run is allows it."""
    live = name in context.live
    if before.intent == "stop" and not live:
        reply = say("not_live", language, job=name, state=context.state_of(name))
        return Understood(intent="stop", slots={"job": name}, moot=True, reply=reply)
    if before.intent == "delete" and live:
        reply = say("still_live", language, job=name)
        return Understood(intent="delete", slots={"job": name}, ask_back=True, reply=reply)
    if before.intent == "run":
        if live:
            reply = say("again_live", language, job=name)
            return Understood(intent="run", slots={"again_of": name}, ask_back=True, reply=reply)
        return Understood(intent="run", slots={"again_of": name}, reply=say("again", language, job=name))
    reply = say(before.intent, language, job=name) if before.intent in ACTS else ""
    return Understood(intent=before.intent, slots=before.slots | {"job": name}, reply=reply)
