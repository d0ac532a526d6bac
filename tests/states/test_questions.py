"""Every question: its options, its safe default word for word as in RULES G7, and how replies are understood.

Never: a default that stops a running job or starts a second one.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from itertools import product

import pytest

from states.answers import Choice, NotAnAnswer, understand
from states.policy import Policy
from states.questions import (
    QUESTIONS,
    Act,
    Option,
    Question,
    Status,
    Template,
    option_text,
    worded,
)
from states.spec import Spec

AT = datetime(2026, 3, 1, 8, 0, tzinfo=UTC)
KINDS = sorted(QUESTIONS)
OPTIONS = [(kind, option) for kind in KINDS for option in QUESTIONS[kind].options]


def question(kind: str, **facts: str) -> Question:
    return Question(
        id="digits-k3f9/1",
        number=1,
        kind=kind,
        topic=kind,
        asked_at=AT,
        answer_by=AT + timedelta(hours=4),
        facts=facts,
    )


def choice(kind: str, reply: str) -> tuple[str, str]:
    """The key and the value of a reply that is understood."""
    found = understand(question(kind), reply)
    assert isinstance(found, Choice), found
    return found.option.key, found.value


def refusal(kind: str, reply: str) -> str:
    found = understand(question(kind), reply)
    assert isinstance(found, NotAnAnswer), found
    return found.reason


# --- the templates -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "default", "act"),
    [
        ("image", "don't submit", Act.give_up),
        ("environment", "build a complete one in the workspace", Act.build),
        ("network", "go on without the network", Act.go_on),
        ("capacity", "queue and wait", Act.go_on),
        ("looks-off", "keep it running", Act.keep),
    ],
)
def test_the_safe_defaults_are_those_of_rule_g7(kind: str, default: str, act: Act) -> None:
    found = question(kind).default
    assert (found.en, found.act) == (default, act)


def test_the_default_of_a_dragging_download_is_to_stop_the_download() -> None:
    found = question("download").default
    assert found.en.startswith("stop the download")
    assert found.key == "without"


@pytest.mark.parametrize("kind", KINDS)
def test_a_default_is_one_of_its_own_options(kind: str) -> None:
    template = QUESTIONS[kind]
    assert template.default in [option.key for option in template.options]
    assert question(kind).default.key == template.default


@pytest.mark.parametrize("kind", KINDS)
def test_a_default_needs_no_value_and_submits_nothing_new(kind: str) -> None:
    default = question(kind).default
    assert default.value == ""
    assert default.act not in {Act.resend, Act.set_value, Act.recheck}


@pytest.mark.parametrize("kind", sorted(set(KINDS) - {"download"}))
def test_no_default_stops_a_job(kind: str) -> None:
    """The download's default is the seed's own (G7); no other may end anything that runs."""
    assert question(kind).default.act is not Act.stop


@pytest.mark.parametrize(("kind", "option"), OPTIONS)
def test_an_option_has_an_act_and_both_languages(kind: str, option: Option) -> None:
    assert isinstance(option.act, Act)
    assert option_text(option, "en") == option.en != ""
    assert option_text(option, "zh") == option.zh != ""
    assert option.en.isascii()
    assert re.search(r"[\u4e00-\u9fff]", option.zh)


@pytest.mark.parametrize(("kind", "option"), OPTIONS)
def test_an_option_takes_a_value_exactly_when_its_act_sets_one(kind: str, option: Option) -> None:
    assert (option.value != "") == (option.act is Act.set_value)
    assert option.value == "" or option.value in Spec.model_fields


@pytest.mark.parametrize("template", QUESTIONS.values(), ids=list(QUESTIONS))
def test_a_template_is_complete(template: Template) -> None:
    keys = [option.key for option in template.options]
    assert len(keys) == len(set(keys))
    assert not any(key.isdigit() or " " in key for key in keys)
    assert re.fullmatch(r"[A-I]\d+", template.rule)
    assert getattr(Policy(), template.deadline) > 0
    assert set(re.findall(r"{(\w+)}", template.en)) == set(re.findall(r"{(\w+)}", template.zh))
    assert re.search(r"[\u4e00-\u9fff]", template.zh)


@pytest.mark.parametrize("template", QUESTIONS.values(), ids=list(QUESTIONS))
def test_a_run_that_would_not_be_submitted_leaves_more_time(template: Template) -> None:
    gives_up = (
        next(option for option in template.options if option.key == template.default).act is Act.give_up
    )
    assert (template.deadline == "answer_s_no_submit") == gives_up


@pytest.mark.parametrize("kind", KINDS)
def test_no_question_asks_for_a_credential(kind: str) -> None:
    """B6: there is no option whose value would be one."""
    assert not any(
        word in option.value
        for option in QUESTIONS[kind].options
        for word in ("key", "secret", "token", "password")
    )


# --- wording -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_question_names_the_job_and_why(kind: str, language: str) -> None:
    asked = worded(
        question(kind, name="digits-k3f9", why="nothing else fits."), "zh" if language == "zh" else "en"
    )
    assert "digits-k3f9" in asked
    assert "nothing else fits." in asked
    assert "{" not in asked


@pytest.mark.parametrize("kind", KINDS)
def test_a_missing_fact_is_left_out_and_a_brace_in_one_is_kept(kind: str) -> None:
    assert worded(question(kind))
    assert "{name}" in worded(question(kind, why="printed {name} and {0.x}"))


def test_a_question_is_open_until_it_is_closed() -> None:
    asked = question("image")
    assert asked.is_open
    assert not asked.model_copy(update={"status": Status.withdrawn}).is_open
    with pytest.raises(KeyError):
        asked.option("no-such-option")


# --- replies -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "option"), OPTIONS)
def test_every_option_is_reached_by_key_and_by_number(kind: str, option: Option) -> None:
    number = QUESTIONS[kind].options.index(option) + 1
    value = "" if not option.value else "4" if option.value == "gpu" else "/data/set"
    for head in (option.key, option.key.upper(), str(number)):
        for sign in (" ", "=", ": ", ":", " = "):
            reply = f"  {head}{sign}{value} " if value else f" {head}  "
            assert choice(kind, reply) == (option.key, value)


@pytest.mark.parametrize(
    ("kind", "reply", "key"),
    [
        ("image", "registry.example/team/train:2.4", "image"),
        ("network", "http://proxy.example:3128", "proxy"),
        ("download", "/mnt/sets/imagenet", "path"),
        ("capacity", "4", None),
        ("capacity", "16", "reduce"),
    ],
)
def test_free_text_is_taken_for_the_one_value_that_is_asked(kind: str, reply: str, key: str | None) -> None:
    """A bare number that is no option's number is a figure; `4` of three options as well."""
    assert choice(kind, reply) == (key or "reduce", reply)


def test_free_text_is_refused_where_two_values_are_asked() -> None:
    assert "environment" in refusal("environment", "/envs/train")


def test_a_number_means_the_option_before_the_figure() -> None:
    assert choice("capacity", "1") == ("wait", "")
    assert choice("capacity", "2 1") == ("reduce", "1")


@pytest.mark.parametrize(
    ("kind", "reply"),
    [
        ("looks-off", ""),
        ("looks-off", "   "),
        ("looks-off", "0"),
        ("looks-off", "3"),
        ("looks-off", "12"),
        ("looks-off", "-1"),
        ("looks-off", "yes please"),
        ("looks-off", "don't stop it"),
        ("looks-off", "stop it now, or maybe keep it"),
        ("looks-off", "keep stop"),
        ("looks-off", "stopped"),
        ("looks-off", "registry.example/x:1"),
        ("image", "whatever you had last time"),
        ("image", "latest"),
        ("capacity", "reduce -2"),
        ("capacity", "reduce four"),
        ("capacity", "2 2.5"),
    ],
)
def test_a_reply_that_is_no_answer_is_refused(kind: str, reply: str) -> None:
    assert refusal(kind, reply)


@pytest.mark.parametrize(("kind", "option"), [pair for pair in OPTIONS if pair[1].value])
def test_an_option_without_its_value_is_refused_with_how_to_give_it(kind: str, option: Option) -> None:
    number = QUESTIONS[kind].options.index(option) + 1
    for reply in (option.key, str(number), f"{option.key}=", f"{option.key} : "):
        assert option.key in refusal(kind, reply)


@pytest.mark.parametrize("kind", KINDS)
def test_a_refusal_lists_every_option(kind: str) -> None:
    reason = refusal(kind, "neither of these")
    assert all(option.key in reason for option in QUESTIONS[kind].options)


@pytest.mark.parametrize("kind", KINDS)
def test_any_reply_is_either_a_choice_of_this_question_or_refused(kind: str) -> None:
    heads = ["", "1", "2", "9", "keep", "image", "reduce", "\u0130mage", "{0}", "\x1b[31m", "²"]
    for parts in product(heads, [" ", "=", ": ", "\n", "\t"], ["", "3", "/data", "x y", "=", "wk answer"]):
        found = understand(question(kind), "".join(parts))
        if isinstance(found, Choice):
            assert found.option in QUESTIONS[kind].options
            assert (found.value != "") == (found.option.value != "")
        else:
            assert found.reason
