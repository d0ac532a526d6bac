"""What a release before would have left in the database: its form, and the mark of the machine before on every row.

The earlier form is what the revisions make of an empty database; the present one is cut back to it. Nothing is lost
that the release before knew.

Never: a second description of a form; a change of what was decided.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from sqlalchemy import Connection, Engine, create_engine, text

from agent.migrations import FIRST, migrate
from states.job import MACHINE_VERSION
from states.versions import LIFTS_OF_EVENTS, LIFTS_OF_SNAPSHOTS

OLDER_MACHINE = MACHINE_VERSION - 1
"""The mark of the machine before."""

_TABLES = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%' ORDER BY name"
_INDEXES = "SELECT name, sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL ORDER BY name"


class Form(NamedTuple):
    """Tables with their columns, and the statements that make the indexes."""

    columns: dict[str, tuple[str, ...]]
    indexes: dict[str, str]


def set_back(engine: Engine, form: str) -> None:
    """Leave an SQLite database as the release before would have. form: the number of a revision.

    Raises ValueError when the machine before wrote another form of events or runs than this one: its rows must then
    be written as it wrote them, and a mark is not enough.
    """
    if {OLDER_MACHINE} & {*LIFTS_OF_EVENTS, *LIFTS_OF_SNAPSHOTS}:
        raise ValueError(f"rows of machine {OLDER_MACHINE} have another form; say here how they are written")
    with engine.connect().execution_options(write=True) as connection, connection.begin():
        _mark(connection)
        _cut_back(connection, shape_of(form))
        if form == FIRST:
            connection.execute(text("DROP TABLE alembic_version"))  # tables without a revision are the first
        else:
            connection.execute(text("DELETE FROM alembic_version"))
            connection.execute(text("INSERT INTO alembic_version VALUES (:form)"), {"form": form})


@lru_cache
def shape_of(form: str) -> Form:
    """What the revisions up to this one make of an empty database."""
    engine = create_engine("sqlite://")
    with engine.begin() as connection:
        migrate(connection, form)
        found = _shape(connection)
    engine.dispose()
    return found


def _mark(connection: Connection) -> None:
    older = {"older": OLDER_MACHINE}
    for statement in (
        "UPDATE job SET snapshot = json_set(snapshot, '$.version', :older)",
        "UPDATE event SET body = json_set(body, '$.v', :older), version = :older",
        "UPDATE effect SET version = :older",
    ):
        connection.execute(text(statement), older)


def _cut_back(connection: Connection, wanted: Form) -> None:
    here = _shape(connection)
    for index in here.indexes:
        connection.exec_driver_sql(f'DROP INDEX "{index}"')
    for table, columns in here.columns.items():
        if table == "alembic_version":
            continue
        if table not in wanted.columns:
            connection.exec_driver_sql(f'DROP TABLE "{table}"')
            continue
        for column in columns:
            if column not in wanted.columns[table]:
                connection.exec_driver_sql(f'ALTER TABLE "{table}" DROP COLUMN "{column}"')
    for statement in wanted.indexes.values():
        connection.exec_driver_sql(statement)


def _shape(connection: Connection) -> Form:
    tables = [row[0] for row in connection.exec_driver_sql(_TABLES)]
    columns = {
        table: tuple(row[1] for row in connection.exec_driver_sql(f'PRAGMA table_info("{table}")'))
        for table in tables
    }
    return Form(columns, {row[0]: row[1] for row in connection.exec_driver_sql(_INDEXES)})
