"""Tests of states/ run where the outside is refused (tests/conftest.py); this file sees that it really is.

Never: a fixture. What these tests want is refused before anything is written, started or asked.
"""

from __future__ import annotations

import random  # noqa: TID251
import socket
import subprocess
import time
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.mark.parametrize(
    "reach",
    [
        lambda: time.time(),  # noqa: TID251
        lambda: time.monotonic(),  # noqa: TID251
        lambda: time.sleep(0),  # noqa: TID251
        lambda: uuid.uuid4(),  # noqa: TID251
        lambda: random.random(),
        lambda: socket.socket(),
        lambda: subprocess.run(["true"], check=True),
        lambda: Path(__file__).with_suffix(".written").write_text("x"),
    ],
    ids=["time", "monotonic", "sleep", "uuid", "chance", "socket", "process", "written file"],
)
def test_the_outside_is_refused(reach: Callable[[], object]) -> None:
    with pytest.raises(PermissionError, match="a test of states/"):
        reach()


def test_package_data_may_be_read() -> None:
    assert "refused" in Path(__file__).read_text(encoding="utf-8")
