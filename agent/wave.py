"""One wave: all jobs whose timer has come, one status call per cluster, and full turns only for those with news.

Quiet jobs (nothing changed, nothing due) cost a share of that call and of one UPDATE; no journal row, no turn.

Never: one status call per job; a conclusion from a cluster that could not be asked.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from agent import crash
from agent.clusters.base import Cluster, ClusterError, Ref, Unreachable
from agent.due import Due
from agent.ports import Ports
from agent.store import Before
from states.events import AnyEvent, ClusterUnreachable, Observed, WakeDue
from states.naming import has_forerunners
from states.observation import ENDED, Observation, Phase, beside
from states.quiet import is_quiet

log = logging.getLogger(__name__)

CLAIM_S = 120.0
"""How long a wave holds its jobs; longer than any status call."""

FORGOTTEN_S = 3600.0
"""An earlier attempt whose record is gone so long after its submit is not asked about any more: some clusters need a
further call for each name that they do not list."""

LEAVE_ALONE_S_MAX = 1800.0
"""The longest that a cluster's own wish for a pause is heeded."""


def wave(ports: Ports) -> list[str]:
    """Look at everything that is due. Returns the ids of jobs that took an event (they may have effects now)."""
    due = ports.store.claim_due(ports.clock.now(), claim_s=CLAIM_S)
    moved = [job.id for job in due if _take_timer(job, ports)]
    for cluster_name, jobs in _by_cluster(job for job in due if job.watched).items():
        moved += _look(cluster_name, jobs, ports)
    return list(dict.fromkeys(moved))


def _take_timer(job: Due, ports: Ports) -> bool:
    """A deadline has come, or the job has no look to fall back on: its timer is an event."""
    now = ports.clock.now()
    if job.watched and (job.deadline_at is None or job.deadline_at > now):
        return False
    return _apply(job.id, WakeDue(at=now), ports)


def _look(cluster_name: str, jobs: list[Due], ports: Ports) -> list[str]:
    cluster = ports.clusters.get(cluster_name)
    if cluster is None:
        return _away(jobs, f"the cluster {cluster_name!r} is not configured here", ports)
    try:
        seen = _observe(cluster, jobs, ports)
    except ClusterError as error:
        moved = _away(jobs, ports.redact(str(error)), ports)
        _leave_alone(jobs, error, ports)
        return moved
    crash.point("wave-observed")
    now = ports.clock.now()
    quiet = [job.id for job in jobs if not job.away and _is_quiet(job, seen, now)]
    ports.store.rest(quiet, now, seen=True)
    resting = set(quiet)
    moved = []
    for job in jobs:
        if job.id not in resting and job.name in seen:
            event = Observed(at=now, name=job.name, observation=_redacted(seen[job.name], ports))
            if _apply(job.id, event, ports):
                moved.append(job.id)
    return moved


def _observe(cluster: Cluster, jobs: list[Due], ports: Ports) -> Mapping[str, Observation]:
    """One call, for what may be left of earlier attempts too: a node that was cut off comes back with its job."""
    earlier = {job.name: ports.store.at_large(job.id, job.name) for job in jobs if has_forerunners(job.name)}
    own = [Ref(job.name, job.cluster_job_id, job.submitted_at) for job in jobs]
    seen = cluster.observe([*own, *(Ref(*one[:3]) for before in earlier.values() for one in before)])
    found, now = dict(seen), ports.clock.now()
    for name, before in earlier.items():
        looks = [(one, seen[one.name]) for one in before if one.name in seen]
        if name in seen:
            told = [(one.name, one.cluster_job_id, look) for one, look in looks]
            found[name] = beside(seen[name], told)
        ports.store.came_to_rest(name, [one for one, look in looks if _is_over(one, look, now)])
    return found


def _is_over(one: Before, look: Observation, now: datetime) -> bool:
    """Nothing can come back: its end is on record, or its record went, and not because it is too new to be shown."""
    forgotten = look.phase is Phase.gone and (now - one.submitted_at).total_seconds() > FORGOTTEN_S
    return one.sends == 1 and (look.phase in ENDED or forgotten)


def _is_quiet(job: Due, seen: Mapping[str, Observation], now: datetime) -> bool:
    return job.name in seen and is_quiet(job.story, job.deadline_at, seen[job.name], now)


def _away(jobs: list[Due], reason: str, ports: Ports) -> list[str]:
    """No answer: said once, then only the timers move until something falls due."""
    log.warning("no answer about %d jobs: %s", len(jobs), reason)
    now = ports.clock.now()
    resting = [job.id for job in jobs if job.away and (job.deadline_at is None or job.deadline_at > now)]
    ports.store.rest(resting, now, seen=False)
    others = [job.id for job in jobs if job.id not in set(resting)]
    return [job_id for job_id in others if _apply(job_id, ClusterUnreachable(at=now, reason=reason), ports)]


def _leave_alone(jobs: list[Due], error: ClusterError, ports: Ports) -> None:
    """A control plane that says how long it wants to be left alone is believed."""
    if isinstance(error, Unreachable) and error.retry_after_s:
        pause_s = min(error.retry_after_s, LEAVE_ALONE_S_MAX)
        until = ports.clock.now() + timedelta(seconds=pause_s)
        ports.store.leave_alone([job.id for job in jobs], until)


def _apply(job_id: str, event: AnyEvent, ports: Ports) -> bool:
    """Take the event; True when the job was touched. One job's trouble must not stop the wave."""
    try:
        applied = ports.store.apply(job_id, event)
    except Exception:
        log.exception("%s could not take %s", job_id, event.kind)
        return False
    if applied.outcome != "ignored":
        ports.announce(job_id)
    return applied.effects > 0 or applied.outcome == "moved"


def _redacted(seen: Observation, ports: Ports) -> Observation:
    return seen.model_copy(
        update={"native": ports.redact(seen.native)[:400], "reason": ports.redact(seen.reason)[:400]}
    )


def _by_cluster(jobs: Iterable[Due]) -> dict[str, list[Due]]:
    grouped: dict[str, list[Due]] = {}
    for job in jobs:
        grouped.setdefault(job.cluster, []).append(job)
    return grouped
