"""Let the model read a bounded, redacted log. Without one everything works: the reading is then void (I3).

Never: let a reading decide; call the model outside the budget (`reader` keeps it).
"""

from __future__ import annotations

from agent.asked import AskedEffect
from agent.clusters.base import ClusterError
from agent.leases import Lease
from agent.ports import Ports, ref_of
from states.effects import Interpret
from states.events import Interpreted
from states.job import Job


def interpret(effect: Interpret, asked: AskedEffect, job: Job, ports: Ports, lease: Lease) -> Interpreted:
    """One reading, or the reason why there is none."""
    if ports.reader is None:
        return _void(effect, ports, "no model is configured")
    if not job.attempts or effect.name != job.attempt.name:
        return _void(effect, ports, "the attempt is over")
    try:
        piece = ports.cluster_of(job).logs(ref_of(job), lines=effect.lines)
    except ClusterError as error:
        return _void(effect, ports, ports.redact(str(error)))
    return ports.reader.interpret(job, effect, ports.redact(piece.text))


def _void(effect: Interpret, ports: Ports, reason: str) -> Interpreted:
    return Interpreted(at=ports.clock.now(), name=effect.name, failed=reason)
