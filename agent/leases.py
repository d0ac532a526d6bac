"""One holder per job: who performs its effects now. A lease is a token and an expiry in the job's own row.

Events may be taken without a lease (one transaction each); the lease guards the calls to the outside. The cluster
cannot check a fencing token, so a call is started only while the lease outlives the call's time-out
(RELIABILITY 2.7), and twins are looked for at every later look.

Never: rely on the lease for "exactly once".
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import NamedTuple

from sqlalchemy import CursorResult, bindparam, update

from agent import crash
from agent.clock import Clock, serial
from agent.database import JOBS
from agent.store import Store

LEASE_S = 240.0
"""At least four times the longest call's time-out."""


_CLAIM = (
    update(JOBS)
    .where(JOBS.c.id == bindparam("job"))
    .where((JOBS.c.lease_until.is_(None)) | (JOBS.c.lease_until <= bindparam("now")))
    .values(lease_token=bindparam("token"), lease_until=bindparam("until"))
)
_OURS = update(JOBS).where(JOBS.c.id == bindparam("job"), JOBS.c.lease_token == bindparam("token"))
_RENEW = _OURS.values(lease_until=bindparam("until"))
_FREE = update(JOBS).where(JOBS.c.lease_until.is_not(None)).values(lease_token="", lease_until=None)
_RELEASE = _OURS.values(lease_token="", lease_until=None)


class Lease(NamedTuple):
    """A held lease."""

    job_id: str
    token: str
    until: datetime

    def outlives(self, now: datetime, seconds: float) -> bool:
        """Whether a call that may take this long can still be started."""
        return self.until - now > timedelta(seconds=seconds)


def claim(store: Store, clock: Clock, job_id: str, *, lease_s: float = LEASE_S) -> Lease | None:
    """Take the job's lease if it is free or expired; None when somebody else holds it."""
    now = clock.now()
    lease = Lease(job_id, serial(12), now + timedelta(seconds=lease_s))
    with store.write() as connection:
        taken: CursorResult[tuple[()]] = connection.execute(
            _CLAIM, {"job": job_id, "now": now, "token": lease.token, "until": lease.until}
        )
        if taken.rowcount != 1:
            return None
    crash.point("lease-claimed")
    return lease


def renew(store: Store, clock: Clock, lease: Lease, *, lease_s: float = LEASE_S) -> Lease | None:
    """Prolong it; None when it was lost (expired and taken by somebody else)."""
    until = clock.now() + timedelta(seconds=lease_s)
    with store.write() as connection:
        kept: CursorResult[tuple[()]] = connection.execute(
            _RENEW, {"job": lease.job_id, "token": lease.token, "until": until}
        )
        return lease._replace(until=until) if kept.rowcount == 1 else None


def release(store: Store, lease: Lease) -> None:
    """Give it back, if it is still ours."""
    with store.write() as connection:
        connection.execute(_RELEASE, {"job": lease.job_id, "token": lease.token})


def free_all(store: Store, clock: Clock) -> None:
    """Free every lease and every wave's claim: for the one process that carries runs here, after a kill.

    The caller knows that nobody else is at work (a lock of the operating system, not a time-out).
    """
    with store.write() as connection:
        connection.execute(_FREE)
    store.free_claims(clock.now())
