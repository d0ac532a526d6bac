"""A chat message carried out: only what it orders, only by whom it may be, and told in a few words."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from agent.channels.chat import Chat
from agent.people import Role
from states.job import State
from tests.agent.fakes import ENDLESS
from tests.channels.conftest import Posted, asking

Make = Callable[..., Posted]


@pytest.fixture
def running(posted: Make) -> tuple[Posted, Chat, str]:
    desk = posted(ENDLESS)
    run = desk.delegate()
    desk.run_to(run, State.running)
    return desk, Chat(desk.service), run


@pytest.fixture
def blocked(posted: Make) -> tuple[Posted, Chat, str]:
    desk = posted(checks=asking())
    run = desk.delegate()
    desk.settle()
    return desk, Chat(desk.service), run


@pytest.mark.parametrize("words", ["how is {run} doing?", "{run} 怎么样了?", "status"])
def test_it_tells_how_a_run_stands(running: tuple[Posted, Chat, str], words: str) -> None:
    _, chat, run = running
    assert run in chat.said(words.format(run=run), by="kim", role=Role.read)


def test_it_shows_the_end_of_a_log(running: tuple[Posted, Chat, str]) -> None:
    desk, chat, run = running
    desk.clock.step(120)
    assert "loss" in chat.said(f"show me the log of {run}", by="kim", role=Role.read)


def test_it_says_why_with_the_rule(running: tuple[Posted, Chat, str]) -> None:
    _, chat, run = running
    assert "[" in chat.said(f"why is {run} still running?", by="kim", role=Role.read)


def test_it_says_what_is_free(running: tuple[Posted, Chat, str]) -> None:
    assert "lab" in running[1].said("how many gpus are free?", by="kim", role=Role.read)


@pytest.mark.parametrize("words", ["stop {run}", "停掉 {run}"])
def test_a_stop_is_carried_out_for_who_may(running: tuple[Posted, Chat, str], words: str) -> None:
    desk, chat, run = running
    assert "role operate" in chat.said(words.format(run=run), by="ann", role=Role.answer)
    assert desk.job(run).state is State.running
    chat.said(words.format(run=run), by="kim", role=Role.operate)
    assert desk.job(run).stop is not None
    assert desk.job(run).stop.by == "kim"


@pytest.mark.parametrize("words", ["maybe stop {run}?", "should we stop {run}", "don't stop {run}"])
def test_what_is_not_an_order_stops_nothing(running: tuple[Posted, Chat, str], words: str) -> None:
    desk, chat, run = running
    chat.said(words.format(run=run), by="kim", role=Role.operate)
    assert desk.job(run).stop is None


@pytest.mark.parametrize(
    ("words", "chosen"), [("3", "dont-submit"), ("don't submit", "dont-submit"), ("不提交", "dont-submit")]
)
def test_a_question_is_answered_in_words(blocked: tuple[Posted, Chat, str], words: str, chosen: str) -> None:
    desk, chat, run = blocked
    told = chat.said(words, by="kim", role=Role.answer, run=run)
    assert desk.job(run).questions[0].chosen == chosen
    assert desk.job(run).questions[0].by == "kim"
    assert f"{run}/1" in told


def test_the_default_can_be_chosen(blocked: tuple[Posted, Chat, str]) -> None:
    desk, chat, run = blocked
    chat.said("the default", by="kim", role=Role.answer, run=run)
    assert desk.job(run).questions[0].chosen == "dont-submit"


def test_a_value_answers(blocked: tuple[Posted, Chat, str]) -> None:
    desk, chat, run = blocked
    chat.said("registry.lab/torch:2.9", by="kim", role=Role.answer)
    assert desk.job(run).questions[0].value == "registry.lab/torch:2.9"


def test_what_was_asked_back_is_settled_by_the_next_message(posted: Make) -> None:
    desk = posted(ENDLESS)
    chat = Chat(desk.service)
    runs = [desk.delegate(name=name) for name in ("digits", "words")]
    for run in runs:
        desk.run_to(run, State.running)
    asked = chat.said("stop it", by="kim", role=Role.operate)
    assert all(run in asked for run in runs)
    assert all(desk.job(run).stop is None for run in runs)
    chat.said(runs[1], by="lee", role=Role.operate)  # somebody else's word settles nothing of kim's
    assert desk.job(runs[1]).stop is None
    chat.said(runs[1], by="kim", role=Role.operate)
    assert [desk.job(run).stop is not None for run in runs] == [False, True]


def test_a_credential_is_neither_taken_nor_repeated(blocked: tuple[Posted, Chat, str]) -> None:
    desk, chat, run = blocked
    secret = "AKIA" + "Q3EGRZT7XBNVJW5D"
    told = chat.said(f"use the key {secret}", by="kim", role=Role.operate)
    assert secret not in told
    assert desk.job(run).open_questions


def test_nobody_is_nobody(running: tuple[Posted, Chat, str]) -> None:
    desk, chat, run = running
    assert "may not" in chat.said(f"stop {run}", by="x", role=None)
    assert desk.job(run).stop is None


def test_a_run_is_not_started_from_a_line(running: tuple[Posted, Chat, str]) -> None:
    desk, chat, _ = running
    told = chat.said("run `python train.py` on 2 gpus", by="kim", role=Role.operate)
    assert "wk run" in told
    assert len(desk.store.boards()) == 1
