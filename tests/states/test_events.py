"""Events as data: a closed union of facts that come back from the journal as they went in."""

from __future__ import annotations

import json

import pytest
from pydantic import ValidationError

from states.events import EVENTS, KINDS, parse_event
from tests.states import builders as b
from tests.states.sequences import EVERYTHING, kinds_of


@pytest.mark.parametrize("name", EVERYTHING)
def test_an_event_comes_back_from_its_stored_form(name: str) -> None:
    event = EVERYTHING[name][0](b.in_running(), b.after(99))
    stored = event.model_dump(mode="json", exclude_defaults=True) | {"kind": event.kind}
    assert parse_event(json.loads(json.dumps(stored))) == event


def test_the_events_of_the_tests_are_of_every_kind() -> None:
    assert kinds_of(EVERYTHING) == set(KINDS)
    assert len(set(KINDS)) == len(EVENTS)


def test_every_event_says_what_it_is() -> None:
    assert all(event.__doc__ for event in EVENTS)


@pytest.mark.parametrize(
    "wrong",
    [
        {"kind": "sneezed", "at": "2026-03-01T08:00:00Z"},
        {"kind": "wake_due"},
        {"kind": "wake_due", "at": "2026-03-01T08:00:00Z", "mood": "good"},
        {"kind": "answered", "at": "2026-03-01T08:00:00Z", "number": "first", "reply": "x"},
    ],
)
def test_what_is_no_event_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        parse_event(wrong)
