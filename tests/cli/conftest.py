"""A home for each test of the command line, and one finished run that the reading commands share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.program import Ran, Wk, steps


@pytest.fixture
def wk(tmp_path: Path, eventually: Callable[..., Any]) -> Iterator[Wk]:
    program = Wk(tmp_path / "wk")
    yield program
    program.close(eventually)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Wk, Ran, str]:
    """A run that was followed to its success without a terminal: the program, what it printed, the run's id."""
    program = Wk(tmp_path_factory.mktemp("finished") / "wk")
    ran = program("run", "--name", "digits", "--output", "out.txt", "--", steps(6, 0.25))
    (run,) = program.board()
    return program, ran, str(run["id"])
