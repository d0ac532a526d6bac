"""The kernel: one job's turn. Claim, perform what is asked, take what comes back, until nothing is left to do.

    claim -> next effect -> intent -> perform -> commit (event + snapshot + asked effects) -> next effect -> release

Everything durable is in the store's transactions; a turn that dies anywhere is simply taken again.

Never: a decision (the table's), a timer (wakes), a thread (workers).
"""

from __future__ import annotations

from agent import leases, observe
from agent.asked import AskedEffect
from agent.outbox import perform_next
from agent.ports import Ports
from states.effects import Redo

EFFECTS_MAX = 200
"""Effects of one turn; a loop without end would be a fault of the table, and must not hold a worker."""


def turn(job_id: str, ports: Ports) -> int:
    """Perform the job's due effects. Returns how many; 0 when somebody else holds the lease or none is due."""
    if ports.store.next_effect(job_id, ports.clock.now()) is None:
        return 0  # a read costs nothing beside the two commits of a lease
    lease = leases.claim(ports.store, ports.clock, job_id)
    if lease is None:
        return 0
    done = 0
    try:
        with observe.during("turn", run=job_id):
            while done < EFFECTS_MAX:
                asked = ports.store.next_effect(job_id, ports.clock.now())
                if asked is None:
                    break
                fresh = lease.outlives(ports.clock.now(), _wanted_s(asked))
                renewed = lease if fresh else leases.renew(ports.store, ports.clock, lease)
                if renewed is None:
                    break
                lease = renewed
                perform_next(ports, asked, lease)
                done += 1
    finally:
        leases.release(ports.store, lease)
    if done:
        ports.announce(job_id)
    return done


def _wanted_s(asked: AskedEffect) -> float:
    """How much of the lease an effect must have before it: half, and nearly all for a submit (RELIABILITY 2.7)."""
    return leases.LEASE_S * (0.9 if asked.effect.redo is Redo.adopt else 0.5)
