"""The few values of a job that lists show, kept beside the snapshot so that a list loads no snapshot.

Never: wording; the surfaces word it.
"""

from __future__ import annotations

from math import isfinite
from typing import Any

from states.job import Job


def board(job: Job) -> dict[str, Any]:
    """JSON-able: name, doing, phase, reason, lane, gpu, replicas, step, total, unit, eta_s, loss, milestone_at,
    questions (open ids), verdict, outcome, attempt. Empty values are left out."""
    seen = job.attempt.seen if job.attempts else None
    main = job.track.main
    loss = job.track.losses[-1].value if job.track.losses else None
    values: dict[str, Any] = {
        "name": job.request.name,
        "purpose": job.request.purpose,
        "doing": str(job.doing),
        "phase": str(seen.phase) if seen else None,
        "reason": seen.reason if seen else None,
        "lane": job.spec.lane,
        "gpu": job.spec.gpu,
        "replicas": job.spec.replicas,
        "step": _finite(main.value) if main else None,
        "total": _finite(main.total) if main else None,
        "unit": main.unit or main.name if main else None,
        "eta_s": job.track.eta_s,
        "loss": _finite(loss),
        "milestone_at": job.track.milestone_at.isoformat() if job.track.milestone_at else None,
        "questions": [question.id for question in job.open_questions],
        "verdict": job.verdict.name if job.verdict else None,
        "outcome": job.outcome,
        "attempt": job.attempts[-1].number if job.attempts else None,
        "parent": job.parent,
    }
    return {key: value for key, value in values.items() if value not in (None, "", [])}


def _finite(value: float | None) -> float | None:
    """JSON has no word for the others, and no list shows them."""
    return value if value is not None and isfinite(value) else None
