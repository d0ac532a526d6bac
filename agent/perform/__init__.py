"""The performers: one kind of effect a function, each turning an effect into a call and the answer into an event.

Never: a decision about the job; an import of one performer by another.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from agent.asked import AskedEffect
from agent.leases import Lease
from agent.perform import checks, collect, interpret, kin, logs, remember, stop, submit, tell
from agent.ports import Ports
from states.events import AnyEvent
from states.job import Job

Performer = Callable[[Any, AskedEffect, Job, Ports, Lease], AnyEvent | None]

PERFORMERS: Mapping[str, Performer] = {
    "run_check": checks.run_check,
    "submit": submit.submit,
    "find_by_name": submit.find_by_name,
    "read_logs": logs.read_logs,
    "interpret": interpret.interpret,
    "stop_job": stop.stop_job,
    "delete_job": stop.delete_job,
    "ask": tell.ask,
    "withdraw": tell.withdraw,
    "report": tell.report,
    "collect": collect.collect,
    "remember": remember.remember,
    "delegate": kin.delegate,
    "tell_parent": kin.tell_parent,
    "stop_child": kin.stop_child,
}


def perform(asked: AskedEffect, job: Job, ports: Ports, lease: Lease) -> AnyEvent | None:
    """Carry out one asked effect. The returned event (None: the effect has no answer) is not yet committed."""
    return PERFORMERS[asked.effect.kind](asked.effect, asked, job, ports, lease)
