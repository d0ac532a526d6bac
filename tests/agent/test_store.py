"""The unit of work: one transaction a turn, nothing lost between writers, timers that rest in one statement."""

from __future__ import annotations

import multiprocessing
import threading
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import event as sql_event
from sqlalchemy import update
from sqlalchemy.exc import IntegrityError, StatementError

from agent.database import EVENTS, JOBS
from agent.redaction import Redactor
from agent.store import Store, Unknown
from states.effects import EFFECTS, Report
from states.events import Answered, ClusterUnreachable, Delegated, Observed, StopRequested, Submitted, WakeDue
from states.job import State
from states.observation import Observation, Phase
from states.quiet import story_of
from tests.agent.fakes import START, Desk, at
from tests.states import builders as b

EMPTY = Delegated(at=START, by="kim", checks=())


def put(store: Store, job_id: str = "digits-k3f9", *, request_id: str = "") -> str:
    """A new run, delegated with two checks."""
    job = b.new_job(id=job_id, created_at=START, request_id=request_id)
    store.create(job, Delegated(at=START, by="kim", checks=b.CHECKS))
    return job_id


def put_running(store: Store, job_id: str = "digits-k3f9") -> str:
    """A run that was submitted and seen to run at START + 60 s."""
    job = b.new_job(id=job_id, created_at=START)
    store.create(job, Delegated(at=START, checks=()))
    store.apply(job_id, WakeDue(at=at(1)))
    name = store.load(job_id).attempt.name
    store.apply(job_id, Submitted(at=at(2), name=name, cluster_job_id="41"))
    seen = Observation(phase=Phase.running, taken_at=at(60))
    store.apply(job_id, Observed(at=at(60), name=name, observation=seen))
    return job_id


def statements(store: Store) -> list[str]:
    """What is sent to the database from here on."""
    sent: list[str] = []
    sql_event.listen(store.engine, "before_cursor_execute", lambda *args: sent.append(args[2]))
    return sent


class TestApply:
    def test_an_event_its_snapshot_and_its_effects_come_together(self, store: Store) -> None:
        put(store)
        assert store.load("digits-k3f9").checks_open == b.CHECKS
        assert [row["kind"] for row in store.journal("digits-k3f9")] == ["delegated"]
        assert [row["kind"] for row in store.effects_of("digits-k3f9")] == ["run_check", "run_check"]

    def test_the_same_key_twice_changes_nothing_and_gives_the_first_result(self, store: Store) -> None:
        put(store)
        event = StopRequested(at=at(5), key="click-1", by="kim")
        first = store.apply("digits-k3f9", event)
        second = store.apply("digits-k3f9", event.model_copy(update={"at": at(9)}))
        assert (first.duplicate, second.duplicate) == (False, True)
        assert second.job == first.job
        assert len(store.journal("digits-k3f9")) == 2

    def test_keys_that_look_like_credentials_are_hidden_and_told_apart(self, store: Store) -> None:
        store._redact = Redactor(()).value
        put(store)
        keys = ["db_password=aB3xK9pQ", "db_password=zY8wL2mR"]
        for key in (*keys, keys[0]):
            store.apply("digits-k3f9", StopRequested(at=at(5), key=key, by="kim"))
        stored = [row["key"] for row in store.journal("digits-k3f9")][1:]
        assert len(set(stored)) == len(stored) == 2
        assert not any(
            "aB3xK9pQ" in str(row) or "zY8wL2mR" in str(row) for row in store.journal("digits-k3f9")
        )

    def test_the_result_of_an_effect_ends_it_in_the_same_transaction(self, store: Store) -> None:
        put(store)
        effect = store.effects_of("digits-k3f9")[0]["id"]
        store.apply("digits-k3f9", b.check_is("image")(b.new_job(), at(3)), done=effect)
        assert [row["done_at"] for row in store.effects_of("digits-k3f9")] == [at(3), None]

    def test_a_failing_step_leaves_neither_journal_nor_effects(
        self, store: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        put(store)

        def broken(*_: object) -> None:
            raise RuntimeError("in the middle")

        monkeypatch.setattr("agent.store.board", broken)
        with pytest.raises(RuntimeError, match="in the middle"):
            store.apply("digits-k3f9", StopRequested(at=at(5)))
        assert len(store.journal("digits-k3f9")) == 1
        assert store.load("digits-k3f9").state is State.preflight

    def test_a_naive_time_is_refused(self, store: Store) -> None:
        put(store)
        with pytest.raises((StatementError, TypeError, ValueError), match=r"naive|offset"):
            store.apply("digits-k3f9", StopRequested(at=datetime(2026, 3, 1, 8)))
        assert len(store.journal("digits-k3f9")) == 1

    def test_times_come_back_as_they_were_to_the_microsecond(self, store: Store) -> None:
        put(store)
        moment = at(5) + timedelta(microseconds=7)
        store.apply("digits-k3f9", StopRequested(at=moment))
        assert store.journal("digits-k3f9")[-1]["at"] == moment

    def test_what_is_ignored_is_journalled_with_its_reason(self, store: Store) -> None:
        put(store)
        applied = store.apply("digits-k3f9", Answered(at=at(5), number=1, reply="x"))
        assert applied.outcome == "ignored"
        assert store.journal("digits-k3f9")[-1]["said"] == applied.reason != ""

    def test_a_timer_that_finds_nothing_leaves_no_row(self, store: Store) -> None:
        put_running(store)
        before = len(store.journal("digits-k3f9"))
        store.apply("digits-k3f9", WakeDue(at=at(61)))
        assert len(store.journal("digits-k3f9")) == before

    def test_an_unknown_run_names_the_nearest(self, store: Store) -> None:
        put(store)
        with pytest.raises(Unknown, match="did you mean 'digits-k3f9'"):
            store.find("digits-k3f8")
        with pytest.raises(Unknown, match="wk jobs"):
            store.apply("nothing-like-it", WakeDue(at=at(1)))

    def test_a_beginning_that_fits_several_says_so(self, store: Store) -> None:
        put(store, "digits-aaaa")
        put(store, "digits-bbbb")
        assert store.find("digits-a") == "digits-aaaa"
        with pytest.raises(Unknown, match="several"):
            store.find("digits")

    def test_a_cursor_leads_on_to_what_is_older(self, store: Store) -> None:
        for name in ("digits-aaaa", "digits-bbbb", "digits-cccc"):
            put(store, name)
        newest = [row["id"] for row in store.boards()]
        assert [row["id"] for row in store.boards(before=newest[0], limit=1)] == newest[1:2]
        assert [row["id"] for row in store.boards(before=newest[1], live=True)] == newest[2:]
        assert store.boards(before=newest[2]) == []
        with pytest.raises(Unknown, match="nobody"):
            store.boards(before="nobody")

    def test_secrets_are_taken_out_before_anything_is_stored(self, tmp_path: Path) -> None:
        def redact(value: object) -> object:
            if isinstance(value, dict):
                return {key: redact(one) for key, one in value.items()}
            return value.replace("hunter2", "***") if isinstance(value, str) else value

        store = Store(f"sqlite:///{tmp_path / 'w.db'}", redact=redact)
        store.create_schema()
        put(store)
        store.apply("digits-k3f9", StopRequested(at=at(5), reason="the key is hunter2"))
        store.close()
        assert b"hunter2" not in b"".join(path.read_bytes() for path in tmp_path.iterdir())


class TestCreate:
    def test_a_request_id_is_delegated_once(self, store: Store) -> None:
        put(store, "digits-aaaa", request_id="r1")
        again = store.create(b.new_job(id="digits-bbbb", created_at=START, request_id="r1"), EMPTY)
        assert (again.job.id, again.duplicate) == ("digits-aaaa", True)
        assert store.live_ids() == ["digits-aaaa"]

    def test_runs_without_a_request_id_are_different_runs(self, store: Store) -> None:
        put(store, "digits-aaaa")
        put(store, "digits-bbbb")
        assert sorted(store.live_ids()) == ["digits-aaaa", "digits-bbbb"]

    def test_two_events_with_one_number_cannot_be_stored(self, store: Store) -> None:
        put(store)
        row = dict(store.journal("digits-k3f9")[0]) | {"key": "another"}
        row.pop("id")
        with pytest.raises(IntegrityError), store.write() as connection:
            connection.execute(EVENTS.insert().values(row))


class TestWriters:
    """Nothing is lost between threads and between processes: each event gets a number of its own."""

    def test_threads(self, shared_store: Store) -> None:
        put(shared_store)

        def write(writer: int) -> None:
            for number in range(10):
                shared_store.apply(
                    "digits-k3f9", Answered(at=at(5), key=f"{writer}-{number}", number=1, reply="x")
                )

        threads = [threading.Thread(target=write, args=(writer,)) for writer in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [row["seq"] for row in shared_store.journal("digits-k3f9")] == list(range(1, 42))

    def test_processes(self, shared_store: Store) -> None:
        put(shared_store)
        shared_store.engine.dispose()  # connections do not cross a fork
        context = multiprocessing.get_context("fork")
        processes = [context.Process(target=_write_ten, args=(shared_store.url, n)) for n in range(3)]
        for process in processes:
            process.start()
        for process in processes:
            process.join()
        assert [process.exitcode for process in processes] == [0, 0, 0]
        assert [row["seq"] for row in shared_store.journal("digits-k3f9")] == list(range(1, 32))

    def test_the_same_key_from_many_threads_is_one_event(self, shared_store: Store) -> None:
        put(shared_store)
        results: list[bool] = []

        def click() -> None:
            results.append(shared_store.apply("digits-k3f9", StopRequested(at=at(5), key="click")).duplicate)

        threads = [threading.Thread(target=click) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(results) == [False] + [True] * 5


def _write_ten(url: str, writer: int) -> None:
    store = Store(url)
    for number in range(10):
        store.apply("digits-k3f9", Answered(at=at(5), key=f"p{writer}-{number}", number=1, reply="x"))
    store.close()


class TestEffects:
    def test_each_lane_keeps_its_order_and_does_not_wait_for_the_others(self, store: Store) -> None:
        put_running(store)
        store.apply("digits-k3f9", StopRequested(at=at(70)))
        first = store.next_effect("digits-k3f9", at(70))
        assert first is not None
        lanes = {row["lane"] for row in store.effects_of("digits-k3f9") if row["done_at"] is None}
        assert lanes == {"act", "tell"}
        store.retry_effect(first.id, at(500), "not now")
        behind = store.next_effect("digits-k3f9", at(70))
        assert behind is not None
        assert behind.effect.lane != first.effect.lane

    def test_what_stands_behind_a_postponed_effect_wakes_nobody(self, store: Store) -> None:
        put(store)
        effects = [row["id"] for row in store.effects_of("digits-k3f9")]
        store.retry_effect(effects[0], at(500), "not now")
        assert store.next_effect("digits-k3f9", at(10)) is None
        assert store.jobs_with_effects(at(10)) == []
        assert store.next_effect_at() == at(500)

    def test_a_begun_effect_says_so_after_a_restart(self, store: Store) -> None:
        put(store)
        effect = store.next_effect("digits-k3f9", at(1))
        assert effect is not None
        assert not effect.begun
        store.begin_effect(effect.id, at(1))
        again = store.next_effect("digits-k3f9", at(1))
        assert again is not None
        assert again.begun

    def test_a_message_is_delivered_once(self, store: Store) -> None:
        put(store)
        message = {
            "id": "digits-k3f9:1:0", "job_id": "digits-k3f9", "at": at(1), "kind": "report", "stage": "started",
            "text": "it runs", "must_not_miss": False,
        }  # fmt: skip
        assert [store.deliver(message), store.deliver(message)] == [True, False]
        assert len(store.messages("digits-k3f9")) == 1

    def test_every_kind_of_effect_comes_back_from_its_row(self) -> None:
        from states.effects import parse_effect

        report = Report(stage="started", text="it runs")
        assert parse_effect(report.model_dump(mode="json")) == report
        assert len({kind.model_fields["kind"].default for kind in EFFECTS}) == len(EFFECTS)


class TestTimers:
    def test_a_claim_hides_the_job_from_a_second_wave_and_comes_back(self, store: Store) -> None:
        put(store)
        due = at(400)
        assert [job.id for job in store.claim_due(due, claim_s=120)] == ["digits-k3f9"]
        assert store.claim_due(due, claim_s=120) == []
        assert store.claim_due(due + timedelta(seconds=119), claim_s=120) == []
        assert [job.id for job in store.claim_due(due + timedelta(seconds=120), claim_s=120)] == [
            "digits-k3f9"
        ]

    def test_two_waves_at_once_share_the_jobs(self, shared_store: Store) -> None:
        for number in range(40):
            put(shared_store, f"digits-{number:04}")
        taken: list[list[str]] = []

        def claim() -> None:
            taken.append([job.id for job in shared_store.claim_due(at(400), claim_s=120, limit=100)])

        threads = [threading.Thread(target=claim) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        every = [job_id for ids in taken for job_id in ids]
        assert sorted(every) == sorted(set(every))
        assert len(every) == 40

    @pytest.mark.parametrize(
        ("wake", "deadline", "left_until"),
        [(100, None, 900), (100, 3600, 900), (100, 300, 300), (2000, None, 2000), (200, 100, 200)],
    )
    def test_who_is_to_be_left_alone_is_looked_at_no_sooner_and_served_at_its_deadline(
        self, store: Store, wake: int, deadline: int | None, left_until: int
    ) -> None:
        job_id = put_running(store)
        due = {"wake_at": at(wake), "deadline_at": None if deadline is None else at(deadline)}
        with store.write() as connection:
            connection.execute(update(JOBS).values(due))
        store.leave_alone([job_id], at(900))
        assert store.next_wake() == at(left_until)

    def test_quiet_jobs_rest_in_one_statement(self, store: Store) -> None:
        ids = [put_running(store, f"digits-{number:04}") for number in range(30)]
        sent = statements(store)
        store.rest(ids, at(100), seen=True)
        assert len([text for text in sent if text.startswith("UPDATE")]) == 1
        assert {store.load(job_id).seen_at for job_id in ids} == {at(100)}

    def test_a_rest_is_on_the_grid_and_never_beyond_a_deadline(self, store: Store) -> None:
        job_id = put_running(store)
        logs_at = store.load(job_id).logs_at
        assert logs_at == at(120)
        moment = at(30) + timedelta(milliseconds=300)
        store.rest([job_id], moment, seen=True)
        assert store.load(job_id).wake_at == at(91)
        store.rest([job_id], at(100), seen=True)
        assert store.load(job_id).wake_at == logs_at

    def test_a_resting_queued_job_is_looked_at_ever_more_rarely(self, store: Store) -> None:
        job = b.new_job(created_at=START)
        store.create(job, EMPTY)
        store.apply(job.id, WakeDue(at=at(1)))
        name = store.load(job.id).attempt.name
        store.apply(job.id, Submitted(at=at(2), name=name, cluster_job_id="41"))
        pending = Observation(phase=Phase.pending, taken_at=at(3))
        store.apply(job.id, Observed(at=at(3), name=name, observation=pending))
        pauses, now = [], at(3)
        for _ in range(20):
            store.rest([job.id], now, seen=True)
            wake_at = store.load(job.id).wake_at
            assert wake_at is not None
            pauses.append((wake_at - now).total_seconds())
            now = wake_at
        assert pauses == sorted(pauses)
        assert (pauses[0], pauses[-1]) == (15.0, 120.0)

    def test_the_columns_say_what_the_snapshot_says(self, store: Store) -> None:
        job_id = put_running(store)
        job = store.load(job_id)
        with store.read() as connection:
            row = connection.execute(JOBS.select()).mappings().one()
        assert row["story"] == story_of(job) != ""
        assert (row["watched"], row["away"]) == (True, False)
        assert row["deadline_at"] == job.logs_at
        store.apply(job_id, ClusterUnreachable(at=at(90), reason="no route"))
        with store.read() as connection:
            row = connection.execute(JOBS.select()).mappings().one()
        assert (row["story"], row["away"]) == ("", True)

    def test_an_ended_run_has_no_timer(self, desk: Callable[..., Desk]) -> None:
        here = desk()
        here.delegate()
        here.run()
        assert here.store.next_wake() is None
        assert here.store.next_effect_at() is None
