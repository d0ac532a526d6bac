"""The world of a message from JSON, in the shapes people send it, and from real questions."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import pytest

from states.chat import Context, asked, context_of, understand
from states.questions import QUESTIONS, Question


def test_options_are_texts_or_objects() -> None:
    plain = context_of(
        {
            "questions": [
                {"id": "Q-1", "job": "a-1", "options": ["[1] keep (default)", "[2] use a path (free text)"]}
            ]
        }
    )
    assert [option.texts[0] for option in plain.questions[0].options] == ["keep", "use a path"]
    assert [bool(option.value) for option in plain.questions[0].options] == [False, True]
    objects = context_of(
        {"questions": [{"id": 3, "options": [{"key": "keep", "text": "keep it"}], "default": "keep"}]}
    )
    assert objects.questions[0].default == 1
    assert objects.questions[0].options[0].key == "keep"


@pytest.mark.parametrize("free", [[2], 2, "2", "use a path", True])
def test_free_text_marks_the_option_that_takes_it(free: object) -> None:
    options = ["wait", "use a path"]
    (question,) = context_of({"questions": [{"id": "Q-1", "options": options, "free_text": free}]}).questions
    assert [bool(option.value) for option in question.options] == [False, True]
    assert not question.free_text


def test_a_run_is_live_until_its_state_says_an_end() -> None:
    states = {
        "running": True,
        "Pending": True,
        "blocked": True,
        "Succeeded": False,
        "not submitted": False,
        "FAILED": False,
        "failed two hours ago": False,
        "Failed (exit 1)": False,
    }
    jobs = [{"name": f"job-{place}", "state": state} for place, state in enumerate(states)]
    context = context_of({"jobs": jobs, "questions": [{"id": "Q-1", "job": "job-4", "options": ["wait"]}]})
    # A question is open on the one that is not submitted yet, so it is live all the same.
    assert context.live == ("job-0", "job-1", "job-2", "job-4")
    assert context_of(None) == Context()


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ([], "object"),
        ({"jobs": {}}, "jobs"),
        ({"jobs": [{"state": "running"}]}, "name"),
        ({"questions": [{"options": []}]}, "id"),
        ({"questions": [{"id": "Q-1", "options": "keep"}]}, "options"),
    ],
)
def test_a_wrong_context_is_told_by_its_field(data: object, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        context_of(data)


def real(kind: str) -> Context:
    now = datetime(2026, 3, 1, tzinfo=UTC)
    question = Question(id="vit-x1/2", number=2, kind=kind, topic=kind, asked_at=now, answer_by=now)
    return context_of({"jobs": [{"name": "vit-x1", "state": "blocked"}]}).model_copy(
        update={"questions": (asked(question, "vit-x1"),)}
    )


@pytest.mark.parametrize("kind", sorted(QUESTIONS))
def test_every_real_question_is_answered_by_number_key_words_and_default(kind: str) -> None:
    context = real(kind)
    template = QUESTIONS[kind]
    for number, option in enumerate(template.options, start=1):
        if option.value:
            assert not understand(str(number), context).is_act
            continue
        for reply in (str(number), option.key, option.en, option.zh):
            said = understand(reply, context)
            assert said.slots == {"question": "vit-x1/2", "option": number}, reply
            assert said.is_act
    assert understand("the default", context).slots == {"question": "vit-x1/2", "option": "default"}
    assert understand("vit-x1/2: default", context).is_act
    beyond = understand(str(len(template.options) + 1), context)
    assert beyond.moot or beyond.slots.get("value")


@pytest.mark.parametrize(
    ("kind", "reply", "option", "value"),
    [
        ("image", "use reg.lab/a/b:2", 1, "reg.lab/a/b:2"),
        ("environment", "/mnt/envs/torch", 1, "/mnt/envs/torch"),
        ("network", "proxy.lab:3128", 1, "proxy.lab:3128"),
        ("download", "there is one at /mnt/data/x", 2, "/mnt/data/x"),
        ("capacity", "reduce to 4", 2, "4"),
    ],
)
def test_a_value_goes_to_the_option_that_takes_it(kind: str, reply: str, option: int, value: str) -> None:
    said = understand(reply, real(kind))
    assert said.slots == {"question": "vit-x1/2", "option": option, "value": value}
    assert re.fullmatch(r"\S+", said.slots["value"])
