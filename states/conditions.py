"""The request's own stop conditions (RULES E8), checked against what a look at the log showed.

Never: a stop for a reason that the request did not state.
"""

from __future__ import annotations

from states.events import LogsRead
from states.job import Job
from states.spec import StopCondition


def met_condition(job: Job, event: LogsRead) -> StopCondition | None:
    """The first stated condition that this look meets, or None."""
    for condition in job.request.stop_when:
        if _is_met(condition, job, event):
            return condition
    return None


def texts_to_look_for(job: Job) -> tuple[str, ...]:
    """The texts that a log read must look for on behalf of the conditions."""
    return tuple(c.line for c in job.request.stop_when if c.line is not None)


def _is_met(condition: StopCondition, job: Job, event: LogsRead) -> bool:
    if condition.step is not None:
        main = job.track.main
        return main is not None and main.value >= condition.step
    if condition.line is not None:
        return any(condition.line in quote.text for quote in event.digest.found)
    if condition.metric is not None:
        return _crossed(condition, _metric(condition.metric, job, event))
    return False


def _metric(name: str, job: Job, event: LogsRead) -> float | None:
    progress = event.digest.progress
    if name in progress.metrics:
        return progress.metrics[name]
    return progress.loss if name == "loss" else None


def _crossed(condition: StopCondition, value: float | None) -> bool:
    if value is None or value != value:
        return False
    if condition.above is not None:
        return value > condition.above
    return condition.below is not None and value < condition.below
