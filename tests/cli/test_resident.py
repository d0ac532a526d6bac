"""Who is there: locks that live as long as their process, and a bell that is heard once."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent import background
from agent.clock import SystemClock
from agent.resident import Bell, Resident, Watchers


def test_one_holds_the_place_and_tells_who_it_is(tmp_path: Path) -> None:
    first, second = Resident(tmp_path, SystemClock()), Resident(tmp_path, SystemClock())
    assert second.holder() is None
    assert first.claim()
    assert not second.claim()
    starting = second.holder()
    assert starting is not None
    assert (starting.pid, starting.ready) == (os.getpid(), False)
    first.ready()
    present = second.holder()
    assert present is not None
    assert (present.pid, present.ready) == (os.getpid(), True)
    first.release()
    assert second.holder() is None
    assert second.claim()
    second.release()


def test_who_is_killed_is_gone_at_once(tmp_path: Path, eventually: Callable[..., Any]) -> None:
    looker = Resident(tmp_path, SystemClock())
    child = os.fork()
    if child == 0:
        here = Resident(tmp_path, SystemClock())
        here.claim()
        here.ready()
        signal.pause()
    try:
        eventually(lambda: looker.holder() is not None and looker.holder().pid == child)
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    assert looker.holder() is None


def test_an_agent_that_does_not_come_up_is_said_with_its_last_words(tmp_path: Path) -> None:
    broken = {**os.environ, "WATCHKEEPER_HOME": str(tmp_path), "WATCHKEEPER_WAVE_S": "soon"}
    with pytest.raises(background.NotStarted, match=r"WATCHKEEPER_WAVE_S[\s\S]*wk serve"):
        background.ensure(broken, tmp_path / "state", SystemClock())
    assert (tmp_path / "state" / "resident.log").stat().st_mode & 0o077 == 0


def test_only_the_first_watcher_is_alone(tmp_path: Path) -> None:
    called: list[str] = []
    first, second, looker = Watchers(tmp_path), Watchers(tmp_path), Watchers(tmp_path)
    assert not looker.anyone()
    first.enter(lambda: called.append("first"))
    second.enter(lambda: called.append("second"))
    assert called == ["first"]
    first.leave()
    assert looker.anyone()
    second.leave()
    assert not looker.anyone()


def test_the_bell_is_heard_once_by_everyone_but_not_from_before(tmp_path: Path) -> None:
    ringer = Bell(tmp_path)
    ringer.ring()
    one, two = Bell(tmp_path), Bell(tmp_path)
    assert not one.heard()
    ringer.ring()
    assert one.heard()
    assert two.heard()
    assert not one.heard()
