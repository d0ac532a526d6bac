"""The ledger and the budget: nothing is paid twice, no limit is passed, every call is on record."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from agent.clock import VirtualClock
from agent.reader import Notebook
from agent.reader.budget import Budget, Entry, Ledger, Limits, Spent, worst_case_usd
from agent.reader.prices import PRICES, Tokens, cost_usd, price_of
from agent.reader.reply import Answer, NoAnswer
from agent.readings import Readings, Usage
from agent.store import Store
from states.effects import Interpret
from states.text import lines
from tests.agent.fake_model import Asked, Turn, fails, says
from tests.agent.reading_parts import FACTS, LOG, PLENTY, T0, good, read, reading, void
from tests.states.jobs_to_report import full

COST: Any = pytest.approx(0.000275)
"""Of one good reading: 2,000 tokens in and 150 out."""


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = Store(f"sqlite:///{tmp_path / 'w.db'}")
    store.create_schema()
    yield store
    store.close()


@pytest.fixture(params=["memory", "database"])
def ledger(request: pytest.FixtureRequest, store: Store) -> Ledger:
    return Notebook() if request.param == "memory" else Readings(store)


def entry(**changes: object) -> Entry:
    made = Entry("k", "job-a", T0, "m", "read", Answer("{}", "end_turn", "m", Tokens(10, 5)), 0.25)
    return made._replace(**changes)  # type: ignore[arg-type]


# --- the ledger --------------------------------------------------------------------------------------------


def test_what_is_noted_is_summed_by_run_and_by_time(ledger: Ledger) -> None:
    ledger.note(entry())
    ledger.note(entry(job_id="job-b", at=T0 + timedelta(hours=1)))
    ledger.note(entry(kind="busy", answer=None, cost_usd=None))
    assert ledger.spent_by("job-a") == Spent(0.25, 2)
    assert ledger.spent_by("job-c") == Spent(0.0, 0)
    assert ledger.spent_since(T0) == Spent(0.5, 3)
    assert ledger.spent_since(T0 + timedelta(seconds=1)) == Spent(0.25, 1)


def test_the_newest_answer_that_gave_a_reading_is_remembered(ledger: Ledger) -> None:
    assert ledger.remembered("k") is None
    ledger.note(entry(answer=Answer("old", "end_turn", "m", Tokens(1, 1))))
    ledger.note(entry(answer=Answer("new", "end_turn", "m", Tokens(1, 2, 3, 4))))
    ledger.note(entry(kind="invalid", answer=Answer("bad", "end_turn", "m", Tokens())))
    ledger.note(entry(key="other", answer=Answer("of another", "end_turn", "m", Tokens())))
    assert ledger.remembered("k") == Answer("new", "end_turn", "m", Tokens(1, 2, 3, 4))


def test_the_rows_are_redacted_bounded_and_can_be_summed(store: Store) -> None:
    rows = Readings(store, redact=lambda text: text.replace("hunter2", "[redacted]"))
    rows.note(entry(answer=Answer("hunter2" + "x" * 90_000, "end_turn", "m", Tokens(10, 5))))
    rows.note(entry(kind="busy", answer=None, cost_usd=None, job_id="job-b"))
    rows.note(entry(model="n", cost_usd=None, at=T0 + timedelta(hours=1)))
    kept = rows.remembered("k")
    assert kept is not None
    assert "hunter2" not in kept.text
    assert len(Readings(store).remembered("k").text) <= 20_000  # type: ignore[union-attr]
    assert rows.usage() == [Usage("m", 2, 1, 10, 5, 0.25), Usage("n", 1, 1, 10, 5, None)]
    assert rows.usage(job_id="job-b") == [Usage("m", 1, 0, 0, 0, None)]
    assert rows.usage(since=T0 + timedelta(minutes=1)) == [Usage("n", 1, 1, 10, 5, None)]


# --- the cache ---------------------------------------------------------------------------------------------


def test_the_same_input_is_paid_once(ledger: Ledger) -> None:
    with reading([says()], ledger=ledger) as (reader, model):
        first = good(read(reader, job_id="job-a"))
        again = good(read(reader, job_id="job-b"))
        event = reader.interpret(full(id="job-a"), Interpret(name="a", lines=9), LOG)
        same = reader.interpret(full(id="job-b"), Interpret(name="b", lines=9), LOG)
    assert len(model.asked) == 2
    assert (first.cached, first.cost_usd, first.tokens) == (False, COST, 2150)
    assert (again.cached, again.cost_usd, again.tokens) == (True, 0.0, 0)
    assert again.quotes == first.quotes
    assert (event.cost_usd, same.cost_usd, same.verdict) == (COST, 0.0, "slow")
    spent = ledger.spent_since(T0)
    assert (spent.usd, spent.calls) == (2 * COST.expected, 2)


def test_readings_outlive_the_process(store: Store) -> None:
    with reading([says()], ledger=Readings(store)) as (reader, _):
        good(read(reader))
    with reading([fails(500, "api_error")], ledger=Readings(store)) as (reader, model):
        assert good(read(reader)).cached
    assert model.asked == []


def test_another_model_or_effort_is_another_question(ledger: Ledger) -> None:
    asked = 0
    variants: list[dict[str, Any]] = [{}, {"name": "claude-sonnet-5-5"}, {"effort": "high"}, {}]
    for changes in variants:
        with reading([says()], ledger=ledger, **changes) as (reader, model):
            good(read(reader))
        asked += len(model.asked)
    assert asked == 3


def test_a_void_reply_is_on_record_and_is_not_remembered(ledger: Ledger) -> None:
    with reading([says("nonsense"), says()], ledger=ledger) as (reader, _):
        first = void(read(reader, job_id="job-a"))
        assert (first.tokens, first.cost_usd) == (2150, COST)
        assert not good(read(reader, job_id="job-a")).cached
    assert ledger.spent_by("job-a").calls == 2


def test_what_the_cache_holds_is_checked_anew(ledger: Ledger) -> None:
    with reading([says()], ledger=ledger) as (reader, model):
        good(read(reader))
        key = reader.prompt(lines(LOG), FACTS).key(reader.caller.name, reader.caller.how)
        forged = Answer('{"verdict": "stop"}', "end_turn", "m", Tokens())
        ledger.note(entry(key=key, answer=forged))
        assert not good(read(reader)).cached
    assert len(model.asked) == 2


# --- the budget --------------------------------------------------------------------------------------------


def test_a_run_stops_asking_when_its_money_is_used_up(ledger: Ledger) -> None:
    dear = says(tokens=(500_000, 100_000))  # ten cents
    limits = Limits(job_usd=0.101, day_usd=10.0)
    with reading([dear], ledger=ledger, limits=limits) as (reader, model):
        good(read(reader, job_id="job-a"))
        got = void(read(reader, LOG + "more\n", job_id="job-a"))
        assert got.kind == "budget"
        assert "model.job_budget_usd" in got.reason
        assert got.model == ""
        good(read(reader, LOG + "more\n", job_id="job-b"))
        assert good(read(reader, LOG, job_id="job-a")).cached
    assert len(model.asked) == 2


def test_a_day_is_the_last_24_hours(ledger: Ledger) -> None:
    clock = VirtualClock(T0)
    limits = Limits(job_usd=10.0, day_usd=0.101)
    with reading([says(tokens=(500_000, 100_000))], ledger=ledger, limits=limits, clock=clock) as (reader, _):
        good(read(reader))
        clock.step(23.9 * 3600)
        assert "model.day_budget_usd" in void(read(reader, LOG + "a\n")).reason
        clock.step(0.2 * 3600)
        good(read(reader, LOG + "a\n"))


def test_calls_are_bounded_where_no_price_is_known(ledger: Ledger) -> None:
    limits = Limits(job_usd=0.0, day_usd=0.0, job_calls=2, day_calls=3)
    with reading([says()], ledger=ledger, limits=limits, name="my-own") as (reader, model):
        kinds = [
            getattr(read(reader, f"{LOG}{n}\n", job_id=job), "kind", "read")
            for n, job in enumerate(["a", "a", "a", "b", "b"])
        ]
    assert kinds == ["read", "read", "budget", "read", "budget"]
    assert len(model.asked) == 3


def test_without_money_nothing_is_asked(ledger: Ledger) -> None:
    with reading([says()], ledger=ledger, limits=Limits(0.0, 10.0)) as (reader, model):
        assert void(read(reader, job_id="job-a")).kind == "budget"
    with reading([says()], ledger=ledger, limits=Limits(10.0, 0.0)) as (reader, other):
        assert void(read(reader, job_id="job-a")).kind == "budget"
    assert model.asked == other.asked == []


def test_calls_that_fail_count_as_calls(ledger: Ledger) -> None:
    clock = VirtualClock(T0)
    with reading(
        [fails(500, "api_error")], ledger=ledger, limits=PLENTY._replace(job_calls=2), clock=clock
    ) as (
        reader,
        _,
    ):
        kinds = []
        for _ in range(3):
            kinds.append(void(read(reader, job_id="job-a")).kind)
            clock.step(60)
    assert kinds == ["busy", "busy", "budget"]


def test_calls_under_way_are_counted_in(ledger: Ledger) -> None:
    """Eight workers at once: the worst case of each is held until its real cost is known."""
    together = threading.Barrier(2, timeout=20)

    def slowly(asked: Asked) -> Turn:
        together.wait()
        return says()

    worst = worst_case_usd("claude-haiku-5-5", "x" * 8000, 4000)
    assert worst is not None
    limits = Limits(10.0, day_usd=2 * worst * 1.2)
    with reading(slowly, ledger=ledger, limits=limits) as (reader, model), ThreadPoolExecutor(8) as pool:
        got = list(pool.map(lambda n: read(reader, f"{LOG}{n}\n", job_id=f"job-{n}"), range(8)))
    kinds = sorted(getattr(one, "kind", "read") for one in got)
    assert kinds == ["budget"] * 6 + ["read"] * 2
    assert len(model.asked) == 2


def test_a_reservation_ends_with_its_call() -> None:
    budget = Budget(Notebook(), Limits(1.0, 1.0), VirtualClock(T0))
    over = pytest.raises(NoAnswer, match="budget of 24 hours")
    with budget.reserved("a", 0.9), over, budget.reserved("b", 0.2):
        pass
    with pytest.raises(RuntimeError), budget.reserved("a", 0.9):
        raise RuntimeError
    with budget.reserved("a", 0.9):
        pass


# --- prices ------------------------------------------------------------------------------------------------


def test_a_cost_is_the_list_price() -> None:
    tokens = Tokens(input=1_000_000, output=100_000, cache_read=2_000_000, cache_write=400_000)
    assert cost_usd("claude-haiku-5-5", tokens) == pytest.approx(0.10 + 0.05 + 0.02 + 0.05)
    assert cost_usd("claude-opus-5-5", Tokens(1000, 1000)) == pytest.approx(0.024)
    assert cost_usd("my-own", tokens) is None
    assert tokens.total == 3_500_000


def test_a_dated_name_has_the_price_of_its_model() -> None:
    assert price_of("claude-haiku-5-5-20261007") == PRICES["claude-haiku-5-5"]
    assert price_of("claude-haiku-5-5-turbo") is None
    assert price_of("") is None


def test_the_worst_case_is_above_the_real_cost() -> None:
    worst = worst_case_usd("claude-haiku-5-5", "x" * 20_000, 4000)
    assert worst is not None
    assert worst > (cost_usd("claude-haiku-5-5", Tokens(7000, 4000)) or 1.0)
