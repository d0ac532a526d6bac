"""What is to be run: the Request as the person gave it, and the Spec as it is sent to the cluster.

A request is a YAML file or flags; unknown fields are refused. What it leaves out is settled in preflight
(library, defaults, questions). Figures are per replica; memory is MiB; durations are seconds.

Never: hold a credential (RULES B4); fill in an environment-specific value that nobody gave (C5).
"""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from states.assets import Asset, PackageSet
from states.goals import StopCondition
from states.reading import Frozen

Name = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9-]{0,39}$")]
Lane = Literal["normal", "idle"]
Figure = Literal["cpu", "memory_mib"]
FIGURES: tuple[Figure, ...] = ("cpu", "memory_mib")


class Existing(Frozen):
    """A job that is on the cluster already and is to be watched to its end (RULES A10)."""

    name: str = ""
    cluster_job_id: str = ""
    may_stop: bool = False
    """The person asked that the clear cases be stopped without asking."""


class Request(Frozen):
    """What the person asked for, word for word. Everything but the command may be left out.

    command: argv, or one string that the job runs as `bash -c`. gpu/cpu/memory_mib: per replica and hard when
    given (C3); gpu_min makes the figure the agent's to choose between gpu_min and gpu, `gpu: auto` sizes it from
    the task (C4). lane: auto or cheap goes by what a restart costs (C8). expected_s: how long it will run.
    outputs: paths or globs below the workspace that must exist at the end. cadence_s: seconds between milestones
    that the person expects; steps_total: how many steps there are, where the log does not tell.
    checkpoint_every_s: what a restart costs (C8). smoke: argv or string of a cheap check that must pass first (D4).
    stop_when: goals that end the run when they are met (E8). policy: numbers of `policy.py` for this run alone.
    """

    command: tuple[str, ...] = ()
    name: Name | None = None
    purpose: str = ""
    cluster: str = ""
    image: str | None = None
    environment: str | None = None
    proxy: str | None = None
    gpu: int = Field(default=0, ge=0)
    gpu_free: bool = False
    """Written `gpu: auto`: nobody gave a figure."""
    gpu_min: int | None = Field(default=None, ge=0)
    cpu: float | None = Field(default=None, ge=0)
    memory_mib: int | None = Field(default=None, ge=0)
    """0, as for `cpu`: left to the cluster's own default, where it has one (a batch script that gives no figure)."""
    replicas: int = Field(default=1, ge=1)
    lane: Literal["normal", "idle", "auto", "cheap"] | None = None
    priority: int | None = Field(default=None, ge=1, le=9)
    group: str | None = None
    mounts: tuple[str, ...] = ()
    env: dict[str, str] = Field(default_factory=dict)
    extra_args: tuple[str, ...] = ()
    workspace: str | None = None
    outputs: tuple[str, ...] = ()
    cadence_s: float | None = Field(default=None, gt=0)
    steps_total: float | None = Field(default=None, gt=0)
    checkpoint_every_s: float | None = Field(default=None, gt=0)
    time_limit_s: float | None = Field(default=None, gt=0)
    expected_s: float | None = Field(default=None, gt=0)
    stop_when: tuple[StopCondition, ...] = ()
    smoke: tuple[str, ...] = ()
    assets: tuple[Asset, ...] = ()
    """What it reads from outside: paths, mounts, hub names, URLs; in place before the submit (D1)."""
    packages: PackageSet | None = None
    """A staged package set, checked as a whole (D2)."""
    max_restarts: int = Field(default=3, ge=0)
    existing: Existing | None = None
    insist: bool = False
    """Run it on the cluster although it looks like a light, quick step (C1)."""
    policy: dict[str, float | int | bool | str] = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _strings_become_argv(cls, data: object) -> object:
        """A command given as one string is what people write; in the job it is run by bash."""
        if not isinstance(data, dict):
            return data
        shaped = dict(data)
        if shaped.get("gpu") in ("auto", "free"):
            del shaped["gpu"]
            shaped["gpu_free"] = True
        for field in ("command", "smoke"):
            if isinstance(shaped.get(field), str):
                shaped[field] = ("bash", "-c", shaped[field])
        for field in ("mounts", "outputs", "extra_args", "assets"):
            if isinstance(shaped.get(field), str):
                shaped[field] = (shaped[field],)
        return shaped

    @model_validator(mode="after")
    def _has_work(self) -> Self:
        if not self.command and self.existing is None:
            raise ValueError(
                "a request needs a command (or `existing`, to watch a job that is already there)"
            )
        if self.gpu_min is not None and self.gpu_min > self.gpu and not self.gpu_free:
            raise ValueError("gpu_min is above gpu")
        return self


class Spec(Frozen):
    """What is sent: every value settled. Two specs that differ in anything that matters have different
    fingerprints (`naming.fingerprint`). Shapes and units as in Request."""

    command: tuple[str, ...] = ()
    image: str = ""
    environment: str = ""
    proxy: str = ""
    gpu: int = 0
    cpu: float = 1.0
    memory_mib: int = 1024
    replicas: int = 1
    lane: Lane = "normal"
    priority: int = 1
    group: str = ""
    mounts: tuple[str, ...] = ()
    env: dict[str, str] = Field(default_factory=dict)
    extra_args: tuple[str, ...] = ()
    workspace: str = ""
    time_limit_s: float | None = None
    exclude_nodes: tuple[str, ...] = ()
    stated: tuple[Figure, ...] = ()
    """The figures that the request itself gave; of the others a batch script's own lines may say more."""


def in_proportion(request: Request, gpu: int) -> tuple[float, int]:
    """CPU cores and MiB of a replica with so many GPUs: as given, else 8 and 32 GiB a GPU, 1 and 1 GiB without."""
    cpu = (8.0 * gpu or 1.0) if request.cpu is None else request.cpu
    return cpu, (32_768 * gpu or 1024) if request.memory_mib is None else request.memory_mib


def draft(request: Request, *, workspace: str) -> Spec:
    """The spec as far as the request alone settles it; preflight fills in the rest (a figure left free too: C4)."""
    gpu = max(1, request.gpu_min or 1) if request.gpu_free else request.gpu
    cpu, memory_mib = in_proportion(request, gpu)
    return Spec(
        command=request.command,
        image=request.image or "",
        environment=request.environment or "",
        proxy=request.proxy or "",
        gpu=gpu,
        cpu=cpu,
        memory_mib=memory_mib,
        replicas=request.replicas,
        lane="idle" if request.lane == "idle" else "normal",
        priority=request.priority or 1,
        group=request.group or "",
        mounts=request.mounts,
        env=request.env,
        extra_args=request.extra_args,
        workspace=request.workspace or workspace,
        time_limit_s=request.time_limit_s,
        stated=tuple(figure for figure in FIGURES if getattr(request, figure) is not None),
    )
