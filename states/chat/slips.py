"""A slip of the fingers in a verb: `sotp`, `statsu`, or a beginning that several verbs share.

Reads are taken as meant; a stop or a delete is asked back, since a slip is no explicit verb.

Never: a slip seen in a word of the language.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from states.chat.marked import VERBS, Marked
from states.chat.understood import Intent
from states.chat.vocabulary import source

MEANT: dict[str, Intent] = {
    "stop": "stop", "kill": "stop", "cancel": "stop", "abort": "stop", "terminate": "stop",
    "delete": "delete", "remove": "delete",
    "status": "status", "progress": "status", "tail": "tail", "logs": "tail", "events": "events",
    "list": "list", "jobs": "list", "help": "help", "check": "check_once", "capacity": "capacity",
}  # fmt: skip
"""The verbs of the chat, each with what it asks for."""
ORDINARY = frozenset(
    "step shop spot top still bill fill will skill mill till last lost lots fail rail mail nail sail trail tall talk "
    "list mist fist least hello held heap chuck cheek chick event even seven state stats static station vents steps "
    "stops loss kiss kid keep delta relate recall canal channel job jab rob bobs tool tell tile test text best rest "
    "stay start sort salt spit self shell heal herp hemp yelp stopped stock stoop store stone stuck status slip snap "
    "ship skip please plan place detect describe define deploy deleted lobs legs lags dogs log login long about "
    "aboard abroad report remote removed reload checks checked cheap then them there where".split()
)
"""Words that are a letter away from a verb, or nearly."""


class Slip(NamedTuple):
    """The verb that was meant. sure: only this one can be."""

    word: str
    intent: Intent
    sure: bool


def find(said: Marked, text: str) -> Slip | None:
    """The slip in the first word of the message that says something; None if that word is right or nothing near."""
    bare = re.sub(rf"^(?:{source('opening')}[ ,:]*)*+", "", text)
    first = re.match(r"([a-z]{2,10})(?![a-z'-])", bare)
    if not first or first[1] in VERBS or first[1] in ORDINARY or first[1] in MEANT:
        return None
    word = first[1]
    begun = [verb for verb in MEANT if verb.startswith(word) and len(word) <= 4]
    if begun and len(bare.split()) <= 3:
        intents = {MEANT[verb] for verb in begun}
        harmless = not intents & {"stop", "delete"}
        return Slip(
            "/".join(begun),
            next(iter(intents)) if len(intents) == 1 else "unclear",
            harmless and len(intents) == 1,
        )
    near = [
        verb for verb in MEANT if len(word) >= 3 and abs(len(verb) - len(word)) <= 1 and _one_slip(word, verb)
    ]
    return Slip(near[0], MEANT[near[0]], True) if near else None


def _one_slip(word: str, verb: str) -> bool:
    """One letter doubled, left out, struck beside, or two swapped; the first letter is mostly right."""
    if sorted(word) == sorted(verb):
        return word[0] == verb[0] and sum(a != b for a, b in zip(word, verb, strict=True)) <= 3
    if len(word) == len(verb):
        return (
            len(verb) >= 5
            and word[0] == verb[0]
            and sum(a != b for a, b in zip(word, verb, strict=True)) == 1
        )
    shorter, longer = sorted((word, verb), key=len)
    return word[0] == verb[0] and any(
        longer[:place] + longer[place + 1 :] == shorter for place in range(len(longer))
    )
