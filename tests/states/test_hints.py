"""What the library gave is a hint: when it turns out wrong it is said, marked, and not vouched for (F5, H3)."""

from __future__ import annotations

from typing import Any

import pytest

from states.actions.hints import remembered, turned_out_wrong
from states.job import Job
from states.observation import Phase
from tests.states import builders as b

HINTS = {"image": "reg/a:1", "environment": "envs/x", "proxy": "http://proxy.lab:3128"}


def ended(cause: str, phase: Phase = Phase.failed, **handed: str) -> Job:
    """A run whose hints came from the library, except what was handed; at its end with this cause."""
    found = {field: value for field, value in HINTS.items() if field not in handed}
    job = b.new_job(request={"image": None, **handed})
    job = b.led(job, b.delegated("image"), b.check_is("image", **found), b.submitted(), b.seen(Phase.running))
    return b.led(job, b.seen(phase, cause=cause, reason="as told"), start_s=60)


@pytest.mark.parametrize(
    ("cause", "field"),
    [
        ("image.not_found", "image"),
        ("image.incompatible", "image"),
        ("env.missing_module", "environment"),
        ("network.proxy", "proxy"),
        ("image.unreachable", ""),
        ("network.timeout", ""),
        ("code.exception", ""),
    ],
)
def test_only_a_cause_that_names_the_value_calls_it_wrong(cause: str, field: str) -> None:
    assert turned_out_wrong(ended(cause)) == ({field: HINTS[field]} if field else {})


def test_what_was_handed_over_is_no_hint() -> None:
    job = ended("image.not_found", image="reg/a:1")
    assert "image" not in remembered(job)
    assert turned_out_wrong(job) == {}


def told_at_the_end(job: Job) -> tuple[str, list[dict[str, Any]]]:
    step = b.take(job, b.collected()(job, b.after(90)))
    report = next(effect.text for effect in step.effects if effect.kind == "report")
    marks = [effect for effect in step.effects if effect.kind == "remember" and effect.what == "stale"]
    return report, [mark.model_dump(include={"values", "note"}) for mark in marks]


def test_the_last_report_admits_it_and_the_library_is_told_with_the_evidence() -> None:
    report, marks = told_at_the_end(ended("image.not_found"))
    assert "the remembered image reg/a:1 turned out wrong (image.not_found: as told)" in " ".join(
        report.split()
    )
    assert marks == [{"values": {"image": "reg/a:1"}, "note": "image.not_found: as told"}]


def test_a_success_admits_nothing() -> None:
    report, marks = told_at_the_end(ended("", Phase.succeeded))
    assert "turned out wrong" not in report
    assert marks == []
