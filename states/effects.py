"""Everything a step may ask for: a closed union of imperatives, each with the way it may be redone.

The class is asked in the same transaction as the event that led to it, performed after it, and its result comes
back as an event. After a crash, `redo` alone decides what happens to an effect that was begun and not finished.

Never: a decision (what to do next is the table's), a class without a `redo`.
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, TypeAdapter

from states.observation import Artifact
from states.questions import Question
from states.reading import Frozen
from states.spec import Request, Spec


class Redo(StrEnum):
    """How an effect may be repeated (RELIABILITY 3)."""

    free = "free"
    """Reading: repeat as often as you like."""
    level = "level"
    """Repeat until the world is so (stop)."""
    keyed = "keyed"
    """Repeat with the same key: the receiver drops the second."""
    adopt = "adopt"
    """Never repeat blindly: look whether it took effect (submit)."""
    paid = "paid"
    """Costs money: answered from the cache by its input hash, else repeated within the budget."""


UNTIL_IT_IS_TOLD = 1_000_000
"""Tries of what goes into our own database: it is there again one day, and until then nobody was told."""


class Effect(Frozen):
    """Base of every effect. tries_max: performances before it is given up; retry_s: first pause between two."""

    redo: ClassVar[Redo]
    lane: ClassVar[Literal["act", "look", "tell"]] = "look"
    """Effects of one job keep their order within a lane: a stop never waits behind a slow log read."""
    tries_max: ClassVar[int] = 8
    retry_s: ClassVar[float] = 5.0

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "redo" not in cls.__dict__:
            raise TypeError(f"{cls.__name__} does not say how it may be redone")


class RunCheck(Effect):
    """Run one preflight check by name; the answer is CheckFinished."""

    redo = Redo.free
    kind: Literal["run_check"] = "run_check"
    name: str


class Submit(Effect):
    """Create the cluster job: Submitted, SubmitRejected or SubmitUnclear."""

    redo = Redo.adopt
    lane = "act"
    tries_max = 1
    kind: Literal["submit"] = "submit"
    name: str
    fingerprint: str
    owner: str
    spec: Spec


class FindByName(Effect):
    """Ask the cluster which jobs answer to the name: LookedUp. not_before: sooner it would tell nothing."""

    redo = Redo.free
    tries_max = 1
    kind: Literal["find_by_name"] = "find_by_name"
    name: str
    fingerprint: str = ""
    owner: str = ""
    not_before: datetime | None = None


class ReadLogs(Effect):
    """Read at most `lines` of the log and digest them: LogsRead.

    look_for, files ({as named: where to look}), metrics: what the run's goals need to know (E8).
    """

    redo = Redo.free
    tries_max = 3
    kind: Literal["read_logs"] = "read_logs"
    name: str
    lines: int
    final: bool = False
    look_for: tuple[str, ...] = ()
    files: dict[str, str] = Field(default_factory=dict)
    metrics: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()
    exit_code: int | None = None
    signal: int | None = None


class Interpret(Effect):
    """Let the model read a bounded, redacted piece of the log: Interpreted."""

    redo = Redo.paid
    tries_max = 2
    kind: Literal["interpret"] = "interpret"
    name: str
    lines: int
    situation: str = ""


class StopJob(Effect):
    """Ask the cluster to halt this job: StopAsked. twin: it is not the attempt's own job but its double."""

    redo = Redo.level
    lane = "act"
    tries_max = 3
    kind: Literal["stop_job"] = "stop_job"
    name: str
    cluster_job_id: str = ""
    twin: bool = False


class DeleteJob(Effect):
    """Remove the record on the cluster, because a person asked for it by name: Deleted."""

    redo = Redo.level
    lane = "act"
    tries_max = 3
    kind: Literal["delete_job"] = "delete_job"
    name: str
    cluster_job_id: str = ""


class Ask(Effect):
    """Deliver questions, all in one message (A8)."""

    redo = Redo.keyed
    lane = "tell"
    tries_max = UNTIL_IT_IS_TOLD
    kind: Literal["ask"] = "ask"
    questions: tuple[Question, ...]


class Withdraw(Effect):
    """Tell that a question no longer needs an answer, and why (E9), or what happened to it."""

    redo = Redo.keyed
    lane = "tell"
    tries_max = UNTIL_IT_IS_TOLD
    kind: Literal["withdraw"] = "withdraw"
    number: int
    why: str


class Report(Effect):
    """Deliver a report. must_not_miss: it interrupts (E12). stage: which report of the lifecycle it is."""

    redo = Redo.keyed
    lane = "tell"
    tries_max = UNTIL_IT_IS_TOLD
    kind: Literal["report"] = "report"
    stage: str
    text: str
    must_not_miss: bool = False


class Collect(Effect):
    """Look at the wrapper's record and the declared outputs under the workspace: OutputsCollected."""

    redo = Redo.free
    kind: Literal["collect"] = "collect"
    name: str
    workspace: str
    outputs: tuple[str, ...] = ()


class Remember(Effect):
    """Record in the library: a config that was used, that worked or that failed; never a credential (H4)."""

    redo = Redo.keyed
    lane = "tell"
    kind: Literal["remember"] = "remember"
    what: Literal["used", "worked", "stale", "fact", "pitfall"]
    purpose: str
    values: dict[str, str] = Field(default_factory=dict)
    note: str = ""
    artifacts: tuple[Artifact, ...] = ()


class Delegate(Effect):
    """Delegate a smoke or preparation run of this job; its end comes back as ChildFinished."""

    redo = Redo.keyed
    lane = "tell"
    kind: Literal["delegate"] = "delegate"
    child: str
    purpose: str
    request: Request


class TellParent(Effect):
    """Hand the end of a child run to the run that asked for it."""

    redo = Redo.keyed
    lane = "tell"
    tries_max = UNTIL_IT_IS_TOLD
    kind: Literal["tell_parent"] = "tell_parent"
    parent: str
    purpose: str
    ok: bool
    cause: str = ""
    summary: str = ""
    found: dict[str, str] = Field(default_factory=dict)


class StopChild(Effect):
    """Ask a child run to stop, because its parent was given up."""

    redo = Redo.keyed
    lane = "tell"
    tries_max = UNTIL_IT_IS_TOLD
    kind: Literal["stop_child"] = "stop_child"
    child: str


AnyEffect = (
    RunCheck
    | Submit
    | FindByName
    | ReadLogs
    | Interpret
    | StopJob
    | DeleteJob
    | Ask
    | Withdraw
    | Report
    | Collect
    | Remember
    | Delegate
    | TellParent
    | StopChild
)

EFFECTS: tuple[type[Effect], ...] = AnyEffect.__args__

_adapter: TypeAdapter[AnyEffect] = TypeAdapter(Annotated[AnyEffect, Field(discriminator="kind")])


def parse_effect(data: object) -> AnyEffect:
    """An effect from its JSON-able form. Raises pydantic.ValidationError on a kind or field that is not known."""
    return _adapter.validate_python(data)
