"""The kernel: one holder at a time, everything that is due, nothing twice."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from agent import leases
from agent.service import checks_for
from agent.turn import turn
from states.job import State
from states.preflight import LATER
from tests.agent.fakes import BROKEN, Desk, at

MakeDesk = Callable[..., Desk]


def test_a_turn_performs_what_is_due_and_what_follows_from_it(desk: MakeDesk) -> None:
    here = desk()
    job_id = here.delegate()
    checked = set(checks_for(here.request())) - LATER
    assert turn(job_id, here.ports) == len(checked) + 2  # the submit, its report
    assert here.job(job_id).state is State.queued


def test_a_run_that_somebody_else_carries_is_left_alone(desk: MakeDesk) -> None:
    here = desk()
    job_id = here.delegate()
    held = leases.claim(here.store, here.clock, job_id)
    assert held is not None
    assert turn(job_id, here.ports) == 0
    assert here.cluster.calls == []
    leases.release(here.store, held)
    assert turn(job_id, here.ports) > 0


def test_a_turn_ends_when_its_lease_is_lost(desk: MakeDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    here = desk()
    job_id = here.delegate()
    claim = leases.claim

    def stolen(*args: object, **kwargs: object) -> leases.Lease | None:
        lease = claim(*args, **kwargs)  # type: ignore[arg-type]
        here.clock.step(leases.LEASE_S + 1)
        claim(here.store, here.clock, job_id)
        return lease

    monkeypatch.setattr("agent.turn.leases.claim", stolen)
    assert turn(job_id, here.ports) == 0


def test_the_lease_is_free_after_a_turn_that_broke(desk: MakeDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    here = desk()
    job_id = here.delegate()

    def breaks(*_: object) -> None:
        raise RuntimeError("the database is away")

    monkeypatch.setattr("agent.turn.perform_next", breaks)
    with pytest.raises(RuntimeError, match="away"):
        turn(job_id, here.ports)
    assert leases.claim(here.store, here.clock, job_id) is not None


def test_a_run_goes_from_its_delegation_to_its_end_and_says_so(desk: MakeDesk) -> None:
    here = desk()
    job_id = here.delegate(outputs=("out/best.pt",))
    here.run()
    job = here.job(job_id)
    assert (job.state, job.outcome) == (State.succeeded, "exit code 0 and every declared output is there")
    assert [row["stage"] for row in here.store.messages(job_id)] == ["submitted", "started", "wrap-up"]
    assert [row["seq"] for row in here.store.journal(job_id)] == list(range(1, len(here.kinds(job_id)) + 1))
    assert here.told.count(job_id) > 3


def test_a_failed_run_is_not_called_finished(desk: MakeDesk) -> None:
    here = desk(BROKEN)
    job_id = here.delegate(outputs=("out/best.pt",))
    here.run()
    assert here.job(job_id).state is State.failed
    assert here.cluster.count("submit") == 1


def test_the_journal_alone_gives_the_same_run_again(desk: MakeDesk) -> None:
    """The snapshot is what the events make of a new job: a replay may trust it."""
    from states.machine import step

    here = desk()
    job_id = here.delegate(outputs=("out/best.pt",))
    first = here.job(job_id)
    here.run()
    again = first.but(state=State.preflight, seq=0, checks_open=(), checks_at=None)
    for event in here.store.history(job_id):
        again = step(again, event).job.but(seq=again.seq + 1)
    last = here.job(job_id)
    assert again.state is last.state
    assert again.attempts[0].cluster_job_id == last.attempts[0].cluster_job_id
    assert again.track.main == last.track.main


def test_a_smoke_run_is_carried_before_the_run_itself(desk: MakeDesk) -> None:
    here = desk()
    job_id = here.delegate(smoke="true")
    here.run()
    assert here.job(job_id).state is State.succeeded
    assert [job.name.split("-a1-")[0] for job in here.cluster.jobs] == [f"{job_id}-s1", job_id]
    assert here.job(job_id).children == {f"{job_id}-s1": "smoke:passed"}


def test_a_failed_smoke_run_costs_no_submit_and_is_asked_about(desk: MakeDesk) -> None:
    here = desk(BROKEN)
    job_id = here.delegate(smoke="true")
    job = here.run_to(job_id, State.blocked)
    assert [question.kind for question in job.open_questions] == ["smoke-failed"]
    assert here.cluster.count("submit") == 1
    here.run()
    assert here.job(job_id).state is State.not_submitted
    assert here.clock.now() >= at(24 * 3600)
