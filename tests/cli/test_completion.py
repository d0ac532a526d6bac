"""TAB on `wk answer`: the open questions, then the options of the one that was given; nothing where nothing fits."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.peek import Peek
from agent.store import Store
from tests.agent.fakes import Desk
from tests.channels.conftest import asking
from tests.cli.program import Wk


@pytest.fixture
def blocked(wk: Wk, tmp_path: Path) -> tuple[Wk, str]:
    """A home whose database holds a run that asks for an image."""
    (wk.home / "state").mkdir(mode=0o700)
    store = Store(f"sqlite:///{wk.home / 'state' / 'watchkeeper.db'}")
    store.create_schema()
    desk = Desk(store, tmp_path / "desk", checks=asking())
    run = desk.delegate()
    desk.settle()
    store.close()
    return wk, run


def offered(wk: Wk, line: str) -> list[str]:
    words = line.split(" ")
    asked = {"_WK_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)}
    return wk(env=asked).out.split()


def test_the_options_of_a_question_are_offered(blocked: tuple[Wk, str]) -> None:
    wk, run = blocked
    assert offered(wk, "wk answer di") == [f"{run}/1"]
    assert offered(wk, f"wk answer {run}/1 d") == ["dont-submit"]
    assert offered(wk, f"wk answer {run} i") == ["image="]


def test_a_question_that_is_not_there_has_none(blocked: tuple[Wk, str]) -> None:
    wk, run = blocked
    peek = Peek(wk.home / "state" / "watchkeeper.db")
    assert peek.question_kind(f"{run}/1") == peek.question_kind(run) == "image"
    assert peek.question_kind(f"{run}/2") == peek.question_kind("nobody") == peek.question_kind("") == ""
