"""The database's form: made at once where there is none, brought up to date where it is older.

A start costs one small read; alembic is imported only when there is something to change. Each revision is a file in
`versions/`, its number is `tables.SCHEMA_VERSION`.

Never: lose a row; touch a database that a newer Watchkeeper has written.
"""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Connection, Engine, func, inspect, select, text
from sqlmodel import SQLModel

from agent import tables

HEAD = f"{tables.SCHEMA_VERSION:04}"
"""The newest revision."""

FIRST = "0001"
LOCK = 0x77_6B
"""Number of the advisory lock: of several processes that start at once on PostgreSQL, one migrates."""


class TooNew(RuntimeError):
    """The database was written by a newer Watchkeeper."""


def upgrade(engine: Engine) -> None:
    """Bring the database to HEAD, in one transaction. Raises TooNew; what fails changes nothing."""
    with engine.connect() as connection, connection.begin():
        if current(connection) == HEAD:
            return
    with engine.connect().execution_options(write=True) as connection, connection.begin():
        if connection.dialect.name == "postgresql":
            connection.execute(text("SET LOCAL lock_timeout = 0"))  # a large database takes its time
            connection.execute(select(func.pg_advisory_xact_lock(LOCK)))
        here = current(connection)
        if here == HEAD:
            return
        if not here:
            _create(connection)
        elif not here.isdigit() or int(here) > tables.SCHEMA_VERSION:
            raise TooNew(
                f"the database has the form {here}, this Watchkeeper knows {HEAD}: "
                "upgrade Watchkeeper, or give it another database (`database:` in config.yaml)"
            )
        else:
            migrate(connection, HEAD)


def current(connection: Connection) -> str:
    """The revision of a database; "": it has none of our tables; tables without a revision are the first form."""
    present = inspect(connection)
    if present.has_table("alembic_version"):
        return str(connection.execute(text("SELECT version_num FROM alembic_version")).scalar() or "")
    return FIRST if present.has_table("job") else ""


def migrate(connection: Connection, revision: str) -> None:
    """Run the revisions up to this one, within the caller's transaction."""
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent))
    config.attributes["connection"] = connection
    if not inspect(connection).has_table("alembic_version") and current(connection):
        command.stamp(config, FIRST)
    command.upgrade(config, revision)


def _create(connection: Connection) -> None:
    """Everything at once, as the newest form has it; what the revisions would make (a test compares the two)."""
    SQLModel.metadata.create_all(connection)
    connection.execute(text("CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL PRIMARY KEY)"))
    connection.execute(text("INSERT INTO alembic_version VALUES (:head)"), {"head": HEAD})
