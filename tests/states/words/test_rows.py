"""What a person meets one look or one question at a time: the message of a question, the status of a job.

Never: a question without the way to answer it.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Literal

import pytest

from states import reports
from states.job import (
    State,
)
from states.questions import QUESTIONS, Status
from tests.states.jobs_to_report import (
    AT,
    NAME,
    bare,
    blocked,
    ended,
    full,
    question,
)

Language = Literal["en", "zh"]


# --- questions ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", QUESTIONS)
@pytest.mark.parametrize("language", ["en", "zh"])
def test_asked_shows_options_default_deadline_and_how_to_answer(kind: str, language: Language) -> None:
    asked = question(kind)
    text = reports.asked(full(language=language), [asked])
    assert "log" in text or "日志" in text
    assert "812" in text
    assert "still fetching part 3" in text
    for number, option in enumerate(QUESTIONS[kind].options, 1):
        assert f"  {number} {option.key}" in text
        assert (option.zh if language == "zh" else option.en) in text
    marked = [line for line in text.split("\n") if line.endswith(("(default)", "(默认)"))]
    assert len(marked) == 1
    assert asked.default.key in marked[0]
    assert "2026-03-01T14:00:00+08:00" in text
    assert "4 h 00 min" in text or "4 小时 00 分钟" in text
    assert "wk answer digits-k3f9/1 <" in text


def test_several_questions_come_in_one_message() -> None:
    text = reports.asked(full(), [question("image"), question("capacity", 2)])
    assert text.startswith("Decision needed: digits-k3f9 asks 2 questions.")
    assert "digits-k3f9/1: Which" in text
    assert "digits-k3f9/2: " in text
    assert "image=<image>" in text


def test_a_question_without_the_jobs_name_still_has_it() -> None:
    assert "digits-k3f9 may be going wrong" in reports.asked(
        bare(), [question("looks-off", facts={"why": "it waits"})]
    )


def test_answered_says_what_and_by_whom() -> None:
    text = reports.answered(full(), question("image", chosen="image", value="registry.example/a:1", by="mei"))
    assert "use this image: registry.example/a:1 (by mei)" in text


def test_defaulted_is_said_as_such() -> None:
    text = reports.defaulted(full(), question("image", status=Status.defaulted, chosen="dont-submit"))
    assert "no answer to question digits-k3f9/1 by 2026-03-01T14:00:00+08:00" in text
    flat = re.sub(r"\n +", " ", text)
    assert "The default was carried out: don't submit" in flat


def test_withdrawn_says_why() -> None:
    text = reports.withdrawn(full(), question("looks-off"), "it moved on by itself")
    assert "withdrawn and needs no answer" in text
    assert "why: it moved on by itself" in text


# --- one look ----------------------------------------------------------------------------------------------


def test_a_status_line_is_one_line_with_what_needs_attention() -> None:
    line = reports.status_line(blocked(State.running), AT)
    assert "\n" not in line.strip()
    assert line.startswith("digits-k3f9: waiting for an answer (running) for 1 h 50 min on node-17")
    assert "step 300/1000 (30 %)" in line
    assert "questions open: 2" in line
    assert len(line) < 200


def test_a_status_of_a_live_job_says_where_it_stands_and_the_next_look() -> None:
    text = reports.status(full(unreachable_since=AT - timedelta(minutes=10)), AT)
    facts = [
        NAME,
        "48151",
        "RUNNING",
        "step 300/1000",
        "cluster not reachable for 10 min",
        "next look: 2026-",
    ]
    assert [fact for fact in facts if fact not in text] == []


def test_a_status_of_a_job_that_is_over_says_the_outcome_and_what_next() -> None:
    text = reports.status(ended(State.failed), AT)
    assert "digits-k3f9 failed: memory.gpu" in text
    assert "next: " in text
    assert "next look" not in text
    assert "left (" not in text


def test_a_status_in_another_zone_keeps_its_zone() -> None:
    text = reports.status(
        full(logs_at=datetime(2026, 3, 1, 9, 0, tzinfo=UTC)), datetime(2026, 3, 1, 8, 59, tzinfo=UTC)
    )
    assert "2026-03-01T09:00:00+00:00 (in 1 min)" in text
