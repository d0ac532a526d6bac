"""Lifts: what an older machine wrote is read as this one would have written it."""

from __future__ import annotations

import pytest

from states import versions
from states.events import parse_event
from states.job import MACHINE_VERSION, Job, State, restored, snapshot
from states.versions import TooNew, lift_event, lift_snapshot, may_be_lifted
from tests.states import builders as b
from tests.states.sequences import starts


@pytest.mark.parametrize("job", starts().values(), ids=starts().keys())
def test_the_present_form_is_left_as_it_is(job: Job) -> None:
    data = snapshot(job)
    assert lift_snapshot(data) == data
    assert restored(lift_snapshot(data), seq=job.seq, wake_at=job.wake_at) == job
    assert may_be_lifted(data)


def test_an_event_of_now_is_left_as_it_is() -> None:
    event = b.stop_asked_for()(b.in_running(), b.after(9))
    data = event.model_dump(mode="json")
    assert parse_event(lift_event(data)) == event


@pytest.fixture
def three_versions_later(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine of version 4; the second changed the events, the third both."""
    monkeypatch.setattr(versions, "MACHINE_VERSION", 4)
    monkeypatch.setattr(versions, "LIFTS_OF_EVENTS", {1: _told_by, 2: _why})
    monkeypatch.setattr(versions, "LIFTS_OF_SNAPSHOTS", {2: _why})


def _told_by(data: versions.Data) -> versions.Data:
    return {**data, "by": data.get("by") or "owner"}


def _why(data: versions.Data) -> versions.Data:
    renamed = {("why" if key == "reason" else key): value for key, value in data.items()}
    return renamed


@pytest.mark.usefixtures("three_versions_later")
class TestLifts:
    def test_each_version_adds_its_own(self) -> None:
        assert lift_event({"kind": "x", "reason": "r"}) == {"kind": "x", "why": "r", "by": "owner", "v": 4}
        assert lift_event({"kind": "x", "reason": "r", "v": 2}) == {"kind": "x", "why": "r", "v": 4}
        assert lift_event({"kind": "x", "why": "r", "v": 4}) == {"kind": "x", "why": "r", "v": 4}
        assert lift_snapshot({"reason": "r", "version": 1}) == {"why": "r", "version": 4}

    def test_the_stored_data_is_not_touched(self) -> None:
        data = {"kind": "x", "reason": "r"}
        lift_event(data)
        assert data == {"kind": "x", "reason": "r"}

    @pytest.mark.parametrize(
        ("state", "resume_to", "may"),
        [
            (State.running, None, True),
            (State.succeeded, None, True),
            (State.submitting, None, False),
            (State.stopping, None, False),
            (State.blocked, State.running, True),
            (State.blocked, State.submitting, False),
        ],
    )
    def test_only_what_rests_is_lifted(self, state: State, resume_to: State | None, may: bool) -> None:
        assert may_be_lifted({"state": state, "resume_to": resume_to}) is may


def test_what_a_newer_machine_wrote_is_refused_with_what_to_do() -> None:
    with pytest.raises(TooNew, match="upgrade this one"):
        lift_snapshot({"version": MACHINE_VERSION + 1})
