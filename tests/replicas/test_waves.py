"""What falls due together is one replica's: one status call per cluster and wave, however many replicas look."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy import insert, text

from agent.database import JOBS
from agent.ports import Ports
from agent.service import Refusal
from agent.store import Store, new_row
from agent.turn import turn
from agent.wave import wave
from states.events import StopRequested
from states.job import Check, Job
from tests.agent.fakes import ENDLESS, START, Desk, at
from tests.agent.test_store import put_running
from tests.states import builders as b

RUNS = 16
MANY = 5000


@pytest.fixture
def stores(postgres_url: str, shared: Store) -> Iterator[list[Store]]:
    """Three replicas' ways to one database."""
    made = [Store(postgres_url, grid_s=1.0) for _ in range(3)]
    yield made
    for store in made:
        store.close()


def at_once(*works: Callable[[], object]) -> None:
    """Everything at the same moment, to its end."""
    gate = threading.Barrier(len(works))
    troubles: list[BaseException] = []

    def run(work: Callable[[], object]) -> None:
        gate.wait()
        try:
            work()
        except BaseException as error:
            troubles.append(error)

    threads = [threading.Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert troubles == []


def test_three_replicas_make_one_status_call_a_wave(
    shared: Store, stores: list[Store], tmp_path: Path
) -> None:
    desk = Desk(shared, tmp_path, ENDLESS)
    for number in range(RUNS):
        desk.delegate(f"request-{number}")
    desk.run(lambda: desk.clock.now() >= at(90))
    assert {desk.job(run).state for run in shared.live_ids()} == {"running"}
    replicas = [replace(desk.ports, store=store) for store in stores]
    waves = calls = 0
    while waves < 5:
        due_at = shared.next_wake()
        assert due_at is not None
        desk.clock.jump_to(due_at)
        before = desk.cluster.count("observe")
        at_once(*(partial(wave, ports) for ports in replicas))
        made = desk.cluster.count("observe") - before
        assert made <= 1, f"{made} status calls in one wave"
        waves, calls = waves + 1, calls + made
        desk.settle()
    assert calls > 0


def test_what_falls_due_together_is_claimed_by_one(shared: Store, stores: list[Store]) -> None:
    """Without a lock each of three would get a part: they overtake each other within one reading of the index."""
    first = new_row(b.new_job(created_at=START)) | {"wake_at": START}
    rows = [first | {"id": f"digits-{number:05}"} for number in range(MANY)]
    with shared.write() as connection:
        connection.execute(insert(JOBS), rows)
    for round_s in range(0, 600, 200):
        got: list[int] = []
        at_once(*(partial(claim_into, got, store, at(round_s)) for store in stores))
        assert sorted(got) == [0, 0, MANY]


def claim_into(got: list[int], store: Store, now: datetime) -> None:
    got.append(len(store.claim_due(now, claim_s=120)))


def test_three_replicas_submit_each_run_once(shared: Store, stores: list[Store], tmp_path: Path) -> None:
    desk = Desk(shared, tmp_path, ENDLESS)
    runs = [desk.delegate(f"request-{number}") for number in range(10)]
    replicas = [replace(desk.ports, store=store) for store in stores]

    def carry(ports: Ports) -> None:
        for run in runs:
            turn(run, ports)

    at_once(*(partial(carry, ports) for ports in replicas))
    desk.settle()
    desk.look()
    at_once(*(partial(carry, ports) for ports in replicas))
    desk.settle()
    names = [submission.name for submission in desk.cluster.submissions]
    assert sorted(names) == sorted({desk.job(run).attempt.name for run in runs})


def no_image(job: Job, ports: Ports) -> Check:
    return Check(name="image", level="ask", evidence="there is no image lab:1", question="image")


def test_a_question_that_falls_due_at_three_replicas_is_decided_once(
    shared: Store, stores: list[Store], tmp_path: Path
) -> None:
    """The deadline comes for all of them in the same moment, and somebody answers in it too."""
    desk = Desk(shared, tmp_path, ENDLESS, checks={"image": no_image})
    runs = [desk.delegate(f"request-{number}") for number in range(6)]
    desk.settle()
    asked = [question for run in runs for question in desk.job(run).open_questions]
    assert len(asked) >= len(runs)
    desk.clock.jump_to(max(question.answer_by for question in asked))
    replicas = [replace(desk.ports, store=store) for store in stores]

    def answer() -> None:
        for run in runs:
            with suppress(Refusal):
                desk.service.answer(f"{run}/1", "dont-submit")

    at_once(*(partial(wave, ports) for ports in replicas), answer)
    desk.settle()
    for run in runs:
        decided = [row for row in shared.journal(run) if row["source"] == "blocked" != row["to"]]
        assert len(decided) == 1
        assert desk.job(run).state == "not_submitted"
        assert [message["kind"] for message in shared.messages(run)].count("question") == 1


def test_a_replica_that_stops_within_a_transaction_holds_nobody_up_for_long(
    shared: Store, stores: list[Store]
) -> None:
    """The server ends its session; what it held is free, and nothing of it was written."""
    run = put_running(shared)
    connection = stores[0].engine.connect()
    connection.execute(text("SET idle_in_transaction_session_timeout = '500ms'"))
    connection.commit()
    connection.execute(text("SELECT snapshot FROM job FOR UPDATE"))
    try:
        due = START + timedelta(days=1)
        assert stores[1].claim_due(due, claim_s=60) == [], "a row in use is left to the next look"
        stores[1].apply(
            run, StopRequested(at=at(90), by="kim")
        )  # waits for the row, and gets it when the server gave up on the other
        assert shared.load(run).state == "stopping"
    finally:
        connection.invalidate()
        connection.close()
