"""Waves: one status call for any number of jobs, and nothing spent on the quiet ones."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from agent.clusters.base import Unreachable
from agent.clusters.scripted import Away, JobScript, Moment, SubmitFault
from agent.leases import free_all
from agent.store import Store
from agent.wave import wave
from states.job import State
from states.observation import Phase
from tests.agent.fakes import ENDLESS, GOOD, WAITING, Desk, at
from tests.agent.test_store import statements

MakeDesk = Callable[..., Desk]


def many(here: Desk, count: int) -> list[str]:
    """So many runs in the queue, all looked at once."""
    ids = [here.delegate(name=f"job{number}") for number in range(count)]
    here.settle()
    here.clock.step(20)
    here.look()
    return ids


def due(here: Desk) -> None:
    """All timers have come, no deadline has."""
    here.clock.step(60)


@pytest.mark.parametrize("count", [1, 40])
def test_one_status_call_for_all_jobs_of_a_cluster(desk: MakeDesk, count: int) -> None:
    here = desk(WAITING)
    many(here, count)
    before = here.cluster.count("observe")
    due(here)
    here.look()
    assert here.cluster.count("observe") == before + 1


def test_quiet_jobs_leave_no_row_and_cost_no_turn(store: Store, tmp_path: Path) -> None:
    here = Desk(store, tmp_path, WAITING)
    ids = many(here, 25)
    before = [len(store.journal(job_id)) for job_id in ids]
    due(here)
    sent = statements(store)
    assert wave(here.ports) == []
    assert [len(store.journal(job_id)) for job_id in ids] == before
    written = [text for text in sent if text.startswith(("UPDATE", "INSERT", "DELETE"))]
    assert len(written) == 2  # the claim and the rest
    assert {store.load(job_id).seen_at for job_id in ids} == {here.clock.now()}


LOST = JobScript(
    moments=(
        Moment(0, Phase.pending),
        Moment(20, Phase.running),
        Moment(100, Phase.lost),
        Moment(9000, Phase.running),
    )
)


@pytest.mark.parametrize(
    ("deaf_stops", "sends", "stays"),
    [(0, 1, False), (0, 2, True), (9, 1, True)],
    ids=["over", "sent twice", "deaf"],
)
def test_what_may_be_left_of_an_earlier_attempt_is_in_the_same_call(
    desk: MakeDesk, deaf_stops: int, sends: int, stays: bool
) -> None:
    lost = {1: SubmitFault(answer="lost", created=False)} if sends > 1 else {}
    here = desk(LOST._replace(deaf_stops=deaf_stops), WAITING, faults=lost)
    job_id = here.delegate()
    here.run(lambda: len(here.job(job_id).attempts) == 2 and bool(here.job(job_id).attempt.cluster_job_id))
    first, second = (attempt.name for attempt in here.job(job_id).attempts)
    told = []
    for _ in range(2):
        due(here)
        before = here.cluster.count("observe")
        here.look()
        assert here.cluster.count("observe") == before + 1
        told.append(next(call.name for call in reversed(here.cluster.calls) if call.op == "observe"))
    assert told == [f"{second},{first}", f"{second},{first}" if stays else second]


def test_one_with_news_takes_a_turn_and_the_others_rest(desk: MakeDesk) -> None:
    here = desk(WAITING, WAITING, GOOD)
    ids = many(here, 3)
    due(here)
    assert here.look() == [ids[2]]
    assert here.job(ids[2]).state is State.running
    assert here.job(ids[0]).state is State.queued


@pytest.mark.parametrize("late_us", [0, 1, 999_999], ids=["on the grid", "just behind it", "before the next"])
def test_what_a_killed_wave_had_claimed_is_due_at_the_next_start_and_the_rest_keep_their_timers(
    store: Store, tmp_path: Path, late_us: int
) -> None:
    here = Desk(store, tmp_path, WAITING)
    first = many(here, 2)
    here.clock.jump_to(at(600) + timedelta(microseconds=late_us))
    late = here.delegate(name="late")
    here.settle()
    timer = store.load(late).wake_at
    claimed = {due.id for due in store.claim_due(here.clock.now(), claim_s=120)}
    assert claimed == set(first)
    free_all(store, here.clock)
    assert store.load(late).wake_at == timer
    assert {due.id for due in store.claim_due(here.clock.now(), claim_s=120)} == claimed


def test_a_cluster_is_left_alone_for_as_long_as_it_asks(
    desk: MakeDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = desk(WAITING)
    many(here, 2)
    due(here)

    def busy(refs: object) -> Any:
        raise Unreachable("too many requests", retry_after_s=900)

    monkeypatch.setattr(here.cluster, "observe", busy)
    here.look()
    next_wake = here.store.next_wake()
    assert next_wake is not None
    assert next_wake - here.clock.now() >= timedelta(seconds=900)


def test_an_outage_changes_nothing_backs_off_and_is_not_repeated_in_the_journal(desk: MakeDesk) -> None:
    here = desk(ENDLESS, away=[Away(at(300), at(300 + 6 * 3600))])
    job_id = here.delegate()
    here.run_to(job_id, State.running)
    here.run(lambda: here.clock.now() >= at(300))
    calls, rows = here.cluster.count("observe"), len(here.kinds(job_id))
    here.run(lambda: here.clock.now() >= at(5 * 3600))
    assert here.job(job_id).state is State.running
    assert here.cluster.count("observe") - calls < 60
    assert len(here.kinds(job_id)) - rows < 5
    assert [row["stage"] for row in here.store.messages(job_id)].count("unreachable") == 1
    here.run(lambda: here.clock.now() >= at(8 * 3600))
    assert here.job(job_id).unreachable_since is None


def test_a_cluster_that_is_not_configured_any_more_is_away_not_gone(
    desk: MakeDesk, caplog: pytest.LogCaptureFixture
) -> None:
    here = desk(WAITING)
    (job_id,) = many(here, 1)
    here.ports = here.ports.__class__(**{**here.ports.__dict__, "clusters": {}})
    due(here)
    with caplog.at_level(logging.CRITICAL):
        wave(here.ports)
    assert here.job(job_id).state is State.queued
    assert here.kinds(job_id)[-1] == "cluster_unreachable"


def test_one_bad_job_does_not_stop_the_wave(
    desk: MakeDesk, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    here = desk(*[GOOD._replace(moments=(GOOD.moments[0], GOOD.moments[1]))] * 3)
    ids = many(here, 3)
    apply = here.store.apply

    def breaks(job_id: str, *args: Any, **kwargs: Any) -> Any:
        if job_id == ids[1]:
            raise ValueError("its row cannot be read")
        return apply(job_id, *args, **kwargs)

    monkeypatch.setattr(here.store, "apply", breaks)
    due(here)
    with caplog.at_level(logging.CRITICAL):
        wave(here.ports)
    assert [here.job(job_id).state for job_id in ids] == [State.running, State.queued, State.running]


def test_a_job_without_an_answer_is_looked_at_again_later(
    desk: MakeDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = desk(WAITING)
    (job_id,) = many(here, 1)
    monkeypatch.setattr(here.cluster, "observe", lambda refs: {})
    due(here)
    before = here.job(job_id)
    wave(here.ports)
    after = here.job(job_id)
    assert after.state is before.state
    assert after.wake_at is not None
    assert after.wake_at > here.clock.now()


def test_a_deadline_is_served_though_the_job_is_quiet(desk: MakeDesk) -> None:
    here = desk(WAITING)
    job_id = here.delegate(policy={"queued_ask_s": 600})
    here.settle()
    job = here.run_to(job_id, State.blocked)
    assert [question.kind for question in job.open_questions] == ["waits-long"]
    asked_at = job.open_questions[0].asked_at
    assert asked_at <= at(605)
    here.run(lambda: here.job(job_id).state is not State.blocked)
    assert here.clock.now() >= asked_at + timedelta(hours=4)
    assert here.job(job_id).state is State.queued


def test_what_a_cluster_says_is_redacted_before_it_is_kept(desk: MakeDesk) -> None:
    told = GOOD.moments[0]._replace(fields={"reason": "token hunter2", "native": "PENDING hunter2"})
    script = JobScript(moments=(told,))
    here = desk(script, redact=lambda text: text.replace("hunter2", "***"))
    (job_id,) = many(here, 1)
    assert "hunter2" not in str(here.store.journal(job_id))
    assert here.job(job_id).attempt.seen is not None
