"""Submit once, and look by name when the answer was lost (DESIGN 4).

Never: a second call after an unclear answer; "not there" said when the cluster could not be asked.
"""

from __future__ import annotations

from agent import crash
from agent.asked import AskedEffect
from agent.clusters.base import ClusterError, NotThere, Refused, Submission
from agent.leases import Lease
from agent.ports import Ports
from states.effects import FindByName, Submit
from states.events import AnyEvent, LookedUp, SubmitRejected, Submitted, SubmitUnclear
from states.job import Job


def submit(effect: Submit, asked: AskedEffect, job: Job, ports: Ports, lease: Lease) -> AnyEvent:
    """One call; the answer has three values: Submitted, SubmitRejected, SubmitUnclear."""
    cluster = ports.cluster_of(job)
    if not lease.outlives(ports.clock.now(), cluster.capabilities.submit_timeout_s):
        reason = "this process stood still, and its lease was too short for a submit; nothing was sent by it"
        return SubmitUnclear(at=ports.clock.now(), name=effect.name, reason=reason)
    submission = Submission(
        name=effect.name, fingerprint=effect.fingerprint, owner=effect.owner, spec=effect.spec
    )
    crash.point("submit-before-call")
    try:
        answer = cluster.submit(submission)
    except Refused as error:
        return SubmitRejected(
            at=ports.clock.now(),
            name=effect.name,
            reason=ports.redact(str(error)),
            cause=error.cause,
            retryable=error.retryable,
        )
    except ClusterError as error:
        return SubmitUnclear(at=ports.clock.now(), name=effect.name, reason=ports.redact(str(error)))
    crash.point("submit-after-call")
    return Submitted(
        at=ports.clock.now(),
        name=effect.name,
        cluster_job_id=answer.cluster_job_id,
        note=ports.redact(answer.note),
    )


def find_by_name(effect: FindByName, asked: AskedEffect, job: Job, ports: Ports, lease: Lease) -> LookedUp:
    """Three-valued: matches, provably none, or could not ask."""
    try:
        matches = ports.cluster_of(job).find(effect.name, fingerprint=effect.fingerprint, owner=effect.owner)
    except NotThere:
        matches = ()
    except ClusterError as error:
        return LookedUp(
            at=ports.clock.now(), name=effect.name, reachable=False, reason=ports.redact(str(error))
        )
    return LookedUp(at=ports.clock.now(), name=effect.name, reachable=True, matches=tuple(matches))
