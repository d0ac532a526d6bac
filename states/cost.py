"""What a run costs, as far as the request tells: how long it runs, its GPU-hours, whether it is dear or uncertain.

A dear run is previewed once and smoke-tested first (RULES C13, D4); an uncertain one is only previewed. Units:
seconds, GPU-hours.

Never: a guess at a length that nobody gave; refuse a run because it is dear.
"""

from __future__ import annotations

from states.job import Job
from states.spec import Request
from states.words.wording import duration, number

USUAL_GPUS = frozenset({0, 1, 2, 4, 8, 16})
"""Figures that machines are built for; another one may fit none of them well."""


def length_s(request: Request) -> float | None:
    """The longest it can run or is expected to: the least of expectation, time limit and wall-clock stop."""
    walls = [condition.wall_s for condition in request.stop_when]
    known = [seconds for seconds in (request.expected_s, request.time_limit_s, *walls) if seconds is not None]
    return min(known, default=None)


def gpu_hours(job: Job) -> float | None:
    """GPUs of all replicas times its length; None where the length is not known, 0 without GPUs."""
    cards = job.spec.gpu * job.spec.replicas
    seconds = length_s(job.request)
    if not cards:
        return 0.0
    return None if seconds is None else cards * seconds / 3600


def dear(job: Job) -> str:
    """Why the run is expensive (policy `expensive_gpu_hours`; GPUs for an unknown time count as such); "" if not."""
    hours, seconds = gpu_hours(job), length_s(job.request)
    cards = _cards(job)
    if hours is None:
        return f"{cards} for a time that is not known"
    if hours <= job.policy.expensive_gpu_hours or seconds is None:
        return ""
    return (
        f"{cards} x {duration(seconds, job.language)} = {number(hours)} GPU-hours,"
        f" more than {number(job.policy.expensive_gpu_hours)}"
    )


def uncertain(job: Job) -> str:
    """Why the cluster may read the spec otherwise than it was meant (C13); "" for an ordinary one."""
    spec = job.spec
    reasons = (
        f"{spec.replicas} nodes" if spec.replicas > 1 else "",
        f"{spec.gpu} GPUs a node is an unusual figure" if spec.gpu not in USUAL_GPUS else "",
        "raw arguments are passed on" if spec.extra_args else "",
    )
    return "; ".join(reason for reason in reasons if reason)


def why_preview(job: Job) -> str:
    """Why the spec is previewed before it is submitted (C13); "" for a cheap and ordinary one."""
    return "; ".join(reason for reason in (dear(job), uncertain(job)) if reason)


def _cards(job: Job) -> str:
    gpu, replicas = job.spec.gpu, job.spec.replicas
    one = f"{gpu} GPU" + ("s" if gpu != 1 else "")
    return one if replicas == 1 else f"{one} x {replicas} nodes"
