"""Builders for the tests of the model that reads: a log, settings that point at the fake server, a reader.

Never: a stand-in for product code; the only thing that is not real is the server.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from agent.clock import Clock, VirtualClock
from agent.reader import Facts, ModelReader, Notebook, Reading, Void
from agent.reader.budget import Ledger, Limits
from agent.reader.messages import MessagesApi
from agent.settings import ModelSettings
from states.text import lines
from tests.agent.fake_model import FakeModel, Script, fake_model

T0 = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
KEY = "-".join(("not", "a", "key", "but", "looked", "for"))
LOG = "building the index of the shards\nshard 2 of 40 indexed\nshard 3 of 40 indexed\n"
FACTS = Facts(
    phase="running", native="RUNNING", situation="The log says too little to judge.", silence_s=400.0
)
PLENTY = Limits(job_usd=10.0, day_usd=10.0)


def settings(model: FakeModel, **changes: Any) -> ModelSettings:
    return ModelSettings(base_url=model.url, timeout_s=10.0).model_copy(update=changes)


@contextmanager
def reading(
    script: Script,
    *,
    ledger: Ledger | None = None,
    clock: Clock | None = None,
    limits: Limits = PLENTY,
    redact: Callable[[str], str] = str,
    **changes: Any,
) -> Iterator[tuple[ModelReader, FakeModel]]:
    """A reader and the fake server it asks, for as long as the block runs."""
    clock = clock or VirtualClock(T0)
    with fake_model(script) as model:
        caller = MessagesApi(settings(model, **changes), KEY, clock)
        reader = ModelReader(caller, ledger or Notebook(), clock, limits=limits, redact=redact)
        try:
            yield reader, model
        finally:
            reader.close()


def read(reader: ModelReader, log: str = LOG, *, job_id: str = "") -> Reading | Void:
    return reader.read(lines(log), FACTS, job_id=job_id)


def good(outcome: Reading | Void) -> Reading:
    assert isinstance(outcome, Reading), outcome
    return outcome


def void(outcome: Reading | Void) -> Void:
    assert isinstance(outcome, Void), outcome
    return outcome
