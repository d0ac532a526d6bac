"""The checked-in list of crash points by effect is what really happens, and it leaves no effect and no point out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent import crash, turn
from agent.store import Store
from states.effects import EFFECTS
from tests.crash.boundaries import OF_DELIVERY, OF_EFFECT, OUTSIDE
from tests.crash.test_kills import STORIES_OF_EFFECTS

KINDS = {effect.model_fields["kind"].default for effect in EFFECTS}


def test_no_effect_is_without_a_crash_point() -> None:
    assert set(OF_EFFECT) == KINDS
    assert [kind for kind, points in OF_EFFECT.items() if not points] == []


def test_no_crash_point_is_without_a_place() -> None:
    listed = {point for points in OF_EFFECT.values() for point in points}
    assert sorted([*listed, *OUTSIDE, *OF_DELIVERY]) == sorted(crash.POINTS)


def test_the_list_is_what_happens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    passed: dict[str, set[str]] = defaultdict(set)
    doing: list[str] = []
    perform_next: Callable[..., None] = turn.perform_next

    def noting(ports: Any, asked: Any, lease: Any) -> None:
        doing.append(asked.effect.kind)
        try:
            perform_next(ports, asked, lease)
        finally:
            doing.pop()

    monkeypatch.setattr(turn, "perform_next", noting)
    crash.arm(lambda name: passed[doing[-1] if doing else ""].add(name))
    try:
        for number, tell in enumerate(STORIES_OF_EFFECTS):
            store = Store("sqlite://")
            store.create_schema()
            tell(store, tmp_path / str(number))
            store.close()
    finally:
        crash.arm(None)
    outside = passed.pop("")
    assert {kind: sorted(points) for kind, points in passed.items()} == {
        kind: sorted(points) for kind, points in OF_EFFECT.items()
    }
    assert outside - {"event-committed"} == set(OUTSIDE)
