"""The model's answer, and what is left of it after it was checked: a `Reading`, or a `Void` with the reason (I3, I4).

The reply is text of an untrusted reader of untrusted text. It must be one JSON object of the closed schema; each
quote must stand in the line it names, byte for byte, and what is kept as evidence is that line as we had it, not as
the model wrote it. Of its own words only a short summary and milestone stay, without control characters and links.

Never: repair a reply; keep a field that was not checked; turn a word of it into an action.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agent.reader.prices import Tokens
from agent.reader.prompt import Prompt
from states.excerpt import Shown
from states.reading import Frozen, Quote
from states.words.wording import plain

QUOTES_MAX = 6
QUOTE_CHARS_MIN = 8
"""A shorter piece would stand in almost any line; a line that is shorter is quoted whole."""

SUMMARY_CHARS_MAX = 240
MILESTONE_CHARS_MAX = 120
REPLY_CHARS_MAX = 20_000

ReadingVerdict = Literal[
    "starting", "progressing", "slow", "looping", "hung", "failing", "failed", "succeeded", "ambiguous"
]
VoidKind = Literal[
    "empty",  # there is no log text to read
    "budget",  # the money or the number of readings is used up
    "resting",  # the server asked to be left alone for a while
    "auth",
    "payment",
    "request",  # the server refuses the request as such: settings
    "busy",
    "timeout",
    "unreachable",
    "refused",  # the model declined
    "truncated",
    "invalid",  # not a reply of the schema
    "quotes",  # a quote that does not stand in the log
    "unrecorded",  # replay only
]
"""Why there is no reading; closed, so that a caller can branch on it."""

_FENCED = re.compile(r"```(?:json)?\s*\n(.*?)\n?```", re.DOTALL)
_LINK = re.compile(r"(?:[a-z][a-z0-9+.-]{1,20}://|www\.)\S{1,500}", re.IGNORECASE)


class Answer(NamedTuple):
    """What came back, unchecked. stop_reason: as the server says; model: as it calls itself."""

    text: str
    stop_reason: str
    model: str
    tokens: Tokens
    request_id: str = ""


class NoAnswer(Exception):
    """There is no answer. reason: what is wrong and what to do next, without a key or a word of the log.

    retry_after_s: how long the server asked to be left alone, if it did.
    """

    def __init__(self, kind: VoidKind, reason: str, retry_after_s: float | None = None) -> None:
        super().__init__(reason)
        self.kind, self.reason, self.retry_after_s = kind, reason, retry_after_s


class Void(NamedTuple):
    """No reading, and why; what it cost all the same (None: not known). tokens: of a reply that was void."""

    kind: VoidKind
    reason: str
    retry_after_s: float | None = None
    model: str = ""
    tokens: int = 0
    cost_usd: float | None = 0.0


class Reading(Frozen):
    """A checked reading. quotes: lines of the log as they stand there. cached: it cost nothing this time."""

    verdict: ReadingVerdict
    cause: str
    quotes: tuple[Quote, ...]
    milestone: str
    confidence: float
    summary: str
    model: str
    tokens: int = 0
    cost_usd: float | None = None
    cached: bool = False


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class ReplyQuote(_Strict):
    """A piece of evidence as the model gives it."""

    line: int = Field(ge=1)
    text: str = Field(min_length=1, max_length=REPLY_CHARS_MAX)


class Reply(_Strict):
    """The closed schema (`prompts/interpret_log.schema.json`) with the bounds that a server does not enforce."""

    verdict: ReadingVerdict
    cause: str
    quotes: tuple[ReplyQuote, ...] = Field(min_length=1, max_length=QUOTES_MAX)
    milestone: str = Field(max_length=REPLY_CHARS_MAX)
    confidence: float = Field(ge=0, le=1, allow_inf_nan=False)
    summary: str = Field(max_length=REPLY_CHARS_MAX)


def check(answer: Answer, prompt: Prompt, redact: Callable[[str], str] = str) -> Reading:
    """The reading in an answer. Raises NoAnswer (`refused`, `truncated`, `invalid`, `quotes`) when it is void."""
    _check_end(answer.stop_reason)
    reply = _parsed(answer.text)
    if reply.cause not in prompt.file.causes:
        raise NoAnswer("invalid", "the model named a cause that is not in the closed list")
    return Reading(
        verdict=reply.verdict,
        cause=reply.cause,
        quotes=_verified(reply.quotes, prompt.shown),
        milestone=_own_words(reply.milestone, MILESTONE_CHARS_MAX, redact),
        confidence=reply.confidence,
        summary=_own_words(reply.summary, SUMMARY_CHARS_MAX, redact),
        model=plain(answer.model, 80),
        tokens=answer.tokens.total,
    )


def _check_end(stop_reason: str) -> None:
    """A reply is whole only if the model ended its turn; every other reason has a word of its own (STACK 1)."""
    match stop_reason:
        case "end_turn" | "stop_sequence":
            return
        case "refusal":
            raise NoAnswer("refused", "the model declined to read this log")
        case "max_tokens" | "model_context_window_exceeded":
            raise NoAnswer(
                "truncated", "the model's reply was cut; raise `model.output_tokens` if it happens often"
            )
        case "tool_use" | "pause_turn":
            raise NoAnswer("invalid", "the model wanted to act instead of reading")
        case _:
            raise NoAnswer("invalid", "the model's reply ended in a way that is not known")


def _parsed(text: str) -> Reply:
    """One JSON object, alone or in one fenced block (servers without structured output like to add one)."""
    bare = text.strip()
    if (block := _FENCED.fullmatch(bare)) is not None:
        bare = block[1]
    if len(bare) > REPLY_CHARS_MAX:
        raise NoAnswer("invalid", "the model's reply is longer than any reading")
    try:
        return Reply.model_validate_json(bare)
    except (ValidationError, ValueError) as error:
        first = error.errors()[0] if isinstance(error, ValidationError) else None
        known = [str(part) for part in first["loc"] if part in Reply.model_fields] if first else []
        where = f" (field `{known[0]}`)" if known else ""
        raise NoAnswer("invalid", f"the model's reply does not keep to the schema{where}") from None


def _verified(quotes: Sequence[ReplyQuote], shown: Sequence[Shown]) -> tuple[Quote, ...]:
    """The quoted lines as they were shown, each once. One quote that does not hold voids all (I4)."""
    texts = {line.number: line.text for line in shown}
    held: dict[int, Quote] = {}
    for quote in quotes:
        text = texts.get(quote.line)
        if text is None or not _stands_in(quote.text, text):
            raise NoAnswer("quotes", "the model quoted something that does not stand in the log")
        held[quote.line] = Quote(line=quote.line, text=text)
    return tuple(held.values())


def _stands_in(piece: str, line: str) -> bool:
    enough = min(QUOTE_CHARS_MIN, len(line))
    return len(piece.strip()) >= enough and piece.encode() in line.encode()


def _own_words(text: str, limit: int, redact: Callable[[str], str]) -> str:
    """The model's own words for a person: one line, bounded, redacted, without anything to follow."""
    return plain(_LINK.sub("[link left out]", redact(text)), limit)
