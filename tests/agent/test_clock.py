"""The clock as a port: aware always, and a virtual one that jumps."""

from __future__ import annotations

from datetime import UTC

from agent.clock import SystemClock, VirtualClock, serial
from agent.redaction import Redactor
from states.naming import job_id
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


def test_a_run_is_never_named_like_a_credential() -> None:
    """`digits-vzfpwd:3:0` was taken for a password, and the run's own events with it."""
    redactor = Redactor(())
    for name in (job_id("digits", serial()) for _ in range(2000)):
        told = f"{name}:3:0 of {name}: it runs, {name}=4"
        assert redactor.text(told) == told
