"""Every recorded history of every release is still read, folds to what was stored, and is decided as it was."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from agent.archive import ArchiveError, parts_of, take_in
from agent.shadow import live_runs, seen
from agent.store import Store
from states.effects import parse_effect
from tests.agent.fakes import START
from tests.histories.record import HERE, STORIES

FILES = sorted(HERE.glob("*/*.jsonl"))


def name_of(file: Path) -> str:
    return f"{file.parent.name}-{file.stem}"


def parts(file: Path) -> dict[str, list[dict[str, Any]]]:
    with file.open(encoding="utf-8") as lines:
        found = parts_of(lines)
    for row in found["job"]:
        row["seen_at"] = datetime.fromisoformat(row["seen_at"]) if row.get("seen_at") else None
    return found


@pytest.fixture
def store() -> Iterator[Store]:
    made = Store("sqlite://")
    made.create_schema()
    yield made
    made.close()


def test_every_story_was_recorded() -> None:
    assert {file.stem for file in FILES if file.parent.name == "0.1.0"} == set(STORIES)


@pytest.mark.parametrize("file", FILES, ids=name_of)
def test_it_is_decided_as_it_was(file: Path) -> None:
    found = parts(file)
    (job,) = found["job"]
    verdict = seen(job, found["event"], found["effect"])
    assert verdict.level in ("same", "reworded"), verdict.said
    assert [parse_effect(effect["body"]).kind for effect in found["effect"]] == [
        e["kind"] for e in found["effect"]
    ]


def test_another_decision_is_told_apart_from_other_words_and_from_what_cannot_be() -> None:
    """The look itself bites: on a history with an effect taken out, a text changed, an event of tomorrow."""
    found = parts(HERE / "0.1.0" / "running.jsonl")
    (job,), events, effects = found["job"], found["event"], found["effect"]
    assert seen(job, events, effects).level in ("same", "reworded")
    assert seen(job, events, effects[1:]).level == "different"
    worded = json.loads(json.dumps(effects))
    next(effect for effect in worded if effect["kind"] == "report")["body"]["text"] = "Said otherwise."
    assert seen(job, events, worded).level == "reworded"
    tomorrow = [{**events[0], "body": {**events[0]["body"], "kind": "never_heard_of"}}, *events[1:]]
    assert seen(job, tomorrow, effects).level == "impossible"
    newer = {**job, "snapshot": {**job["snapshot"], "version": 99}}
    assert seen(newer, events, effects).level in ("impossible", "different")


@pytest.mark.parametrize("file", FILES, ids=name_of)
def test_one_that_ended_can_be_taken_in_and_explained_and_one_that_lives_cannot(
    file: Path, store: Store
) -> None:
    ended = parts(file)["job"][0].get("ended_at") is not None
    with file.open(encoding="utf-8") as lines:
        if not ended:
            with pytest.raises(ArchiveError, match="had not ended"):
                take_in(store, lines, lambda value: value, START)
            assert store.boards() == []
            return
        job = take_in(store, lines, lambda value: value, START)
    assert store.load(job.id).state == job.state
    assert len(store.history(job.id)) == job.seq
    assert store.messages(job.id)
    assert list(live_runs(store)) == []
