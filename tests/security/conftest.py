"""The desk at which everything leaks, told once for a file, with what the program logged meanwhile."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from agent.redaction import RedactingFilter, Redactor
from tests.channels.conftest import posted
from tests.security.canaries import KNOWN
from tests.security.leaky import Leaky, leaky_desk

__all__ = ["posted", "told"]


class Told(NamedTuple):
    """The desk after its story, and the log of the program."""

    leaky: Leaky
    log: io.StringIO


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Told]:
    log = io.StringIO()
    handler = logging.StreamHandler(log)
    handler.addFilter(RedactingFilter(Redactor(KNOWN)))
    root = logging.getLogger()
    before = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    try:
        with leaky_desk(tmp_path_factory.mktemp("leaky")) as leaky:
            yield Told(leaky, log)
    finally:
        root.removeHandler(handler)
        root.setLevel(before)
