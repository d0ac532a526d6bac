"""Performing what was asked: intent before call, redo by its class, limits, and no second submit."""

from __future__ import annotations

import logging
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from agent.clusters.scripted import SubmitFault
from agent.leases import LEASE_S
from agent.outbox import RETRY_S_MAX
from agent.turn import turn
from states.job import Check, State
from tests.agent.fakes import ENDLESS, Desk, at

MakeDesk = Callable[..., Desk]


def test_a_submit_is_marked_as_begun_before_the_call(desk: MakeDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    here = desk()
    marks: list[Any] = []
    call = here.cluster.submit

    def look(submission: Any) -> Any:
        marks.append([row["state"] for row in here.store.effects_of(job_id) if row["kind"] == "submit"])
        return call(submission)

    monkeypatch.setattr(here.cluster, "submit", look)
    job_id = here.delegate()
    here.run_to(job_id, State.queued)
    assert marks == [["begun"]]


def test_a_submit_that_was_begun_and_never_answered_is_looked_for_and_not_made_again(desk: MakeDesk) -> None:
    here = desk()
    job_id = here.delegate()
    asked = here.perform_up_to(job_id, "submit")
    here.store.begin_effect(asked.id, here.clock.now())  # and the process died
    here.run_to(job_id, State.succeeded)
    assert here.cluster.count("submit") == 1
    kinds = here.kinds(job_id)
    assert kinds.index("submit_unclear") < kinds.index("looked_up") < kinds.index("submitted")


def test_a_lost_answer_is_adopted_by_name(desk: MakeDesk) -> None:
    here = desk(faults={1: SubmitFault("lost", created=True)})
    job_id = here.delegate()
    job = here.run_to(job_id, State.succeeded)
    assert here.cluster.count("submit") == 1
    assert len(here.cluster.jobs) == 1
    assert job.attempt.cluster_job_id == here.cluster.jobs[0].id


def test_a_job_that_shows_late_is_adopted_and_not_doubled(desk: MakeDesk) -> None:
    here = desk(faults={1: SubmitFault("lost", created=True, visible_s=45)})
    here.run_to(here.delegate(), State.succeeded)
    assert len(here.cluster.jobs) == 1


def test_one_that_is_provably_not_there_is_sent_again_under_the_same_name(desk: MakeDesk) -> None:
    here = desk(faults={1: SubmitFault("lost", created=False)})
    job_id = here.delegate()
    job = here.run_to(job_id, State.succeeded)
    assert [sent.name for sent in here.cluster.submissions] == [job.attempt.name] * 2
    assert len(job.attempts) == 1


def test_a_submit_that_raises_is_an_unclear_answer(
    desk: MakeDesk, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    here = desk()
    call = here.cluster.submit

    def breaks(submission: Any) -> Any:
        call(submission)
        monkeypatch.undo()
        raise ValueError("the answer made no sense")

    monkeypatch.setattr(here.cluster, "submit", breaks)
    with caplog.at_level(logging.CRITICAL):
        here.run_to(here.delegate(), State.succeeded)
    assert len(here.cluster.jobs) == 1


class TestRetries:
    def test_a_failing_effect_is_tried_again_with_growing_pauses(
        self, desk: MakeDesk, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        here = desk()
        tried: list[float] = []

        def fails(*_: object) -> bool:
            tried.append((here.clock.now() - at(0)).total_seconds())
            if len(tried) < 5:
                raise OSError("the inbox is full")
            monkeypatch.undo()
            return True

        job_id = here.delegate()
        monkeypatch.setattr(here.store, "deliver", fails)
        with caplog.at_level(logging.CRITICAL):
            here.run_to(job_id, State.succeeded)
        pauses = [late - soon for soon, late in pairwise(tried)]
        assert pauses == [5.0, 10.0, 20.0, 40.0]
        assert max(pauses) <= RETRY_S_MAX

    def test_one_that_keeps_failing_is_given_up_aloud_and_the_rest_goes_on(
        self, desk: MakeDesk, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        here = desk()

        def fails(*told: Any) -> None:
            raise OSError("the library is broken")

        job_id = here.delegate()
        monkeypatch.setattr(here.ports.library, "remember", fails)
        with caplog.at_level(logging.CRITICAL):
            here.run_to(job_id, State.succeeded)
            here.run()
        lost = [row for row in here.store.journal(job_id) if row["kind"] == "effect_given_up"]
        assert {row["body"]["effect"] for row in lost} == {"remember"}
        assert "the library is broken" in lost[0]["body"]["reason"]

    def test_what_a_person_is_to_be_told_is_never_given_up(
        self, desk: MakeDesk, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        here = desk()
        deliver, failed = here.store.deliver, []

        def fails(*message: Any) -> bool:
            failed.append(message)
            if len(failed) <= 40:
                raise OSError("the inbox is broken")
            return deliver(*message)

        job_id = here.delegate()
        monkeypatch.setattr(here.store, "deliver", fails)
        with caplog.at_level(logging.CRITICAL):
            here.run()
        told = [row["stage"] for row in here.store.messages(job_id)]
        assert (told[0], told[-1]) == ("submitted", "wrap-up")
        assert not [row for row in here.store.journal(job_id) if row["kind"] == "effect_given_up"]

    def test_what_an_error_says_is_redacted(self, desk: MakeDesk, caplog: pytest.LogCaptureFixture) -> None:
        def broken(job: object, ports: object) -> Check:
            raise RuntimeError("the key is hunter2")

        here = desk(checks={"image": broken}, redact=lambda text: text.replace("hunter2", "***"))
        with caplog.at_level(logging.CRITICAL):
            here.run_to(job_id := here.delegate(), State.succeeded)
        assert here.job(job_id).checks["image"].level == "could_not"
        assert "hunter2" not in str([*here.store.journal(job_id), *here.store.effects_of(job_id)])
        assert "***" in here.job(job_id).checks["image"].evidence


def test_a_stop_passes_by_a_log_read_that_waits(desk: MakeDesk) -> None:
    """Lanes: acting does not stand behind looking."""
    here = desk(ENDLESS)
    job_id = here.delegate()
    here.run_to(job_id, State.running)
    here.clock.jump_to(here.job(job_id).logs_at or here.clock.now())
    here.cluster.catch_up()
    from agent.wave import wave

    wave(here.ports)
    waiting = here.store.next_effect(job_id, here.clock.now())
    assert waiting is not None
    assert waiting.effect.kind == "read_logs"
    here.store.retry_effect(waiting.id, at(90_000), "the log server is slow")
    here.service.stop(job_id)
    turn(job_id, here.ports)
    assert here.cluster.jobs[0].stops == 1


def test_a_submit_is_made_under_a_lease_that_outlives_it(desk: MakeDesk) -> None:
    """A slow check before it in the same turn has spent most of the lease."""

    def slow(job: object, ports: object) -> Check:
        here.clock.step(LEASE_S / 2 - 1)
        return Check(name="capacity", level="fine")

    here = desk(checks={"capacity": slow})
    here.cluster.capabilities = here.cluster.capabilities.model_copy(
        update={"submit_timeout_s": LEASE_S - 10}
    )
    job_id = here.delegate()
    here.run_to(job_id, State.queued)
    assert "submit_unclear" not in here.kinds(job_id)
