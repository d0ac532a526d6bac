"""Rows of deliveries on both databases: each message once per channel, claimed by one, found again after a crash."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from agent.deliveries import HELD, Deliveries
from agent.store import Store
from states.job import State
from states.routing import Notice, Plan
from tests.agent.fakes import GOOD, Desk


def at_once(notice: Notice) -> Plan:
    return Plan(notice.at, loud=notice.must_not_miss)


@pytest.fixture
def told(store: Store, tmp_path: Path) -> tuple[Desk, Deliveries, str]:
    """A run that has ended, and what was told of it is new to the channel `team`."""
    here = Desk(store, tmp_path, GOOD)
    deliveries = Deliveries(here.store)
    deliveries.enlist("team", here.clock.now(), at_once)
    run = here.delegate()
    here.run_to(run, State.succeeded)
    return here, deliveries, run


def test_each_message_is_taken_in_once(told: tuple[Desk, Deliveries, str]) -> None:
    here, deliveries, run = told
    count = len(here.store.messages(run))
    assert deliveries.enlist("team", here.clock.now(), at_once) == count > 2
    assert deliveries.enlist("team", here.clock.now(), at_once) == 0


def test_a_message_that_was_committed_late_is_found(told: tuple[Desk, Deliveries, str]) -> None:
    here, deliveries, run = told
    deliveries.enlist("team", here.clock.now(), at_once)
    late = {
        "id": f"{run}:late", "job_id": run, "at": here.clock.now() - timedelta(minutes=5), "kind": "report",
        "stage": "routine", "text": "late", "must_not_miss": False,
    }  # fmt: skip
    assert here.store.deliver(late)
    assert deliveries.enlist("team", here.clock.now(), at_once) == 1


def test_what_one_holds_another_does_not_get_until_the_hold_ends(told: tuple[Desk, Deliveries, str]) -> None:
    here, deliveries, _ = told
    deliveries.enlist("team", here.clock.now(), at_once)
    first = deliveries.claim("team", here.clock.now())
    assert first
    assert deliveries.claim("team", here.clock.now()) == []
    assert [one.id for one in deliveries.claim("team", here.clock.now() + HELD)] == [one.id for one in first]


def test_what_was_begun_together_stays_together(told: tuple[Desk, Deliveries, str]) -> None:
    here, deliveries, _ = told
    now = here.clock.now()
    deliveries.enlist("team", now, at_once)
    ids = [one.id for one in deliveries.claim("team", now)]
    deliveries.begin(ids, "parcel-1", now)
    deliveries.failed("team", ids, now + timedelta(seconds=5), "no answer", now, unsure=True)
    again = deliveries.claim("team", now + timedelta(seconds=5))
    assert {one.parcel for one in again} == {"parcel-1"}
    assert {one.begun_at for one in again} == {now}
    assert {one.tries for one in again} == {1}
    assert deliveries.standing("team", now).fails == 1


def test_a_streak_of_failures_has_one_beginning(told: tuple[Desk, Deliveries, str]) -> None:
    here, deliveries, _ = told
    now = here.clock.now()
    deliveries.enlist("team", now, at_once)
    ids = [one.id for one in deliveries.claim("team", now)]
    for later in (0, 10, 20):
        moment = now + timedelta(seconds=later)
        deliveries.failed("team", ids, moment, "no", moment, unsure=False)
    standing = deliveries.standing("team", now + timedelta(seconds=20))
    assert (standing.failing_since, standing.fails, standing.said) == (now, 3, "no")
    deliveries.sent("team", ids, "", now + timedelta(seconds=30))
    healed = deliveries.standing("team", now + timedelta(seconds=30))
    assert (healed.failing_since, healed.fails, healed.waiting) == (None, 0, 0)


def test_a_thread_begins_at_the_first_place(told: tuple[Desk, Deliveries, str]) -> None:
    here, deliveries, run = told
    now = here.clock.now()
    deliveries.enlist("team", now, at_once)
    first, second, *_ = [one.id for one in deliveries.claim("team", now)]
    deliveries.sent("team", [first], "10.1", now)
    deliveries.sent("team", [second], "10.2", now + timedelta(seconds=1))
    assert deliveries.place_of("team", run) == "10.1"
    assert deliveries.run_at("team", "10.2") == run
    assert deliveries.run_at("mail", "10.2") == ""


def test_a_notice_is_said_once_per_key(told: tuple[Desk, Deliveries, str]) -> None:
    here, deliveries, _ = told
    now = here.clock.now()
    for _ in range(3):
        deliveries.notice("mail", "dead:team:1", "The channel team fails.", now)
    assert [one.text for one in deliveries.claim("mail", now)] == ["The channel team fails."]


def test_only_what_is_worth_waiting_for_is_counted(told: tuple[Desk, Deliveries, str]) -> None:
    here, deliveries, _ = told
    now = here.clock.now()
    deliveries.enlist("team", now, at_once)
    ids = [one.id for one in deliveries.claim("team", now)]
    assert deliveries.open_count(["team"], tries_max=1) == len(ids)
    deliveries.failed("team", ids, now, "no", now, unsure=False)
    assert deliveries.open_count(["team"], tries_max=1) == 0
    assert deliveries.open_count([], tries_max=9) == 0
