"""One look at objects as they are, judged: what tests of the judgement call.

Never: add to what the objects say.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from agent.clusters.kubernetes_states import normalise
from states.observation import Observation
from tests.clusters.kubernetes.objects import Object, told

NOW = datetime(2031, 2, 3, 6, tzinfo=UTC)
BACKOFF = told("Failed", "BackoffLimitExceeded", "limit reached")
PREEMPTED = told("DisruptionTarget", "PreemptionByScheduler", "making room")


def seen(job_: Object | None, *pods: Object, **more: Any) -> Observation:
    fields = normalise({"job": job_, "pods": list(pods), **more})
    return Observation(taken_at=NOW, **fields)
