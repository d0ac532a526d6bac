"""Waiting with a cursor: nothing is missed, nothing told twice, and every wait ends."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.store import Store, Unknown
from agent.waiting import Until, Waited, wait_for
from states.events import Answered, CheckFinished, Delegated, StopRequested
from states.job import Check
from tests.agent.fakes import START, Desk, at
from tests.states import builders as b

RUN = "digits-k3f9"


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    store = Store("sqlite://")
    store.create_schema()
    desk = Desk(store, tmp_path)
    store.create(
        b.new_job(id=RUN, created_at=START), Delegated(at=START, by="kim", checks=("image", "group"))
    )
    yield desk
    store.close()


def wait(desk: Desk, until: Until, *, after: int = -1, timeout_s: float = 60.0) -> Waited:
    return wait_for(desk.ports, RUN, after=after, until=until, timeout_s=timeout_s)


def ask(desk: Desk, seconds: float, name: str = "image") -> None:
    """A check that needs an answer, and the question that comes of it."""
    found = Check(name=name, level="ask", evidence="none is on record", question="image")
    desk.store.apply(RUN, CheckFinished(at=at(seconds), check=found))


def test_what_is_there_already_is_given_at_once(desk: Desk) -> None:
    found = wait(desk, "change")
    assert found.reached
    assert [row["kind"] for row in found.rows] == ["delegated"]
    assert found.seq == found.job.seq == found.rows[-1]["seq"]
    assert desk.clock.now() == START


def test_the_cursor_misses_nothing_and_tells_nothing_twice(desk: Desk) -> None:
    first = wait(desk, "change")
    ask(desk, 1)
    desk.store.apply(RUN, StopRequested(at=at(2), by="kim", reason=""))
    second = wait(desk, "change", after=first.seq)
    assert [row["kind"] for row in second.rows] == ["check_finished", "stop_requested"]
    assert not wait(desk, "change", after=second.seq, timeout_s=5).rows


def test_a_wait_ends_when_its_time_is_over(desk: Desk) -> None:
    found = wait(desk, "phase", timeout_s=7)
    assert not found.reached
    assert (desk.clock.now() - START).total_seconds() == pytest.approx(7, abs=0.01)
    assert not wait(desk, "change", after=found.seq, timeout_s=0).reached


def test_a_question_is_told_once_and_a_new_one_again(desk: Desk) -> None:
    assert not wait(desk, "question", timeout_s=1).reached
    desk.store.apply(RUN, CheckFinished(at=at(1), check=Check(name="group", level="fine")))
    ask(desk, 2)
    found = wait(desk, "question")
    assert found.reached
    assert [q.kind for q in found.job.open_questions] == ["image"]
    assert not wait(desk, "question", after=found.seq, timeout_s=1).reached
    desk.store.apply(RUN, Answered(at=at(9), number=1, reply="again", by="kim"))
    assert not wait(desk, "question", after=found.seq, timeout_s=1).reached


def test_somebody_who_wakes_it_is_heard_before_the_pause_is_over(desk: Desk) -> None:
    """The pause is the caller's: an event that `announce` sets ends it."""
    after = wait(desk, "change").seq
    pauses: list[float] = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        ask(desk, len(pauses), "image")

    found = wait_for(desk.ports, RUN, after=after, until="change", timeout_s=60, pause=pause)
    assert found.reached
    assert len(pauses) == 1
    assert desk.clock.now() == START


def test_the_end_waits_for_its_report_but_not_for_ever(desk: Desk) -> None:
    desk.store.apply(RUN, StopRequested(at=at(1), by="kim", reason=""))
    assert desk.store.load(RUN).is_terminal
    found = wait(desk, "end")
    assert found.reached, "nobody delivers the report here, and the end is told all the same"
    assert (desk.clock.now() - START).total_seconds() == pytest.approx(10, abs=0.6)


def test_what_can_no_longer_come_is_not_waited_for(desk: Desk) -> None:
    desk.store.apply(RUN, StopRequested(at=at(1), by="kim", reason=""))
    desk.run()
    began = desk.clock.now()
    seq = desk.store.load(RUN).seq
    assert not wait(desk, "change", after=seq).reached
    assert not wait(desk, "question", after=seq).reached
    assert wait(desk, "end", after=seq).reached
    assert desk.clock.now() == began


def test_an_unknown_run_is_said(desk: Desk) -> None:
    with pytest.raises(Unknown):
        wait_for(desk.ports, "nobody", after=-1, until="end", timeout_s=1)
