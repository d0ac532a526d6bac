"""What was asked back is settled by the next message, if that names one of the runs, its number, or says yes."""

from __future__ import annotations

import pytest

from states.chat import settled, understand
from tests.states.chat.phrases import WORLDS


@pytest.mark.parametrize("reply", ["gpt-mini-3", "the gpt one", "1", "第1个", "gpt-mini-3 please"])
def test_which_run_to_stop_is_settled(reply: str) -> None:
    before = understand("stop it now", WORLDS["two"])
    after = settled(before, reply, WORLDS["two"])
    assert after is not None
    assert after.is_act
    assert (after.intent, after.slots) == ("stop", {"job": "gpt-mini-3"})


@pytest.mark.parametrize(
    "reply", ["both", "yes", "3", "status of gpt-mini-3", "why gpt-mini-3?", "neither", "not gpt-mini-3"]
)
def test_what_does_not_settle_it_is_read_by_itself(reply: str) -> None:
    before = understand("stop it now", WORLDS["two"])
    assert settled(before, reply, WORLDS["two"]) is None


def test_a_read_is_completed() -> None:
    before = understand("last 30 lines", WORLDS["two"])
    after = settled(before, "seg-unet-2", WORLDS["two"])
    assert after is not None
    assert (after.intent, after.slots) == ("tail", {"lines": 30, "job": "seg-unet-2"})


def test_a_delete_is_settled_by_the_name_alone() -> None:
    before = understand("delete it please", WORLDS["mixed"])
    assert settled(before, "1", WORLDS["mixed"]) is None
    assert settled(before, "the seg one", WORLDS["mixed"]) is None
    after = settled(before, "seg-unet-2", WORLDS["mixed"])
    assert after is not None
    assert (after.intent, after.slots, after.is_act) == ("delete", {"job": "seg-unet-2"}, True)


def test_yes_confirms_one_thing_and_nothing_else() -> None:
    slip = understand("sotp gpt-mini-3 now", WORLDS["one"])
    assert slip.ask_back
    after = settled(slip, "yes please", WORLDS["one"])
    assert after is not None
    assert (after.intent, after.is_act) == ("stop", True)
    assert settled(slip, "no", WORLDS["one"]) is None
    assert settled(slip, "ok thanks, but no", WORLDS["one"]) is None
    question = understand("hmm, yes", WORLDS["q"])
    assert settled(question, "yes", WORLDS["q"]) is None


def test_a_run_that_ended_meanwhile_is_not_stopped() -> None:
    before = understand("stop it now", WORLDS["two"])
    after = settled(before, "seg-unet-2", WORLDS["mixed"])
    assert after is not None
    assert after.moot
    assert not after.is_act
