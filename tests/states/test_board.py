"""The few values that lists show: JSON-able, small, and nothing empty."""

from __future__ import annotations

import json
import math

from states.board import board
from states.reading import Point, Track
from tests.states import builders as b
from tests.states.sequences import starts


def test_every_job_has_one_that_can_be_stored() -> None:
    for job in starts().values():
        shown = board(job)
        assert json.loads(json.dumps(shown)) == shown
        assert not [key for key, value in shown.items() if value in (None, "", [])]
        assert len(json.dumps(shown)) < 600


def test_a_running_one_shows_how_far_it_is() -> None:
    shown = board(b.in_running())
    assert (shown["doing"], shown["phase"], shown["step"], shown["total"], shown["unit"]) == (
        "running", "running", 300.0, 1000.0, "step",
    )  # fmt: skip
    assert shown["attempt"] == 1


def test_a_blocked_one_shows_its_questions_and_what_it_was_doing() -> None:
    shown = board(starts()["blocked while it runs"])
    assert shown["questions"] == ["digits-k3f9/1"]
    assert shown["doing"] == "running"


def test_a_loss_that_is_no_number_is_left_out() -> None:
    job = b.in_running().but(track=Track(losses=(Point(step=1, value=math.nan),)))
    assert "loss" not in board(job)
