"""A figure that is no number is stored on both databases and comes back as what it was."""

from __future__ import annotations

import json
import math

import pytest

from agent.store import Store
from states.board import board
from states.events import Delegated
from states.job import Job, snapshot
from states.reading import Counter, Point, Track
from tests.agent.fakes import START
from tests.states import builders as b


def diverging(value: float) -> Job:
    counter = Counter(name="step", value=value, total=value)
    track = Track(
        main=counter, losses=(Point(step=1, value=2.0), Point(step=2, value=value)), highest={"x": value}
    )
    return b.new_job(id="digits-aaaa", created_at=START).but(track=track)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_loss_that_is_no_number_is_stored_and_comes_back(store: Store, value: float) -> None:
    store.create(diverging(value), Delegated(at=START, checks=()))
    loss = store.load("digits-aaaa").track.losses
    assert loss[0].value == 2.0
    assert repr(loss[1].value) == repr(value)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_stored_is_json(value: float) -> None:
    job = diverging(value)
    assert json.dumps(snapshot(job), allow_nan=False)
    assert json.dumps(board(job), allow_nan=False)
    assert "loss" not in board(job)
