"""The job as data: small, frozen, and the same after its snapshot."""

from __future__ import annotations

import json
import math

import pytest
from pydantic import ValidationError

from states.job import LIVE, MOMENTS_MAX, NOTES_MAX, TERMINAL, Job, State, restored, snapshot
from states.reading import Point, Track
from tests.states import builders as b
from tests.states.sequences import starts


@pytest.mark.parametrize("job", starts().values(), ids=starts().keys())
def test_a_snapshot_gives_the_same_job_back(job: Job) -> None:
    text = json.dumps(snapshot(job), sort_keys=True)
    assert restored(json.loads(text), seq=job.seq, seen_at=job.seen_at, wake_at=job.wake_at) == job


def test_a_loss_that_is_no_number_survives() -> None:
    job = b.in_running().but(
        track=Track(losses=(Point(step=1, value=math.nan), Point(step=2, value=math.inf)))
    )
    again = restored(json.loads(json.dumps(snapshot(job))), seq=job.seq, wake_at=job.wake_at)
    assert [str(point.value) for point in again.track.losses] == ["nan", "inf"]


def test_a_snapshot_leaves_out_what_is_as_it_begins() -> None:
    data = snapshot(b.new_job())
    assert "attempts" not in data
    assert "wake_at" not in data
    assert len(json.dumps(data)) < 1000


def test_an_unknown_field_is_refused() -> None:
    with pytest.raises(ValidationError):
        restored({**snapshot(b.new_job()), "mood": "good"})


def test_a_job_cannot_be_changed_in_place() -> None:
    with pytest.raises(ValidationError):
        b.new_job().state = State.running  # type: ignore[misc]


def test_blocked_looks_through_to_what_it_was_doing() -> None:
    assert starts()["blocked while it runs"].doing is State.running
    assert starts()["blocked before the submit"].doing is State.preflight
    assert b.in_running().doing is State.running


def test_states_are_live_or_ended() -> None:
    assert frozenset(State) == LIVE | TERMINAL
    assert not LIVE & TERMINAL
    assert all(state.name == state.value for state in State)


def test_lists_are_bounded() -> None:
    job = b.new_job()
    for number in range(200):
        job = job.with_moment(b.after(number), State.running, f"moment {number}").with_note(f"note {number}")
    assert len(job.moments) == MOMENTS_MAX
    assert len(job.notes) == NOTES_MAX
    assert (job.moments[0].text, job.moments[-1].text) == ("moment 0", "moment 199")
    assert job.with_note("note 199") is job


def test_whose_job_it_is_decides_what_may_be_stopped_alone() -> None:
    """A10."""
    assert b.new_job().may_stop_alone
    assert not b.taken_over().may_stop_alone
    assert b.taken_over(may_stop=True).may_stop_alone
    assert b.taken_over().is_takeover
