"""A scenario as it is written: one story, its faults, and what must and must never be seen.

Durations are seconds, or text with a unit: `30s`, `5m`, `2h`, `1d`, `1h30m`. Times count from the delegation;
a history counts from its job's submit, a log from its job's start. docs/scenarios.md shows every field.

Never: a default that makes a wrong story pass; behaviour (that is `world` and `play`).
"""

from __future__ import annotations

from typing import Any, Literal, Self

from pydantic import Field, model_validator

from agent.scenarios.faults import (
    AgainStory,
    AwayStory,
    BesideStory,
    BrokenStory,
    ClockStory,
    KillStory,
    PauseStory,
    PreviewStory,
    StaleStory,
    StoreStory,
    SubmitStory,
    UpgradeStory,
)
from agent.scenarios.seen import Expect, Never
from agent.scenarios.units import Rule, Seconds, Texts
from states.observation import Capacity, Phase, Waiting
from states.orders import Orders
from states.reading import Frozen
from states.spec import Request

# --- what the cluster does ---------------------------------------------------------------------------------


class Look(Frozen):
    """What the cluster says of a job from some moment on. Short form: `running 1h`, `pending 2m`, `failed`.

    at: offset from the submit; left out, it follows when the one before is over (`for`). native: the cluster's
    own words, which go through the normaliser named by the story; everything else: fields of an observation.
    """

    phase: Phase | None = None
    at: Seconds | None = None
    lasts: Seconds | None = Field(default=None, alias="for")
    native: dict[str, Any] = {}
    words: str = ""
    reason: str = ""
    waiting: Waiting = Waiting.wait
    held: bool = False
    finishing: bool = False
    suspended: bool = False
    attempt: int = 0
    exit_code: int | None = None
    signal: int | None = None
    node: str = ""
    cause: str = ""
    replicas: int | None = None
    replicas_ready: int | None = None

    @model_validator(mode="before")
    @classmethod
    def _short(cls, data: object) -> object:
        if not isinstance(data, str):
            return data
        phase, _, lasts = data.partition(" ")
        return {"phase": phase, "for": lasts.strip()} if lasts.strip() else {"phase": phase}

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if (self.phase is None) == (not self.native):
            raise ValueError("give either `phase` or the cluster's own words in `native`")
        return self


class Curve(Frozen):
    """A number that goes from one value to another; nan_from: not a number from this step on."""

    start: float = Field(alias="from")
    to: float
    nan_from: int | None = None


class LogPart(Frozen):
    """A part of a log: lines, a counter, a repeated line, a file beside the story, or silence.

    at: offset from the job's start; left out, it follows the part before. every: between two lines.
    """

    at: Seconds | None = None
    line: str | None = None
    lines: tuple[str, ...] = ()
    steps: str | None = Field(default=None, pattern=r"^\d+\.\.\d+$")
    total: int | None = None
    repeat: str | None = None
    times: int = Field(default=1, ge=1, le=20_000)
    silence: Seconds | None = None
    file: str | None = None
    every: Seconds = 0.0
    loss: Curve | None = None
    format: str = "step {step}/{total} loss {loss:.4f}"

    @model_validator(mode="before")
    @classmethod
    def _short(cls, data: object) -> object:
        return {"line": data} if isinstance(data, str) else data

    @model_validator(mode="after")
    def _one_form(self) -> Self:
        forms = [self.line, self.lines or None, self.steps, self.repeat, self.silence, self.file]
        if sum(form is not None for form in forms) != 1:
            raise ValueError("a part of a log is exactly one of: line, lines, steps, repeat, silence, file")
        return self


class Told(Frozen):
    """One scheduling event of a job."""

    at: Seconds = 0.0
    kind: str
    message: str = ""


class File(Frozen):
    """A file below the workspace. at: offset from the submit; left out: at the job's own end."""

    path: str
    text: str = "x"
    at: Seconds | None = None

    @model_validator(mode="before")
    @classmethod
    def _short(cls, data: object) -> object:
        return {"path": data} if isinstance(data, str) else data


class JobStory(Frozen):
    """What one cluster job does. record: the exit code that its wrapper writes at the end (left out: none)."""

    history: tuple[Look, ...] = ()
    log: tuple[LogPart, ...] = ()
    events: tuple[Told, ...] = ()
    files: tuple[File, ...] = ()
    record: int | None = None
    stop_takes: Seconds = 2.0
    deaf_stops: int = 0


class Stranger(JobStory):
    """A job that is on the cluster before the story begins and was submitted by somebody else."""

    name: str
    id: str
    owner: str = "somebody-else"


class CapacityFrom(Capacity):
    """What is free from some moment on."""

    at: Seconds = 0.0


class ClusterStory(Frozen):
    """What the cluster offers and needs; left out: nothing special."""

    name: str = "scripted"
    normalise: str = ""
    capacity: tuple[CapacityFrom, ...] = ()
    name_is_unique: bool = False
    visible_within_s: Seconds = 5.0
    submit_timeout_s: Seconds = 30.0
    wrapper: bool = False
    lanes: tuple[str, ...] = ("normal", "idle")
    tells_log_time: bool = False
    needs_image: bool = False
    needs_credentials: Texts = ()
    needs_group: bool = False
    idle_preempted_every_s: Seconds | None = None
    predicts: str = "feasible"
    """What it says of a preview."""


# --- what goes wrong ---------------------------------------------------------------------------------------


class TwinStory(JobStory):
    """A second job of the run's name appears (a call that landed very late)."""

    at: Seconds


class Faults(Frozen):
    """Everything that goes wrong."""

    submit: tuple[SubmitStory, ...] = ()
    predict: tuple[PreviewStory, ...] = ()
    away: tuple[AwayStory, ...] = ()
    broken: tuple[BrokenStory, ...] = ()
    stale: tuple[StaleStory, ...] = ()
    again: tuple[AgainStory, ...] = ()
    kill: tuple[KillStory, ...] = ()
    pause: tuple[PauseStory, ...] = ()
    beside: tuple[BesideStory, ...] = ()
    upgrade: tuple[UpgradeStory, ...] = ()
    twins: tuple[TwinStory, ...] = ()
    clock: tuple[ClockStory, ...] = ()
    store: tuple[StoreStory, ...] = ()


# --- what the person does ----------------------------------------------------------------------------------


class Answer(Frozen):
    """A reply to a question, by its kind or number. When: `at`, or `after` it was asked, or `deadline`: just
    before or just after the deadline's timer is taken at that very instant. refused: words of the refusal."""

    question: str = Field(default="1")
    reply: str
    by: str = "owner"
    at: Seconds | None = None
    after: Seconds | None = None
    deadline: Literal["before", "after"] | None = None
    refused: str = ""
    run: int | None = None
    """0: the story's own run, 1 and on: those of `runs`; left out: whichever asks."""

    @model_validator(mode="after")
    def _one_time(self) -> Self:
        if sum(when is not None for when in (self.at, self.after, self.deadline)) != 1:
            raise ValueError("give exactly one of: at, after, deadline")
        return self


Deed = Literal[
    "delegate", "stop", "delete", "set_key", "write", "capacity", "list", "get", "logs", "events", "stop_job",
    "delete_job",
]  # fmt: skip


class Action(Frozen):
    """Something a person does. `{id}` and `{name}` stand for the run's id and its present attempt's name.

    stop, delete, delegate: on a run; capacity .. delete_job: single steps on the cluster. refused: words of the
    refusal that must come. tells: words that the answer must hold.
    """

    at: Seconds
    do: Deed
    job: str = "{id}"
    name: str = ""
    value: str = ""
    group: str | None = None
    lines: int = 200
    by: str = "owner"
    refused: str = ""
    tells: Texts = ()
    run: int = 0
    """Which one `{id}` and `{name}` mean."""


class Reading(Frozen):
    """What the model says at its n-th reading; failed: the reading is void, and why."""

    verdict: str = ""
    cause: str = ""
    summary: str = ""
    confidence: float = 0.9
    failed: str = ""


class LibraryStory(Frozen):
    """An entry of the library before the story begins. `{workspace}` in a purpose is the story's own."""

    purpose: str
    image: str = ""
    environment: str = ""
    proxy: str = ""
    worked: int = Field(default=1, ge=0)
    used: int = Field(default=0, ge=0)


class RunStory(JobStory):
    """A further run, delegated at a moment to the same cluster by the same person, in a workspace of its own.

    request: left out, the story's own again. then, smoke: as of the story's own run.
    """

    at: Seconds
    request: Request | None = None
    then: tuple[JobStory, ...] = ()
    smoke: tuple[JobStory, ...] = ()


class Story(Frozen):
    """One scenario. until: when to stop looking (left out: when every run has ended)."""

    title: str = Field(min_length=10, max_length=200)
    covers: tuple[Rule, ...] = Field(min_length=1)
    request: Request | None = None
    request_id: str = ""
    by: str = "owner"
    language: Literal["en", "zh"] = "en"
    policy: dict[str, float | int | bool] = {}
    cluster: ClusterStory = ClusterStory()
    orders: Orders = Orders()
    site_orders: Orders = Orders()
    keys: dict[str, str] | tuple[str, ...] = ()
    library: tuple[LibraryStory, ...] = ()
    there: tuple[Stranger, ...] = ()
    present: tuple[File, ...] = ()
    lint: bool = False
    """Whether the command and its script are looked at before the submit; `present` writes the script."""
    history: tuple[Look, ...] = ()
    log: tuple[LogPart, ...] = ()
    events: tuple[Told, ...] = ()
    files: tuple[File, ...] = ()
    record: int | None = None
    stop_takes: Seconds = 2.0
    deaf_stops: int = 0
    then: tuple[JobStory, ...] = ()
    """The second and later cluster jobs of the run (a resubmission, a twin of our own)."""
    smoke: tuple[JobStory, ...] = ()
    build: tuple[JobStory, ...] = ()
    stage: tuple[JobStory, ...] = ()
    repair: tuple[JobStory, ...] = ()
    runs: tuple[RunStory, ...] = ()
    answers: tuple[Answer, ...] = ()
    actions: tuple[Action, ...] = ()
    reader: tuple[Reading, ...] | None = None
    faults: Faults = Faults()
    until: Seconds | None = None
    lenient: bool = False
    """What never comes to pass (an answer, a twin), or is refused, is no fault: a story that was drawn by lot."""
    expect: Expect = Expect()
    never: Never = Never()

    def first(self) -> JobStory:
        """The first cluster job of the run."""
        return JobStory(
            history=self.history,
            log=self.log,
            events=self.events,
            files=self.files,
            record=self.record,
            stop_takes=self.stop_takes,
            deaf_stops=self.deaf_stops,
        )
