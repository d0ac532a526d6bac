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
    ref = _ref(effect, job)
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
    ref = _ref(effect, job)
    try:
        ports.cluster_of(job).delete(ref)
    except NotThere:
        return Deleted(at=ports.clock.now(), ok=True, reason="there was no record any more")
    except ClusterError as error:
        return Deleted(at=ports.clock.now(), ok=False, reason=ports.redact(str(error)))
    return Deleted(at=ports.clock.now(), ok=True)


def _ref(effect: StopJob | DeleteJob, job: Job) -> Ref:
    """The job as its own attempt submitted it: an earlier one may be meant, and ids are told apart by their time."""
    intents = [attempt.intent_at for attempt in job.attempts if attempt.name == effect.name]
    return Ref(effect.name, effect.cluster_job_id, intents[-1] if intents else None)
