"""The pool: one run in one thread, another turn for what came meanwhile, a drain at the end."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any

import pytest

from agent.turn import turn
from agent.workers import Workers
from states.job import State
from tests.agent.fakes import Desk


class Turns:
    """Stands where `turn` is called: counts, and holds each turn until it is let go."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.at_once = self.most_at_once = 0
        self.go = threading.Event()
        self._lock = threading.Lock()

    def __call__(self, job_id: str, ports: Any) -> int:
        with self._lock:
            self.begun.append(job_id)
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
        assert self.go.wait(20)
        with self._lock:
            self.at_once -= 1
        return 1


@pytest.fixture
def turns(monkeypatch: pytest.MonkeyPatch) -> Turns:
    made = Turns()
    monkeypatch.setattr("agent.workers.turn", made)
    return made


def test_a_run_that_is_given_twice_is_in_one_thread_and_gets_another_turn(
    desk: Callable[..., Desk], turns: Turns, eventually: Callable[..., Any]
) -> None:
    workers = Workers(desk().ports, 4)
    workers.give("a")
    eventually(lambda: turns.begun == ["a"])
    workers.give("a")
    workers.give("a")
    turns.go.set()
    eventually(lambda: turns.begun == ["a", "a"])
    workers.close()
    assert turns.most_at_once == 1


def test_different_runs_are_carried_at_once_up_to_the_bound(
    desk: Callable[..., Desk], turns: Turns, eventually: Callable[..., Any]
) -> None:
    workers = Workers(desk().ports, 3)
    for name in "abcde":
        workers.give(name)
    eventually(lambda: len(turns.begun) == 3)
    turns.go.set()
    eventually(lambda: len(turns.begun) == 5)
    workers.close()
    assert turns.most_at_once == 3


def test_a_close_finishes_what_is_under_way_and_takes_no_more(
    desk: Callable[..., Desk], turns: Turns, eventually: Callable[..., Any]
) -> None:
    workers = Workers(desk().ports, 1)
    workers.give("a")
    eventually(lambda: turns.begun == ["a"])
    workers.give("b")
    closing = threading.Thread(target=workers.close)
    closing.start()
    turns.go.set()
    closing.join(20)
    workers.give("c")
    assert turns.begun[0] == "a"
    assert "c" not in turns.begun
    assert turns.at_once == 0


def test_a_turn_that_breaks_does_not_end_the_thread(
    desk: Callable[..., Desk], monkeypatch: pytest.MonkeyPatch, eventually: Callable[..., Any], caplog: Any
) -> None:
    taken: list[str] = []
    after: list[int] = []

    def breaks(job_id: str, ports: Any) -> int:
        taken.append(job_id)
        raise RuntimeError("this one only")

    monkeypatch.setattr("agent.workers.turn", breaks)
    workers = Workers(desk().ports, 1, after=lambda: after.append(1))
    workers.give("a")
    eventually(lambda: len(after) == 1)
    workers.give("b")
    eventually(lambda: len(after) == 2)
    workers.close()
    assert taken == ["a", "b"]
    assert "taken again in 5 s" in caplog.text


def test_timers_are_looked_for_when_no_run_waits_for_a_thread(
    desk: Callable[..., Desk], turns: Turns, eventually: Callable[..., Any]
) -> None:
    looked: list[int] = []
    workers = Workers(desk().ports, 1, after=lambda: looked.append(len(turns.begun)))
    for name in "abcd":
        workers.give(name)
    turns.go.set()
    eventually(lambda: looked != [])
    workers.close()
    assert looked == [4]


def test_a_turn_that_breaks_is_taken_again_later_each_time_and_holds_nobody_up(
    desk: Callable[..., Desk], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    here = desk()
    bad, good = here.delegate(name="bad"), here.delegate(name="good")

    def breaks(job_id: str, ports: Any) -> int:
        if job_id == bad:
            raise RuntimeError("it cannot be carried")
        return turn(job_id, ports)

    monkeypatch.setattr("agent.workers.turn", breaks)
    pauses = []
    with caplog.at_level(logging.CRITICAL):
        workers = Workers(here.ports, 1)
        for _ in range(4):
            assert bad in here.store.jobs_with_effects(here.clock.now())
            workers._run(bad)
            workers._run(good)
            assert bad not in here.store.jobs_with_effects(here.clock.now())
            (row,) = {row["not_before"] for row in here.store.effects_of(bad) if row["done_at"] is None}
            pauses.append((row - here.clock.now()).total_seconds())
            here.clock.jump_to(row)
        workers.close()
    assert pauses == [5.0, 10.0, 20.0, 40.0]
    assert here.job(good).state is not State.preflight
