"""A run's history out and in again: nothing lost, nothing live, nothing believed that was changed on the way."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from sqlalchemy import select

from agent.archive import ArchiveError, export, take_in
from agent.database import EFFECTS, EVENTS, JOBS, MESSAGES
from agent.redaction import Redactor
from agent.store import Store
from tests.agent.conftest import opened
from tests.agent.fakes import Desk

SECRET = "9f8e7d6c-not-for-others"
HIDE = Redactor({"LAB_KEY": SECRET}).value
MakeDesk = Callable[..., Desk]


@pytest.fixture
def ended(desk: MakeDesk) -> tuple[Desk, str]:
    here = desk()
    run = here.delegate(request_id="request-1", env={"NOTE": SECRET})
    here.run_to(run, "succeeded")
    here.settle()
    return here, run


@pytest.fixture(params=["sqlite", "postgresql"])
def elsewhere(request: pytest.FixtureRequest) -> Iterator[Store]:
    postgresql = request.param == "postgresql"
    yield from opened(request.getfixturevalue("postgres_url") if postgresql else "sqlite://")


def lines_of(here: Desk, run: str) -> list[str]:
    return list(export(here.store, run, HIDE, here.clock.now()))


def rows(store: Store, table: Any) -> list[dict[str, Any]]:
    with store.read() as connection:
        return [dict(row) for row in connection.execute(select(table)).mappings()]


def test_what_comes_in_is_what_went_out(ended: tuple[Desk, str], elsewhere: Store) -> None:
    here, run = ended
    taken = take_in(elsewhere, lines_of(here, run), HIDE, here.clock.now())
    assert taken.id == run
    for table in (EVENTS, EFFECTS, MESSAGES):
        first, second = rows(here.store, table), rows(elsewhere, table)
        assert len(first) > 2
        strip = [HIDE({k: v for k, v in row.items() if k != "id" or table is not EVENTS}) for row in first]
        assert sorted(strip, key=repr) == sorted(
            ({k: v for k, v in row.items() if k != "id" or table is not EVENTS} for row in second), key=repr
        )
    assert SECRET not in repr(rows(elsewhere, JOBS))
    assert [row["rule"] for row in elsewhere.journal(run)] == [row["rule"] for row in here.store.journal(run)]


def test_it_never_becomes_live(ended: tuple[Desk, str], elsewhere: Store) -> None:
    """Also not through its request id, which is another's to use."""
    here, run = ended
    with here.store.write() as connection:
        connection.execute(EFFECTS.update().values(done_at=None, state="asked"))
    take_in(elsewhere, lines_of(here, run), HIDE, here.clock.now())
    assert elsewhere.live_ids() == []
    assert elsewhere.next_wake() is None
    assert elsewhere.next_effect_at() is None
    assert elsewhere.jobs_with_effects(here.clock.now()) == []
    assert rows(elsewhere, JOBS)[0]["request_id"] is None


def test_one_that_lives_is_written_but_not_taken_in(desk: MakeDesk, elsewhere: Store) -> None:
    here = desk()
    run = here.delegate()
    with pytest.raises(ArchiveError, match="had not ended"):
        take_in(elsewhere, lines_of(here, run), HIDE, here.clock.now())
    assert rows(elsewhere, JOBS) == []


def test_a_second_time_it_is_here_already(ended: tuple[Desk, str], elsewhere: Store) -> None:
    here, run = ended
    lines = lines_of(here, run)
    take_in(elsewhere, lines, HIDE, here.clock.now())
    with pytest.raises(ArchiveError, match="here already"):
        take_in(elsewhere, lines, HIDE, here.clock.now())


def test_no_line_holds_a_secret(ended: tuple[Desk, str]) -> None:
    here, run = ended
    assert SECRET in repr(rows(here.store, JOBS)), "else this test says nothing"
    assert all(SECRET not in line for line in lines_of(here, run))


def cut(lines: list[str]) -> list[str]:
    return lines[:-3]


def changed(lines: list[str]) -> list[str]:
    return [line.replace("step", "leap") for line in lines]


def without_a_row(lines: list[str]) -> list[str]:
    return lines[:4] + lines[5:]


def later_format(lines: list[str]) -> list[str]:
    return [json.dumps({**json.loads(lines[0]), "format": 2}), *lines[1:]]


def no_lines(lines: list[str]) -> list[str]:
    return ["<html>"]


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (cut, "cut"),
        (changed, "was changed"),
        (without_a_row, "was changed"),
        (later_format, "upgrade it"),
        (no_lines, "none of"),
    ],
)
def test_a_spoilt_file_is_refused_whole(
    ended: tuple[Desk, str], spoil: Callable[[list[str]], list[str]], says: str
) -> None:
    here, run = ended
    with here.store.write() as connection:
        before = connection.execute(select(JOBS.c.id)).scalars().all()
    with pytest.raises(ArchiveError, match=says):
        take_in(here.store, spoil(lines_of(here, run)), HIDE, here.clock.now())
    assert [row["id"] for row in rows(here.store, JOBS)] == before
