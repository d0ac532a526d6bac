"""Effects as data: each says how it may be redone, and which lane it stands in."""

from __future__ import annotations

import json

import pytest
from pydantic import ValidationError

from states.effects import EFFECTS, Effect, Redo, parse_effect
from states.machine import step
from tests.states import builders as b
from tests.states.sequences import EVERYTHING, starts


def test_a_class_without_a_way_to_be_redone_does_not_exist() -> None:
    with pytest.raises(TypeError, match="how it may be redone"):

        class Sneeze(Effect):
            kind: str = "sneeze"


def test_only_the_submit_is_never_repeated_blindly() -> None:
    assert [kind.__name__ for kind in EFFECTS if kind.redo is Redo.adopt] == ["Submit"]
    assert [kind.__name__ for kind in EFFECTS if kind.redo is Redo.paid] == ["Interpret"]
    assert {kind.tries_max for kind in EFFECTS if kind.redo is Redo.adopt} == {1}


def test_what_acts_on_the_cluster_does_not_wait_behind_what_looks_or_tells() -> None:
    lanes = {kind.__name__: kind.lane for kind in EFFECTS}
    assert {name for name, lane in lanes.items() if lane == "act"} == {"Submit", "StopJob", "DeleteJob"}


def test_every_message_is_dropped_by_its_receiver_the_second_time() -> None:
    assert {kind.redo for kind in EFFECTS if kind.lane == "tell"} == {Redo.keyed}


def test_what_the_machine_asks_for_comes_back_from_its_stored_form() -> None:
    seen: set[str] = set()
    for job in starts().values():
        for teller, _ in EVERYTHING.values():
            for effect in step(job, teller(job, b.at_of(job))).effects:
                stored = effect.model_dump(mode="json", exclude_defaults=True) | {"kind": effect.kind}
                assert parse_effect(json.loads(json.dumps(stored))) == effect
                seen.add(effect.kind)
    assert len(seen) > 10


def test_what_is_no_effect_is_refused() -> None:
    with pytest.raises(ValidationError):
        parse_effect({"kind": "format_disk"})
