"""A notice wakes the other replicas at once, survives a cut connection, and is never in the way."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event
from typing import Any

import pytest
from sqlalchemy import text

from agent.notify import Notices
from agent.store import Store

CUT = text("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN%'")


@pytest.fixture
def other(postgres_url: str, shared: Store) -> Any:
    store = Store(postgres_url)
    yield store
    store.close()


def test_the_others_hear_it_and_who_told_does_not(shared: Store, other: Store) -> None:
    told, heard = Event(), Event()
    here, there = Notices(shared), Notices(other)
    ears = [here.listen(told.set), there.listen(heard.set)]
    try:
        for ear in ears:
            assert ear is not None
            assert ear.ready.wait(20)
        assert heard.wait(20)  # once at the beginning: what was said before
        assert told.wait(20)
        told.clear()
        there.tell()
        assert told.wait(20)
        told.clear()
        heard.clear()
        here.tell()
        assert heard.wait(20)
        assert not told.is_set()
    finally:
        for ear in ears:
            if ear is not None:
                ear.close()


def test_an_ear_that_was_cut_off_comes_back_and_looks(
    shared: Store, other: Store, eventually: Callable[..., Any]
) -> None:
    heard = Event()
    ear = Notices(other).listen(heard.set)
    assert ear is not None
    try:
        assert heard.wait(20)
        heard.clear()
        with shared.write() as connection:
            assert connection.execute(CUT).scalar()
        assert heard.wait(20), "it looks again by itself once it is back"
        heard.clear()
        Notices(shared).tell()
        assert heard.wait(20)
    finally:
        ear.close()


def test_a_database_that_is_gone_is_not_the_tellers_trouble(caplog: pytest.LogCaptureFixture) -> None:
    gone = Store("postgresql+psycopg://watch@/nowhere?host=/nonexistent")
    Notices(gone).tell()
    assert "their sweep looks" in caplog.text
    gone.close()


def test_an_embedded_database_needs_none() -> None:
    store = Store("sqlite://")
    notices = Notices(store)
    notices.tell()
    assert notices.listen(lambda: None) is None
    store.close()


def test_a_plain_url_means_the_driver_that_comes_with_the_extra(postgres_url: str) -> None:
    store = Store(postgres_url.replace("postgresql+psycopg", "postgresql"))
    with store.read() as connection:
        assert connection.execute(text("SHOW idle_in_transaction_session_timeout")).scalar() == "30s"
        assert connection.execute(text("SHOW lock_timeout")).scalar() == "15s"
    store.close()
