"""What is let go of after its time: the bodies, never a decision; and nothing of a run that lives."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import func, select

from agent.database import EFFECTS, EVENTS, JOBS
from agent.deliveries import DELIVERIES, Deliveries
from agent.reader.budget import Entry
from agent.reader.prices import Tokens
from agent.reader.reply import Answer
from agent.readings import Readings
from agent.retention import Tidied, tidy
from agent.store import Compacted, Store
from states.routing import Plan
from tests.agent.fakes import ENDLESS, GOOD, Desk

DAY = timedelta(days=1)


@pytest.fixture
def here(store: Store, tmp_path: Any) -> Desk:
    return Desk(store, tmp_path, GOOD, ENDLESS)


def ended(here: Desk) -> str:
    run = here.delegate()
    here.run_to(run, "succeeded")
    here.settle()
    return run


def body_bytes(store: Store, run: str) -> int:
    return sum(len(repr(row["body"])) for row in (*store.journal(run), *store.effects_of(run)))


def test_why_tells_the_same_before_and_after(here: Desk) -> None:
    run = ended(here)
    before, size, told = here.service.why(run), body_bytes(here.store, run), here.store.messages(run)
    done = tidy(here.store, here.clock.now() + 91 * DAY, journal_days=90, delivery_days=0)
    assert done == Tidied(1, 0)
    assert here.service.why(run) == before
    assert here.store.messages(run) == told
    assert here.store.load(run).outcome
    assert body_bytes(here.store, run) < size / 3
    with pytest.raises(Compacted, match="wk why"):
        here.store.history(run)
    assert tidy(here.store, here.clock.now() + 200 * DAY, journal_days=90, delivery_days=0) == Tidied(0, 0)


def test_the_models_words_go_and_what_they_cost_stays(here: Desk) -> None:
    run, readings = ended(here), Readings(here.store)
    answer = Answer('{"verdict": "slow"}', "end_turn", "m", Tokens(input=900, output=40))
    for job_id, key in ((run, "old"), ("", "of no run")):
        readings.note(
            Entry(
                key=key,
                job_id=job_id,
                at=here.clock.now(),
                model="m",
                kind="read",
                answer=answer,
                cost_usd=0.5,
            )
        )
    spent = readings.spent_by(run)
    assert readings.remembered("old") == answer
    tidy(here.store, here.clock.now() + 91 * DAY, journal_days=90, delivery_days=0)
    assert readings.remembered("old") is None
    assert readings.remembered("of no run") == answer
    assert readings.spent_by(run) == spent


def test_who_ordered_what_stays_in_their_words(here: Desk) -> None:
    here.delegate()  # takes the script that ends
    run = here.delegate()
    here.run_to(run, "running")
    here.service.stop(run, by="lee", reason="the data was wrong")
    here.run_to(run, "stopped")
    here.run()
    tidy(here.store, here.clock.now() + 91 * DAY, journal_days=90, delivery_days=0)
    (order,) = (row for row in here.store.journal(run) if row["kind"] == "stop_requested")
    assert (order["body"]["by"], order["body"]["reason"]) == ("lee", "the data was wrong")


def test_what_lives_is_left_alone_however_old(here: Desk) -> None:
    ended(here)
    run = here.delegate()
    here.run_to(run, "running")
    size = body_bytes(here.store, run)
    assert tidy(here.store, here.clock.now() + 900 * DAY, journal_days=90, delivery_days=30).runs == 1
    assert body_bytes(here.store, run) == size
    assert here.store.history(run)


def test_one_that_still_has_something_to_say_is_left_alone(here: Desk) -> None:
    run = ended(here)
    with here.store.write() as connection:
        connection.execute(EFFECTS.update().where(EFFECTS.c.kind == "report").values(done_at=None))
    assert tidy(here.store, here.clock.now() + 91 * DAY, journal_days=90, delivery_days=0).runs == 0
    assert here.store.history(run)


def test_nothing_goes_before_its_time_or_when_it_is_to_stay(here: Desk) -> None:
    ended(here)
    assert tidy(here.store, here.clock.now() + 89 * DAY, journal_days=90, delivery_days=0).runs == 0
    assert tidy(here.store, here.clock.now() + 900 * DAY, journal_days=0, delivery_days=0) == Tidied(0, 0)


def test_many_runs_go_in_pieces(store: Store) -> None:
    from agent.store import new_row
    from tests.agent.fakes import START
    from tests.states import builders as b

    row = new_row(b.new_job(created_at=START)) | {"ended_at": START, "state": "succeeded"}
    with store.write() as connection:
        connection.execute(JOBS.insert(), [row | {"id": f"digits-{n}"} for n in range(450)])
    assert tidy(store, START + 91 * DAY, journal_days=90, delivery_days=0).runs == 450
    with store.read() as connection:
        assert connection.execute(select(func.count()).where(JOBS.c.compacted_at.is_(None))).scalar() == 0
        assert connection.execute(select(func.count(EVENTS.c.id))).scalar() == 0


class TestDeliveries:
    def sent(self, here: Desk) -> tuple[Deliveries, str]:
        """All messages of an ended run, sent to a channel."""
        deliveries = Deliveries(here.store)
        deliveries.enlist("chat", here.clock.now(), self.now)
        run = ended(here)
        self.send(deliveries, here)
        return deliveries, run

    def now(self, notice: Any) -> Plan:
        return Plan(send_at=notice.at, loud=True)

    def send(self, deliveries: Deliveries, here: Desk) -> int:
        new = deliveries.enlist("chat", here.clock.now(), self.now)
        ids = [waiting.id for waiting in deliveries.claim("chat", here.clock.now())]
        deliveries.sent("chat", ids, "place-1", here.clock.now())
        return new

    def count(self, here: Desk) -> int:
        with here.store.read() as connection:
            return int(connection.execute(select(func.count(DELIVERIES.c.id))).scalar() or 0)

    def test_they_are_forgotten_and_nothing_is_sent_again(self, here: Desk) -> None:
        """Also when nothing else was said since: the newest are what a channel still compares with."""
        deliveries, _ = self.sent(here)
        before = self.count(here)
        assert before > 2
        tidy(here.store, here.clock.now() + 31 * DAY, journal_days=0, delivery_days=30)
        assert deliveries.enlist("chat", here.clock.now() + 31 * DAY, self.now) == 0
        here.clock.step(7200)
        here.run_to(here.delegate(), "running")
        here.settle()
        self.send(deliveries, here)
        kept = self.count(here)
        dropped = tidy(here.store, here.clock.now() + 31 * DAY, journal_days=0, delivery_days=30).deliveries
        assert dropped >= before
        assert self.count(here) == kept - dropped
        assert deliveries.enlist("chat", here.clock.now() + 31 * DAY, self.now) == 0

    def test_the_thread_of_a_run_that_lives_is_kept(self, here: Desk) -> None:
        deliveries = Deliveries(here.store)
        deliveries.enlist("chat", here.clock.now(), self.now)
        ended(here)
        run = here.delegate()
        here.run_to(run, "running")
        here.settle()
        self.send(deliveries, here)
        here.clock.step(7200)
        here.look()
        tidy(here.store, here.clock.now() + 60 * DAY, journal_days=0, delivery_days=30)
        assert deliveries.run_at("chat", "place-1")
        assert deliveries.place_of("chat", run) == "place-1"
