"""Real timers over a real store: what is due is looked at, late is better than never, and nothing spins."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
from apscheduler.jobstores.memory import MemoryJobStore

from agent.clock import SystemClock
from agent.clusters.scripted import JobScript, Moment
from agent.store import Store
from agent.wakes import Wakes
from states.job import State
from states.observation import Phase
from tests.agent.fakes import Desk

Eventually = Callable[..., Any]

SOON = JobScript(
    moments=(
        Moment(0, Phase.pending),
        Moment(0.1, Phase.running),
        Moment(0.4, Phase.succeeded, {"exit_code": 0}),
    )
)
QUICK = {"poll_s": 0.1, "queued_poll_s_first": 0.1, "look_s_first": 0.1, "look_s_min": 0.1}
"""Numbers of a run that is over in half a second of real time."""


class Now(SystemClock):
    """The system's clock; a test may shift it."""

    ahead_s = 0.0

    def now(self) -> Any:
        return super().now() + timedelta(seconds=self.ahead_s)


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Desk]:
    store = Store(f"sqlite:///{tmp_path / 'w.db'}", grid_s=0.05)
    store.create_schema()
    desk = Desk(store, tmp_path, SOON)
    desk.use_clock(Now())
    yield desk
    store.close()


@contextmanager
def awake(desk: Desk, *, sweep_s: float = 60.0) -> Iterator[Wakes]:
    wakes = Wakes(desk.ports, workers=2, sweep_s=sweep_s)
    wakes.start()
    try:
        yield wakes
    finally:
        wakes.close()


def test_a_run_is_carried_to_its_end_by_timers_alone(here: Desk, eventually: Eventually) -> None:
    with awake(here) as wakes:
        job_id = here.delegate(policy=QUICK)
        wakes.nudge()
        eventually(lambda: here.job(job_id).state is State.succeeded)
    assert here.cluster.count("submit") == 1


def test_what_was_due_while_nobody_was_here_is_looked_at_at_once(here: Desk, eventually: Eventually) -> None:
    assert isinstance(here.clock, Now)
    here.clock.ahead_s = -3600.0
    job_id = here.delegate(policy=QUICK)
    here.settle()
    here.clock.ahead_s = 0.0
    with awake(here):
        eventually(lambda: here.job(job_id).state is State.succeeded)


def test_the_sweep_finds_what_no_nudge_told_of(here: Desk, eventually: Eventually) -> None:
    with awake(here, sweep_s=0.2):
        job_id = here.delegate(policy=QUICK)
        eventually(lambda: here.job(job_id).state is State.succeeded)


def test_a_wave_that_breaks_is_followed_by_another(
    here: Desk, eventually: Eventually, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    claim, broken = here.store.claim_due, [True, True]

    def breaks(*args: Any, **kwargs: Any) -> Any:
        if broken:
            broken.pop()
            raise RuntimeError("the database is away")
        return claim(*args, **kwargs)

    monkeypatch.setattr(here.store, "claim_due", breaks)
    job_id = here.delegate(policy=QUICK)
    with caplog.at_level(logging.CRITICAL), awake(here, sweep_s=0.1):
        eventually(lambda: here.job(job_id).state is State.succeeded)


def test_a_close_in_the_middle_of_a_look_comes_to_an_end(here: Desk, eventually: Eventually) -> None:
    """The look arms the next timer while the scheduler shuts down: neither may wait for the other."""
    wakes = Wakes(here.ports, workers=1, sweep_s=60)
    next_wake, asked = here.store.next_wake, Event()

    def late() -> Any:
        asked.set()
        eventually(lambda: not wakes._scheduler.running)
        return next_wake() or here.clock.now()

    here.store.next_wake = late  # type: ignore[method-assign]
    wakes.start()
    assert asked.wait(20)
    closing = Thread(target=wakes.close, daemon=True)
    closing.start()
    closing.join(20)
    assert not closing.is_alive()


def test_a_close_in_the_middle_of_a_round_leaves_the_timer_alive(
    here: Desk, eventually: Eventually, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A scheduler that is stopped while it hands out what is due no longer finds that job, and its thread dies."""
    due, asked, go = MemoryJobStore.get_due_jobs, Event(), Event()

    def slow(store: MemoryJobStore, now: Any) -> Any:
        found = due(store, now)
        if found and not asked.is_set():
            asked.set()
            assert go.wait(20)
        return found

    monkeypatch.setattr(MemoryJobStore, "get_due_jobs", slow)
    wakes = Wakes(here.ports, workers=1, sweep_s=60)
    died: list[Any] = []
    monkeypatch.setattr("threading.excepthook", died.append)
    wakes.start()
    assert asked.wait(20)
    closing = Thread(target=wakes.close, daemon=True)
    closing.start()
    eventually(lambda: wakes._closed or not wakes._scheduler.running)
    go.set()
    closing.join(20)
    assert not closing.is_alive()
    eventually(lambda: not wakes._scheduler.running)
    assert died == []


def test_nothing_spins_while_an_effect_is_being_performed(here: Desk, eventually: Eventually) -> None:
    """A submit that takes long keeps its effect open; the loop must not look again and again meanwhile."""
    looks = 0
    claim = here.store.claim_due

    def count(*args: Any, **kwargs: Any) -> Any:
        nonlocal looks
        looks += 1
        return claim(*args, **kwargs)

    here.store.claim_due = count  # type: ignore[method-assign]
    submit, may_go = here.cluster.submit, [False]

    def slow(submission: Any) -> Any:
        eventually(lambda: may_go[0])
        return submit(submission)

    here.cluster.submit = slow  # type: ignore[method-assign]
    with awake(here) as wakes:
        job_id = here.delegate(policy=QUICK)
        wakes.nudge()
        eventually(lambda: here.job(job_id).state is State.submitting)
        before, until = looks, here.clock.now() + timedelta(seconds=0.5)
        eventually(lambda: here.clock.now() > until)
        during = looks - before
        may_go[0] = True
        eventually(lambda: here.job(job_id).state is State.succeeded)
    assert during <= 3
