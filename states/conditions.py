"""Which of a run's goals is met (RULES E8): judged by what a look showed, or by how long the run has been running.

The goals are the request's own, and those of standing orders where they apply. A plateau is counted in steps of the
main counter at which the metric was really printed; what it remembers is folded by `plateaus`.

Never: a stop for a reason that neither the request nor a standing order states; time that the job did not run.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from states.events import LogsRead
from states.goals import StopCondition, seen_from_here
from states.job import Attempt, Job
from states.reading import Best, Point, Track


class Goal(NamedTuple):
    """A condition and whose it is: "" for the request's own, else the standing order's words."""

    condition: StopCondition
    by_order: str = ""


def goals_of(job: Job) -> tuple[Goal, ...]:
    """Every condition of a run: its request's own first, then those of standing orders.

    A standing order never ends a job that was only handed over to be watched (A10), and its budget gives way to
    one that the request states itself.
    """
    own = tuple(Goal(condition) for condition in job.request.stop_when)
    if not job.may_stop_alone:
        return own
    stated = {name for name in ("wall_s", "gpu_hours") if any(getattr(g.condition, name) for g in own)}
    return own + tuple(
        Goal(condition, who)
        for condition, who in job.orders.stop_when(gpu=job.spec.gpu)
        if not any(getattr(condition, name) for name in stated)
    )


def met_goal(job: Job, event: LogsRead) -> Goal | None:
    """The first goal that this look meets, or None."""
    return next((goal for goal in goals_of(job) if _is_met(goal.condition, job, event)), None)


def spent_goal(job: Job, at: datetime) -> Goal | None:
    """The first budget that is used up at this moment, or None."""
    ends = ((goal, _ends_at(job, goal.condition)) for goal in goals_of(job))
    return next((goal for goal, end in ends if end is not None and end <= at), None)


def budget_ends_at(job: Job) -> datetime | None:
    """When the first budget of time or GPU-hours is used up if the present attempt runs on."""
    ends = [_ends_at(job, goal.condition) for goal in goals_of(job)]
    return min((end for end in ends if end is not None), default=None)


def texts_to_look_for(job: Job) -> tuple[str, ...]:
    """The texts that a log read must look for on behalf of the goals."""
    return tuple(goal.condition.line for goal in goals_of(job) if goal.condition.line is not None)


def files_to_look_for(job: Job) -> dict[str, str]:
    """{the file as the goal names it: the path to look at}, for a look to check."""
    found: dict[str, str] = {}
    for goal in goals_of(job):
        file = goal.condition.file
        if file is not None:
            path = seen_from_here(file, workspace=job.spec.workspace, mounts=job.spec.mounts)
            found |= {file: path} if path is not None else {}
    return found


def metrics_to_look_for(job: Job) -> tuple[str, ...]:
    """The names of the metrics whose values a log read must bring."""
    names = (goal.condition.metric for goal in goals_of(job))
    return tuple(dict.fromkeys(name for name in names if name is not None))


def plateaus(job: Job, track: Track, event: LogsRead) -> dict[str, Best]:
    """What the plateau goals remember after this look; track: with the look in it, for the main counter."""
    bests = dict(track.bests)
    for goal in goals_of(job):
        condition = goal.condition
        if condition.metric is None or condition.plateau_steps is None or track.main is None:
            continue
        best = _folded(bests.get(condition.key), _points(condition.metric, event), condition)
        if best is not None:
            bests[condition.key] = best
    return bests


def _folded(best: Best | None, points: Sequence[Point], condition: StopCondition) -> Best | None:
    """The memory after a look. Looks overlap, so only what lies behind the last step known is new; a counter that
    fell back (a restart) begins the count anew, and the best value stays."""
    fresh = [point for point in _since_the_last_fall(points) if math.isfinite(point.value)]
    if best is not None and fresh and fresh[-1].step < best.at_step:
        best = best.model_copy(update={"step": fresh[0].step, "at_step": fresh[0].step})
    for point in fresh:
        if best is None or point.step > best.at_step:
            best = _after(best, point, condition)
    return best


def _since_the_last_fall(points: Sequence[Point]) -> Sequence[Point]:
    falls = [place for place in range(1, len(points)) if points[place].step < points[place - 1].step]
    return points[falls[-1] :] if falls else points


def _after(best: Best | None, point: Point, condition: StopCondition) -> Best:
    if best is None:
        return Best(value=point.value, step=point.step, at_step=point.step)
    gained = best.value - point.value if condition.gain == "lower" else point.value - best.value
    if gained > condition.min_delta:
        return Best(value=point.value, step=point.step, at_step=point.step)
    return best.model_copy(update={"at_step": point.step})


def _is_met(condition: StopCondition, job: Job, event: LogsRead) -> bool:
    if condition.step is not None:
        main = job.track.main
        return event.readable and main is not None and main.value >= condition.step
    if condition.line is not None:
        return any(condition.line in quote.text for quote in event.digest.found)
    if condition.file is not None:
        return condition.file in event.there
    if condition.plateau_steps is not None:
        best = job.track.bests.get(condition.key)
        return event.readable and best is not None and best.at_step - best.step >= condition.plateau_steps
    if condition.metric is not None:
        return _crossed(condition, _last(condition.metric, event))
    return False


def _points(name: str, event: LogsRead) -> Sequence[Point]:
    """The values of a metric in this look, oldest first, at the steps they were printed at."""
    found = event.series.get(name, ())
    return found or (event.digest.progress.losses if name == "loss" else ())


def _last(name: str, event: LogsRead) -> float | None:
    progress = event.digest.progress
    known: Mapping[str, float] = progress.metrics
    if name in known:
        return known[name]
    if name == "loss" and progress.loss is not None:
        return progress.loss
    points = event.series.get(name, ())
    return points[-1].value if points else None


def _crossed(condition: StopCondition, value: float | None) -> bool:
    if value is None or value != value:
        return False
    if condition.above is not None:
        return value > condition.above
    return condition.below is not None and value < condition.below


# --- budgets -----------------------------------------------------------------------------------------------


def ran_before_s(job: Job) -> float:
    """Seconds that the run has been running before its present start: earlier attempts, and what was requeued."""
    return sum(map(_ran_s, job.attempts[:-1])) + (job.attempts[-1].ran_before_s if job.attempts else 0.0)


def ran_so_far_s(job: Job, at: datetime) -> float:
    """Seconds that the present attempt has been running up to `at`, requeues included."""
    return _ran_s(job.attempt, at)


def _ran_s(attempt: Attempt, at: datetime | None = None) -> float:
    end = at or attempt.ended_at
    if attempt.started_at is None or end is None:
        return attempt.ran_before_s
    return attempt.ran_before_s + max((end - attempt.started_at).total_seconds(), 0.0)


def _ends_at(job: Job, condition: StopCondition) -> datetime | None:
    started = job.attempts[-1].started_at if job.attempts else None
    limit_s = condition.wall_s
    gpus = job.spec.gpu * job.spec.replicas
    if condition.gpu_hours is not None and gpus:
        limit_s = condition.gpu_hours * 3600.0 / gpus
    if limit_s is None or started is None:
        return None
    return started + timedelta(seconds=max(limit_s - ran_before_s(job), 0.0))
