"""How large the run is: a figure that was fixed, one to be chosen within a range, or one sized from the task.

A fixed figure is hard and never shrunk (RULES C3). A range, or `gpu: auto`, is ours to choose: the largest that fits
now, down to the least that the task needs; below that a person is asked, and by default it queues and waits (C4). CPU
and memory that nobody gave keep their proportion. GPUs are per replica; memory is MiB (C9).

Never: touch the command; shrink a figure that a person gave, or below what the command itself starts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from states.job import Check, Job
from states.lane import may_go_idle, preemption
from states.lint.own_size import Said
from states.observation import Capacity
from states.spec import Spec, in_proportion
from states.words.wording import mib

HEADROOM = 1.25
"""Memory asked for, over what a program is told to take: its runtime needs some of its own."""


class Bounds(NamedTuple):
    """The least and the most GPUs of a replica. why: the words for it. ours: the choice is ours within them (C4)."""

    least: int
    most: int
    why: str
    ours: bool


def bounds(job: Job, said: Said) -> Bounds:
    """What the figure may be; said: what the command says of itself. The owner's own answer goes before all."""
    request, answered = job.request, reduced_to(job)
    if answered is not None:
        return Bounds(answered, answered, "as its owner answered", False)
    if request.gpu_free:
        return _free(job, said)
    if request.gpu_min is None:
        fixed = "fixed by the request" if request.gpu else "a CPU job"
        return Bounds(request.gpu, request.gpu, fixed, False)
    if said.gpu is not None and request.gpu_min <= said.gpu <= request.gpu:
        return Bounds(
            said.gpu, said.gpu, f"within {request.gpu_min} to {request.gpu}, since {said.gpu_why}", True
        )
    return Bounds(request.gpu_min, request.gpu, f"{request.gpu_min} to {request.gpu} will do", True)


def _free(job: Job, said: Said) -> Bounds:
    least = job.request.gpu_min or 0
    if said.gpu is not None:
        return Bounds(
            max(said.gpu, least), max(said.gpu, least), f"sized from the task: {said.gpu_why}", True
        )
    if said.uses_gpus or least:
        figure = max(1, least)
        why = "the least that was given" if least else "the command may use a GPU and does not say how many"
        return Bounds(figure, figure, f"sized from the task: {why}", True)
    return Bounds(0, 0, "sized from the task: nothing in the command uses a GPU", True)


def reduced_to(job: Job) -> int | None:
    """The figure that the owner gave to the capacity question, the last time it was asked."""
    given = [q for q in job.questions if q.kind == "capacity" and q.chosen == "reduce" and q.value]
    return int(given[-1].value) if given else None


def size_row(job: Job, said: Said, *, blind: str = "") -> Check:
    """The preflight row `size`: what the figure is and from where. found: what it settles in the spec.

    blind: why scripts could not be read, said where the choice rests on them.
    """
    found_bounds = bounds(job, said)
    replicas = said.replicas if job.request.gpu_free and job.request.replicas == 1 else None
    memory_mib = _hinted_mib(job, said)
    spec = job.spec.model_copy(update={"replicas": replicas or job.request.replicas})
    facts = {"least": str(found_bounds.least), "most": str(found_bounds.most), "why": found_bounds.why}
    if memory_mib:
        facts["memory_mib"] = str(memory_mib)
    wanted = sized(job, found_bounds.most, memory_mib=memory_mib) | {"replicas": spec.replicas}
    words = [f"{_gpus(found_bounds)}: {found_bounds.why}", _total(spec, found_bounds.most)]
    if memory_mib and wanted["memory_mib"] == memory_mib:
        words.append(
            f"{mib(memory_mib)} of memory, since the command takes up to {mib(said.memory_mib or 0)}"
        )
    if blind and found_bounds.ours and said.gpu is None:
        words.append(blind)
    return Check(
        name="size",
        level="fine",
        evidence="; ".join(word for word in words if word),
        rule="C4" if found_bounds.ours else "C3 C9",
        found={field: value for field, value in wanted.items() if getattr(job.spec, field) != value},
        facts=facts,
    )


def sized(job: Job, gpu: int, *, memory_mib: int = 0) -> dict[str, Any]:
    """The spec's figures with so many GPUs: CPU and memory in proportion where nobody gave them."""
    cpu, memory = in_proportion(job.request, gpu)
    return {"gpu": gpu, "cpu": cpu, "memory_mib": max(memory, memory_mib)}


def in_step(job: Job, values: Mapping[str, Any]) -> dict[str, Any]:
    """Values that were answered; with a number of GPUs, CPU and memory follow it where nobody gave them."""
    if "gpu" not in values:
        return dict(values)
    return {**values, **sized(job, int(values["gpu"]), memory_mib=int(_fact(job, "memory_mib") or 0))}


def capacity_row(job: Job, free: Capacity) -> Check:
    """The preflight row `capacity`: the largest allowed figure that fits now, else a question (C2, C3, C4)."""
    least, most, ours = _settled_bounds(job)
    hinted = int(_fact(job, "memory_mib") or 0)
    for gpu in range(most, least - 1, -1):
        figures = sized(job, gpu, memory_mib=hinted)
        if not lacking(job.spec.model_copy(update=figures), free):
            return _fits(job, figures, most, ours and least < most, free)
    figures = sized(job, least, memory_mib=hinted) if ours else {}
    short = "; ".join(lacking(job.spec.model_copy(update=figures), free))
    if ours and least != most:
        short = f"not even the least of {least} to {most} GPUs fits: {short}"
    total = free.total_gpu
    if total is not None and least * job.spec.replicas > total:
        short += f"; there are {total} in all, so waiting alone will not do"
    found = {field: value for field, value in figures.items() if getattr(job.spec, field) != value}
    if may_go_idle(job):
        said = f"{short}: it goes to the idle lane instead, where {preemption(job).why}"
        return Check(name="capacity", level="note", evidence=said, rule="C8", found={**found, "lane": "idle"})
    return Check(
        name="capacity",
        level="ask",
        evidence=f"{short}.",
        rule="C4" if ours else "C3",
        question="capacity",
        found=found,
    )


def _fits(job: Job, figures: dict[str, Any], most: int, chosen: bool, free: Capacity) -> Check:
    """chosen: there was a choice, so the report tells it."""
    said = f"fits now ({free_words(free)})"
    if figures["gpu"] < most:
        said = f"{figures['gpu']} of up to {most} GPUs per replica: the largest figure that {said}"
    found = {field: value for field, value in figures.items() if chosen and getattr(job.spec, field) != value}
    return Check(name="capacity", level="fine", evidence=said, rule="C4" if chosen else "C2", found=found)


def _settled_bounds(job: Job) -> tuple[int, int, bool]:
    """As the row `size` says; without it, as the request alone does."""
    row = job.checks.get("size")
    if reduced_to(job) is not None or row is None or "most" not in row.facts:
        alone = bounds(job, Said())
        return alone.least, alone.most, alone.ours
    return int(row.facts["least"]), int(row.facts["most"]), row.rule == "C4"


def _fact(job: Job, name: str) -> str:
    row = job.checks.get("size")
    return row.facts.get(name, "") if row is not None else ""


def lacking(spec: Spec, free: Capacity) -> list[str]:
    """What is asked beyond what is free now, in words; empty when it fits, or the cluster tells no figures."""
    wants: tuple[tuple[str, float, float | None], ...] = (
        ("GPUs", spec.gpu * spec.replicas, free.free_gpu),
        ("CPU cores", spec.cpu * spec.replicas, free.free_cpu),
        ("MiB of memory", spec.memory_mib * spec.replicas, free.free_memory_mib),
    )
    short = [
        f"{want:g} {what} asked, {have:g} free"
        for what, want, have in wants
        if have is not None and want > have
    ]
    if free.block_gpu is not None and spec.gpu > free.block_gpu and not short:
        short.append(f"{spec.gpu} GPUs asked on one node, {free.block_gpu} free on the best one")
    return short


def free_words(free: Capacity) -> str:
    """What is free, for a row of the report."""
    parts = [
        f"{value:g} {what} free"
        for what, value in (("GPUs", free.free_gpu), ("CPU cores", free.free_cpu))
        if value is not None
    ]
    return ", ".join(parts) or "the cluster tells no figures"


def _hinted_mib(job: Job, said: Said) -> int:
    """Memory that the command is told to take, with headroom; 0 where a figure was given, or none is said."""
    if job.request.memory_mib is not None or said.memory_mib is None:
        return 0
    return round(said.memory_mib * HEADROOM)


def _gpus(found: Bounds) -> str:
    span = f"{found.most}" if found.least == found.most else f"{found.least} to {found.most}"
    return f"{span} GPU" + ("" if found.most == 1 else "s") + " per replica"


def _total(spec: Spec, gpu: int) -> str:
    return (
        f"{gpu} x {spec.replicas} replicas = {gpu * spec.replicas} GPUs" if spec.replicas > 1 and gpu else ""
    )
