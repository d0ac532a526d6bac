"""Upgrades with runs in flight: what an older version does still works on the newest form, and the look before an
upgrade changes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Engine,
    Float,
    Integer,
    MetaData,
    Table,
    insert,
    inspect,
    select,
    text,
    update,
)
from sqlmodel import SQLModel

from agent.archive import parts_of
from agent.migrations import HEAD, current, migrate, upgrade
from agent.shadow import form_of, is_newer, live_runs
from agent.store import Store
from tests.agent.conftest import url_of
from tests.histories.record import HERE

OLDER = [f"{number:04}" for number in range(1, int(HEAD))]
LIVE = ("just-delegated", "submit-open", "queued", "running", "stop-open", "question-open")


@pytest.fixture(params=["sqlite-file", "postgresql"])
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Engine]:
    """An empty database of each kind."""
    store = Store(url_of(request.param, tmp_path, request))
    yield store.engine
    drop(store.engine)
    store.close()


def drop(engine: Engine) -> None:
    with engine.connect().execution_options(write=True) as connection, connection.begin():
        SQLModel.metadata.drop_all(connection)
        connection.execute(text("DROP TABLE IF EXISTS alembic_version"))


def at_form(engine: Engine, form: str) -> MetaData:
    """The database brought to a form, and its tables as an older version knows them."""
    with engine.connect().execution_options(write=True) as connection, connection.begin():
        migrate(connection, form)
    known = MetaData()
    known.reflect(engine)
    known.remove(known.tables["alembic_version"])
    return known


def filled(table: Table) -> dict[str, Any]:
    """A row with each column that the table wants."""
    kinds: tuple[tuple[type, Any], ...] = (
        (JSON, {}), (Boolean, False), (BigInteger, 7), (Integer, 7), (Float, 0.5),
    )  # fmt: skip
    row = {}
    for column in table.columns:
        if not column.nullable:
            row[column.name] = next((value for kind, value in kinds if isinstance(column.type, kind)), "x")
    return row


@pytest.mark.parametrize("form", OLDER)
def test_an_older_version_that_still_runs_reads_and_writes_the_newest_form(engine: Engine, form: str) -> None:
    """Replicas are upgraded one after the other: the first new one changes the form under the others."""
    known = at_form(engine, form)
    upgrade(engine)
    tables = known.sorted_tables
    assert len(tables) >= 6
    with engine.connect().execution_options(write=True) as connection, connection.begin():
        for table in tables:
            connection.execute(insert(table), filled(table))
        for table in tables:
            row = connection.execute(select(table)).mappings().one()
            nothing_else = {name: row[name] for name in list(row)[:1]}
            connection.execute(update(table).values(nothing_else))
        for table in reversed(tables):
            connection.execute(table.delete())


def row_of(table: Table, entry: dict[str, Any]) -> dict[str, Any]:
    return {
        name: (
            micro(value) if isinstance(table.c[name].type, BigInteger) and isinstance(value, str) else value
        )
        for name, value in entry.items()
        if name in table.c
    }


def micro(value: str) -> int:
    return int(datetime.fromisoformat(value).timestamp() * 1_000_000)


@pytest.mark.parametrize("form", OLDER)
def test_live_runs_of_an_older_form_are_looked_at_unchanged_and_then_carried(
    engine: Engine, form: str
) -> None:
    known = at_form(engine, form)
    own = {"watched": False, "away": False, "lease_token": ""}
    ids = []
    with engine.connect().execution_options(write=True) as connection, connection.begin():
        for name in LIVE:
            with (HERE / "0.1.0" / f"{name}.jsonl").open(encoding="utf-8") as lines:
                parts = parts_of(lines)
            ids.append(parts["job"][0]["id"])
            connection.execute(
                insert(known.tables["job"]), row_of(known.tables["job"], {**parts["job"][0], **own})
            )
            for part in ("event", "effect", "message"):
                rows = [row_of(known.tables[part], entry) for entry in parts[part]]
                if rows:
                    connection.execute(insert(known.tables[part]), rows)
    store = Store(engine.url.render_as_string(hide_password=False))
    before = inspect(engine).get_columns("job")
    assert form_of(store) == form
    found = {run.run: run for run in live_runs(store)}
    assert sorted(found) == sorted(ids)
    assert {run.level for run in found.values()} <= {"same", "reworded"}, found
    assert [column["name"] for column in inspect(engine).get_columns("job")] == [c["name"] for c in before]
    with engine.connect() as connection, connection.begin():
        assert current(connection) == form
    store.create_schema()
    assert sorted(store.live_ids()) == sorted(ids)
    assert all(store.load(run).seq == len(store.history(run)) for run in ids)
    store.close()


def test_a_form_of_tomorrow_is_known_as_such() -> None:
    assert is_newer("9999")
    assert is_newer("a-branch")
    assert not is_newer(HEAD)
    assert not is_newer("")
