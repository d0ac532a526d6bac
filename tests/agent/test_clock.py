"""The clock as a port: aware always, and a virtual one that jumps."""

from __future__ import annotations

from datetime import UTC

from agent.clock import SystemClock, VirtualClock, serial
from tests.agent.fakes import START, at


def test_the_systems_clock_is_aware_and_goes_on() -> None:
    clock = SystemClock()
    before = clock.now()
    clock.sleep(0.001)
    assert before.tzinfo is UTC
    assert clock.now() > before


def test_a_virtual_clock_moves_only_when_told() -> None:
    clock = VirtualClock(START)
    assert clock.now() == clock.now() == START
    clock.sleep(90)
    assert clock.now() == at(90)
    clock.jump_to(at(30))
    assert clock.now() == at(90)
    clock.step(-60)
    assert clock.now() == at(30)


def test_a_serial_has_no_letters_that_look_alike() -> None:
    drawn = {serial() for _ in range(200)}
    assert len(drawn) == 200
    assert {len(one) for one in drawn} == {6}
    assert not set("".join(drawn)) & set("0o1li")
