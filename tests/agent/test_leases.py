"""One holder per run: taken, prolonged, lost, given back."""

from __future__ import annotations

import threading

import pytest

from agent import leases
from agent.clock import VirtualClock
from agent.store import Store
from tests.agent.fakes import START
from tests.agent.test_store import put

RUN = "digits-k3f9"


@pytest.fixture
def clock(store: Store) -> VirtualClock:
    put(store)
    return VirtualClock(START)


def test_one_holds_it_and_the_next_waits_for_its_release(store: Store, clock: VirtualClock) -> None:
    first = leases.claim(store, clock, RUN)
    assert first is not None
    assert leases.claim(store, clock, RUN) is None
    leases.release(store, first)
    assert leases.claim(store, clock, RUN) is not None


def test_an_expired_one_is_free(store: Store, clock: VirtualClock) -> None:
    assert leases.claim(store, clock, RUN, lease_s=60) is not None
    clock.step(59)
    assert leases.claim(store, clock, RUN) is None
    clock.step(1)
    assert leases.claim(store, clock, RUN) is not None


def test_a_renewed_one_lasts_longer(store: Store, clock: VirtualClock) -> None:
    lease = leases.claim(store, clock, RUN, lease_s=60)
    assert lease is not None
    clock.step(50)
    renewed = leases.renew(store, clock, lease, lease_s=60)
    assert renewed is not None
    clock.step(50)
    assert leases.claim(store, clock, RUN) is None
    assert renewed.outlives(clock.now(), 9)
    assert not renewed.outlives(clock.now(), 10)


def test_one_that_was_taken_over_cannot_be_renewed_nor_given_back(store: Store, clock: VirtualClock) -> None:
    lost = leases.claim(store, clock, RUN, lease_s=60)
    assert lost is not None
    clock.step(60)
    held = leases.claim(store, clock, RUN, lease_s=60)
    assert held is not None
    assert leases.renew(store, clock, lost) is None
    leases.release(store, lost)
    assert leases.claim(store, clock, RUN) is None


def test_a_run_that_is_not_there_has_no_lease(store: Store, clock: VirtualClock) -> None:
    assert leases.claim(store, clock, "nobody") is None


def test_many_threads_get_one_lease(shared_store: Store) -> None:
    put(shared_store)
    clock = VirtualClock(START)
    got: list[leases.Lease | None] = []
    threads = [
        threading.Thread(target=lambda: got.append(leases.claim(shared_store, clock, RUN))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len([lease for lease in got if lease is not None]) == 1
