"""Halt a job, or remove the record that a person named. A stop never deletes (A2).

Never: a stop or a delete that no committed effect asked for.
"""

from __future__ import annotations

from agent import crash
from agent.asked import AskedEffect
from agent.clusters.base import ClusterError, NotThere, Ref
from agent.leases import Lease
from agent.ports import Ports
from states.effects import DeleteJob, StopJob
from states.events import Deleted, StopAsked
from states.job import Job


def stop_job(effect: StopJob, asked: AskedEffect, job: Job, ports: Ports, lease: Lease) -> StopAsked:
    """Ask the cluster to halt it; whether it did is seen at the next look."""
    ref = Ref(effect.name, effect.cluster_job_id, job.attempt.intent_at if job.attempts else None)
    ok, reason = True, ""
    try:
        ports.cluster_of(job).stop(ref)
    except NotThere as error:
        reason = ports.redact(str(error))
    except ClusterError as error:
        ok, reason = False, ports.redact(str(error))
    crash.point("stop-after-call")
    return StopAsked(at=ports.clock.now(), cluster_job_id=effect.cluster_job_id, ok=ok, reason=reason)


def delete_job(effect: DeleteJob, asked: AskedEffect, job: Job, ports: Ports, lease: Lease) -> Deleted:
    """Remove the record of an ended job, because a person spelled out its name (A7)."""
    ref = Ref(effect.name, effect.cluster_job_id, job.attempt.intent_at if job.attempts else None)
    try:
        ports.cluster_of(job).delete(ref)
    except NotThere:
        return Deleted(at=ports.clock.now(), ok=True, reason="there was no record any more")
    except ClusterError as error:
        return Deleted(at=ports.clock.now(), ok=False, reason=ports.redact(str(error)))
    return Deleted(at=ports.clock.now(), ok=True)
