"""Runs that a run delegates (smoke, preparation), and the word back to their parent.

A child is a job like any other, carried by the same machine; its id was decided in `states/`, so a repeat
finds it there.

Never: a child of a child.
"""

from __future__ import annotations

from agent import crash
from agent.asked import AskedEffect
from agent.leases import Lease
from agent.ports import Ports
from states.effects import Delegate, StopChild, TellParent
from states.events import ChildFinished, StopRequested
from states.job import Job


def delegate(effect: Delegate, asked: AskedEffect, job: Job, ports: Ports, lease: Lease) -> None:
    """Store the child with its first event; a second time it is there already."""
    if ports.delegate_child is None:
        raise RuntimeError("this process cannot delegate runs")
    ports.delegate_child(job, effect.child, effect.request)
    crash.point("child-delegated")


def tell_parent(effect: TellParent, asked: AskedEffect, job: Job, ports: Ports, lease: Lease) -> None:
    """The child's end is an event of the parent, keyed by the child."""
    event = ChildFinished(
        at=ports.clock.now(),
        key=f"child:{job.id}",
        child=job.id,
        purpose=effect.purpose,
        ok=effect.ok,
        cause=effect.cause,
        evidence=job.diagnosis.evidence,
        summary=effect.summary,
        found=effect.found,
    )
    ports.store.apply(effect.parent, event)
    crash.point("parent-told")
    ports.announce(effect.parent)


def stop_child(effect: StopChild, asked: AskedEffect, job: Job, ports: Ports, lease: Lease) -> None:
    """The parent was given up: its child is stopped."""
    event = StopRequested(at=ports.clock.now(), key=asked.id, by=job.id, reason=f"{job.id} was given up")
    ports.store.apply(effect.child, event)
    ports.announce(effect.child)
