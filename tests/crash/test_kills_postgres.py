"""The same kills over PostgreSQL: SIGKILL once at every crash point, a new process, and the run ends as undisturbed.

The server goes on while its client dies, so an open transaction is the server's to take back.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.agent import postgres
from tests.agent.conftest import REQUIRED, opened
from tests.crash.lives import URL, Kill, ending, live, passings
from tests.crash.test_kills import EVERY_RUN

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    if why := postgres.missing():
        (pytest.fail if REQUIRED else pytest.skip)(why)
    with postgres.server() as url:
        yield url


@contextmanager
def ground(server: str, folder: Path) -> Iterator[Path]:
    """A folder whose lives use the server, with an empty database. The parent keeps no connection to it."""
    folder.mkdir()
    (folder / URL).write_text(server)
    try:
        yield folder
    finally:
        for _ in opened(server):
            pass  # it drops everything as it closes


@pytest.mark.parametrize(("story", "point"), EVERY_RUN)
def test_a_kill_changes_nothing_on_postgresql(story: str, point: str, server: str, tmp_path: Path) -> None:
    with ground(server, tmp_path / "undisturbed") as folder:
        counted = passings(folder, story)
        wanted = ending(folder, story)
    for number in sorted({1, (counted[point] + 1) // 2, counted[point]}):
        with ground(server, tmp_path / str(number)) as folder:
            assert live(folder, story, Kill(point, number)) is False, (point, number)
            assert live(folder, story) is True
            assert ending(folder, story) == wanted, (point, number)
