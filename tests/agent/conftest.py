"""Stores for the tests of the hands: SQLite in memory, and a real PostgreSQL where there is one.

Never: a database that another test has written to.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text
from sqlmodel import SQLModel

from agent.store import Store
from tests.agent import postgres
from tests.agent.fakes import Desk

REQUIRED = os.environ.get("WATCHKEEPER_REQUIRE_ENGINES") == "1"
"""Set where the real engines must be there; read at import, since the tests drop such variables."""


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """One server for all tests that want one; skips where there is none."""
    if why := postgres.missing():
        (pytest.fail if REQUIRED else pytest.skip)(why)
    with postgres.server() as url:
        yield url


def url_of(kind: str, folder: Path, request: pytest.FixtureRequest) -> str:
    if kind == "postgresql":
        return str(request.getfixturevalue("postgres_url"))
    return f"sqlite:///{folder / 'watchkeeper.db'}" if kind == "sqlite-file" else "sqlite://"


@pytest.fixture(params=["sqlite", "postgresql"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """An empty store; each test that takes it runs on both databases."""
    yield from opened(url_of(request.param, tmp_path, request))


@pytest.fixture(params=["sqlite-file", "postgresql"])
def shared_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """The same where several threads or processes are at it."""
    yield from opened(url_of(request.param, tmp_path, request))


def opened(url: str) -> Iterator[Store]:
    made = Store(url)
    made.create_schema()
    yield made
    if not url.startswith("sqlite"):
        with made.write() as connection:
            SQLModel.metadata.drop_all(connection)
            connection.execute(text("DROP TABLE IF EXISTS alembic_version"))
    made.close()


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Callable[..., Desk]]:
    """`desk(*scripts, ...)`: a desk over an empty SQLite in memory."""
    made: list[Store] = []

    def build(*scripts: Any, **options: Any) -> Desk:
        made.append(Store("sqlite://"))
        made[-1].create_schema()
        return Desk(made[-1], tmp_path, *scripts, **options)

    yield build
    for store in made:
        store.close()
