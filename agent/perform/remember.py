"""Write into the config library; the effect's id is the key.

Never: a credential (H4; the library refuses values that look like one).
"""

from __future__ import annotations

from agent.asked import AskedEffect
from agent.leases import Lease
from agent.ports import Ports
from states.effects import Remember
from states.job import Job


def remember(effect: Remember, asked: AskedEffect, job: Job, ports: Ports, lease: Lease) -> None:
    """Record a config that was used, worked, failed, or a fact that the person gave."""
    if ports.library is not None:
        ports.library.remember(asked.id, effect, ports.clock.now())
