"""Quiet looks: told from three columns, and only where nothing a decision rests on has changed."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from states.observation import Observation, Phase, Waiting
from states.quiet import is_quiet, story, story_of
from tests.states import builders as b

SEEN = Observation(phase=Phase.running, taken_at=b.T0, native="R", node="n1")


@pytest.mark.parametrize(
    "change",
    [
        {"phase": Phase.pending},
        {"reason": "priority"},
        {"waiting": Waiting.held},
        {"held": True},
        {"finishing": True},
        {"suspended": True},
        {"attempt": 1},
        {"exit_code": 1},
        {"confirmed": True},
        {"replicas_ready": 2},
        {"twins": (b.match("42"),)},
    ],
    ids=lambda change: next(iter(change)),
)
def test_what_a_decision_may_rest_on_is_news(change: dict[str, Any]) -> None:
    assert story(SEEN.model_copy(update=change)) != story(SEEN)


def test_another_moment_is_no_news() -> None:
    later = SEEN.model_copy(update={"taken_at": b.after(600)})
    assert story(later) == story(SEEN)
    assert is_quiet(story(SEEN), b.after(900), later, b.after(600))


def test_a_deadline_that_has_come_is_not_quiet() -> None:
    assert not is_quiet(story(SEEN), b.after(600), SEEN, b.after(600))
    assert is_quiet(story(SEEN), None, SEEN, b.after(600))


def test_a_job_whose_next_look_matters_has_no_story() -> None:
    job = b.in_running()
    assert story_of(job) == story(job.attempt.seen or SEEN)
    assert story_of(b.in_submitting()) == ""
    assert story_of(b.led(job, b.away(), start_s=60)) == ""
    assert story_of(b.led(job, b.seen(Phase.lost), start_s=60)) == ""
    assert not is_quiet("", None, SEEN, b.T0 + timedelta(days=1))


def test_a_waiting_double_keeps_its_job_from_resting_until_it_was_told_often_enough() -> None:
    job, stories = b.in_running(), []
    for turn in range(4):
        job = b.led(job, b.seen(Phase.running, twins=(b.match("42"),)), start_s=60.0 + turn)
        stories.append(story_of(job) != "")
    assert stories == [False, False, True, True]
