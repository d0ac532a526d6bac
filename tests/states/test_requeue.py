"""A requeue under the same id that fell between two looks: another program, on another node, said once.

Never: a cluster; looks are built.
"""

from __future__ import annotations

from states.effects import Report
from states.job import State
from states.observation import Phase
from tests.states.builders import at_of, in_running, led, seen, take


def test_a_requeue_between_two_looks_is_a_new_program() -> None:
    before = led(in_running(), seen(Phase.running, node="n1"))
    taken = take(before, seen(Phase.running, node="n2", attempt=1)(before, at_of(before)))
    assert taken.job.state is State.running
    assert (taken.job.attempt.node, taken.job.attempt.restarts_seen) == ("n2", 1)
    assert taken.job.attempt.name == before.attempt.name
    assert [effect.stage for effect in taken.effects if isinstance(effect, Report)] == ["resumed"]


def test_it_is_said_once() -> None:
    job = led(in_running(), seen(Phase.running, node="n2", attempt=1))
    assert take(job, seen(Phase.running, node="n2", attempt=1)(job, at_of(job))).effects == ()
