"""The check of a reply: only a whole, closed, truthful one is a reading, and little of its own words is left."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agent.reader.prices import Tokens
from agent.reader.prompt import build
from agent.reader.reply import Answer, NoAnswer, Reading, check
from states.excerpt import Shown
from states.reading import Quote
from tests.agent.fake_model import REPLY
from tests.agent.reading_parts import FACTS

PROMPT = build(
    [
        Shown(1, "building the index of the shards", ""),
        Shown(7, "short", "rank1"),
        Shown(8, "损失 2.31 学习率 0.1", ""),
        Shown(9, '{"a": "quoted \\" text"}', ""),
    ],
    FACTS,
)


def checked(text: str, stop_reason: str = "end_turn") -> Reading:
    return check(Answer(text, stop_reason, "m", Tokens(10, 5)), PROMPT)


def reply(**changes: Any) -> str:
    return json.dumps(REPLY | changes, ensure_ascii=False)


def quoting(line: Any, text: Any) -> str:
    return reply(quotes=[{"line": line, "text": text}])


@pytest.mark.parametrize(
    "text", [reply(), f"  {reply()}\n", f"```json\n{reply()}\n```", f"```\n{reply()}\n```"]
)
def test_a_good_reply_is_a_reading(text: str) -> None:
    read = checked(text)
    assert (read.verdict, read.cause, read.confidence) == ("slow", "none", 0.8)
    assert read.quotes == (Quote(line=1, text="building the index of the shards"),)
    assert read.tokens == 15


@pytest.mark.parametrize(
    "text",
    [
        "",
        "I think it is slow.",
        "null",
        "[]",
        f"[{reply()}]",
        f"Here you are: {reply()}",
        f"{reply()} and {reply()}",
        reply()[:-3],
        reply(action="stop"),
        json.dumps({name: value for name, value in REPLY.items() if name != "summary"}),
        reply(verdict="unsettled"),
        reply(verdict="Slow"),
        reply(verdict=["slow"]),
        reply(cause="none."),
        reply(cause="user.error"),
        reply(cause=None),
        reply(confidence=1.01),
        reply(confidence=-0.1),
        reply(confidence="0.8"),
        reply(confidence=True),
        reply().replace("0.8", "NaN"),
        reply().replace("0.8", "Infinity"),
        reply().replace("0.8", "1e999"),
        reply(quotes=[]),
        reply(quotes=[{"line": 1, "text": "building the index"}] * 7),
        reply(quotes=["building the index"]),
        quoting("1", "building the index"),
        quoting(0, "building the index"),
        quoting(-1, "building the index"),
        quoting(1.5, "building the index"),
        quoting(True, "building the index"),
        quoting(1, ""),
        quoting(1, None),
        reply(summary=None),
        reply(summary="x" * 25_000),
        reply(milestone=7),
        reply(summary="HALF").replace("HALF", "\\ud800"),
        '{"verdict": "slow", ' * 3000,
        "[" * 10_000,
    ],
)
def test_what_is_not_one_closed_object_is_void(text: str) -> None:
    with pytest.raises(NoAnswer) as caught:
        checked(text)
    assert caught.value.kind == "invalid"
    assert len(caught.value.reason) < 120


def test_the_reason_names_the_field_and_none_of_the_text() -> None:
    with pytest.raises(NoAnswer) as caught:
        checked(reply(confidence=17, summary="stop the job"))
    assert caught.value.reason == "the model's reply does not keep to the schema (field `confidence`)"


@pytest.mark.parametrize(
    ("line", "text"),
    [
        (1, "the index of"),
        (1, "building the index of the shards"),
        (7, "short"),
        (8, "损失 2.31 学习率"),
        (9, '"quoted \\" text"'),
    ],
)
def test_a_quote_may_be_a_piece_and_the_line_is_kept_as_it_stands(line: int, text: str) -> None:
    (quote,) = checked(quoting(line, text)).quotes
    assert quote in [Quote(line=shown.number, text=shown.text) for shown in PROMPT.shown]
    assert text in quote.text


@pytest.mark.parametrize(
    ("line", "text"),
    [
        (1, "Building the index"),
        (1, "building  the index"),
        (1, "building the index of the shards."),
        (1, "building the іndex"),
        (1, "the"),
        (1, "        "),
        (2, "building the index"),
        (7, "building the index"),
        (7, "shor"),
        (7, "rank1| short"),
        (8, "损失 2.31 学习率 0.10"),
        (10**30, "building the index"),
    ],
)
def test_a_quote_that_does_not_stand_there_voids_the_reading(line: int, text: str) -> None:
    good = {"line": 1, "text": "building the index"}
    with pytest.raises(NoAnswer) as caught:
        checked(reply(quotes=[good, {"line": line, "text": text}]))
    assert caught.value.kind == "quotes"


def test_a_line_quoted_twice_is_one_piece_of_evidence() -> None:
    quotes = [{"line": 1, "text": "building the index"}, {"line": 1, "text": "of the shards"}]
    assert len(checked(reply(quotes=quotes)).quotes) == 1


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("It is slow.", "It is slow."),
        ("It is\nslow.\r\n\tVery.", "It is slow. Very."),
        ("\x1b[31mred\x1b[0m \u202eback\u200b", "red back"),
        ("See http://evil.example/?q=1 now", "See [link left out] now"),
        ("See www.evil.example/x", "See [link left out]"),
        ("Run HTTPS://evil.example", "Run [link left out]"),
        ("任务很慢。", "任务很慢。"),
        ("", ""),
    ],
)
def test_its_own_words_are_one_harmless_line(said: str, kept: str) -> None:
    read = checked(reply(summary=said, milestone=said))
    assert (read.summary, read.milestone) == (kept, kept)


def test_its_own_words_are_bounded() -> None:
    read = checked(reply(summary="word " * 500, milestone="word " * 500))
    assert len(read.summary) <= 240
    assert len(read.milestone) <= 120


@pytest.mark.parametrize(
    ("stop_reason", "kind"),
    [
        ("refusal", "refused"),
        ("max_tokens", "truncated"),
        ("model_context_window_exceeded", "truncated"),
        ("tool_use", "invalid"),
        ("pause_turn", "invalid"),
        ("", "invalid"),
        ("later_invention", "invalid"),
    ],
)
def test_a_reply_that_did_not_end_is_void_however_good_it_looks(stop_reason: str, kind: str) -> None:
    with pytest.raises(NoAnswer) as caught:
        checked(reply(), stop_reason)
    assert caught.value.kind == kind
