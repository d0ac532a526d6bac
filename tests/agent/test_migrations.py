"""The database's form: made at once, or step by step, it is the same; a newer one is left alone; a start is light."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Engine, inspect, text
from sqlmodel import SQLModel

from agent import migrations
from agent.migrations import HEAD, TooNew, current, migrate, upgrade
from agent.store import Store
from tests.agent.conftest import url_of
from tests.agent.fakes import at
from tests.agent.test_store import put_running


@pytest.fixture(params=["sqlite-file", "postgresql"])
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Engine]:
    """An empty database of each kind."""
    store = Store(url_of(request.param, tmp_path, request))
    yield store.engine
    with store.write() as connection:
        SQLModel.metadata.drop_all(connection)
        connection.execute(text("DROP TABLE IF EXISTS alembic_version"))
    store.close()


def form_of(engine: Engine) -> dict[str, object]:
    """Tables, columns, keys and indexes, as the database tells them."""
    present = inspect(engine)
    return {
        name: (
            [(one["name"], str(one["type"]), one["nullable"]) for one in present.get_columns(name)],
            sorted(tuple(one["column_names"]) for one in present.get_unique_constraints(name)),
            sorted((one["name"], tuple(one["column_names"])) for one in present.get_indexes(name)),
            present.get_pk_constraint(name)["constrained_columns"],
        )
        for name in sorted(present.get_table_names())
    }


def step_by_step(engine: Engine) -> None:
    with engine.connect().execution_options(write=True) as connection, connection.begin():
        migrate(connection, HEAD)


def test_the_revisions_make_what_the_tables_say(engine: Engine) -> None:
    step_by_step(engine)
    with engine.connect() as connection, connection.begin():
        assert compare_metadata(MigrationContext.configure(connection), SQLModel.metadata) == []
        assert current(connection) == HEAD


def test_made_at_once_it_is_the_same_as_step_by_step(engine: Engine) -> None:
    step_by_step(engine)
    by_steps = form_of(engine)
    with engine.connect().execution_options(write=True) as connection, connection.begin():
        SQLModel.metadata.drop_all(connection)
        connection.execute(text("DROP TABLE alembic_version"))
    upgrade(engine)
    assert form_of(engine) == by_steps


def test_a_second_upgrade_changes_nothing(engine: Engine) -> None:
    upgrade(engine)
    before = form_of(engine)
    upgrade(engine)
    assert form_of(engine) == before


def test_a_database_from_before_the_revisions_keeps_its_rows(engine: Engine) -> None:
    with engine.connect().execution_options(write=True) as connection, connection.begin():
        migrate(connection, "0001")
        connection.execute(text("DROP TABLE alembic_version"))
    store = Store(str(engine.url))
    run = put_running(store)
    with engine.connect() as connection, connection.begin():
        assert current(connection) == "0001"
    upgrade(engine)
    assert store.load(run).attempt.started_at == at(60)
    store.close()


def test_a_newer_database_is_refused_and_left_alone(engine: Engine) -> None:
    upgrade(engine)
    with engine.connect().execution_options(write=True) as connection, connection.begin():
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(TooNew, match="upgrade Watchkeeper"):
        upgrade(engine)


def test_several_processes_that_start_at_once_make_it_once(engine: Engine) -> None:
    troubles: list[BaseException] = []

    def start() -> None:
        store = Store(engine.url.render_as_string(hide_password=False))
        try:
            upgrade(store.engine)
        except BaseException as error:
            troubles.append(error)
        finally:
            store.close()

    threads = [threading.Thread(target=start) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert troubles == []
    assert "job" in form_of(engine)


def test_the_revisions_are_one_line_up_to_the_newest() -> None:
    scripts = ScriptDirectory(str(Path(migrations.__file__).parent))
    numbers = [script.revision for script in scripts.walk_revisions()][::-1]
    assert numbers == [f"{number:04}" for number in range(1, int(HEAD) + 1)]


def test_a_start_does_not_import_alembic(tmp_path: Path) -> None:
    told = (
        "import sys; from agent.store import Store; from agent.migrations import upgrade; "
        f"store = Store('sqlite:///{tmp_path / 'w.db'}'); upgrade(store.engine); upgrade(store.engine); "
        "sys.exit('alembic' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", told], check=False).returncode == 0
