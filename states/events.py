"""Everything that can happen to a job: a closed union of past-tense facts.

Each event carries when (`at`) and an idempotency `key`: the same key twice is one event, and the second call gets the
first result. Events are kept for ever in the journal, so a class changes only together with a lift in `versions`.

The events that stand in a log's text are another thing: `states/logs/log_events.py`.

Never: an imperative (those are `effects`), a log's text, a secret.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from states.job import Check, Collected, Job
from states.observation import Match, Observation
from states.reading import Digest, Frozen, Point, Quote


class Event(Frozen):
    """Base of every event."""

    at: datetime
    key: str = ""
    v: int = 1


class Delegated(Event):
    """A person handed over a run. `checks` are the preflight checks that this cluster and request call for."""

    kind: Literal["delegated"] = "delegated"
    by: str = ""
    checks: tuple[str, ...] = ()
    answered_before: dict[str, str] = Field(default_factory=dict)


class CheckFinished(Event):
    """One preflight check has an answer (also "could not check", with the reason)."""

    kind: Literal["check_finished"] = "check_finished"
    check: Check


class ChildFinished(Event):
    """A smoke or preparation run of this job is over."""

    kind: Literal["child_finished"] = "child_finished"
    child: str
    purpose: str
    ok: bool
    cause: str = ""
    evidence: tuple[Quote, ...] = ()
    summary: str = ""
    found: dict[str, str] = Field(default_factory=dict)
    """What an answer given to the child settles for this job (a copy to use, a download to go on without)."""


class Submitted(Event):
    """The cluster accepted the submit and told the id."""

    kind: Literal["submitted"] = "submitted"
    name: str
    cluster_job_id: str
    note: str = ""


class SubmitRejected(Event):
    """The cluster said no: no job exists."""

    kind: Literal["submit_rejected"] = "submit_rejected"
    name: str
    reason: str
    cause: str = ""
    retryable: bool = False


class SubmitUnclear(Event):
    """No usable answer (time-out, signal, crash, unclear text): the job may exist."""

    kind: Literal["submit_unclear"] = "submit_unclear"
    name: str
    reason: str


class LookedUp(Event):
    """The cluster was asked by name. reachable False: nothing is concluded."""

    kind: Literal["looked_up"] = "looked_up"
    name: str
    reachable: bool
    matches: tuple[Match, ...] = ()
    reason: str = ""


class Observed(Event):
    """One look at the cluster job of an attempt."""

    kind: Literal["observed"] = "observed"
    name: str
    observation: Observation


class ClusterUnreachable(Event):
    """The cluster could not be asked. Changes nothing but what is said and when it is tried again."""

    kind: Literal["cluster_unreachable"] = "cluster_unreachable"
    reason: str


class LogsRead(Event):
    """A bounded piece of the log was read. lines: the bound it was read with. final: at the wrap-up.

    asked_at: when the read began. What the log says is of no later moment for certain, so silence is counted to it: a
    machine that stood still between the read and its judgement has not made the job silent (E6).
    """

    kind: Literal["logs_read"] = "logs_read"
    name: str
    digest: Digest
    asked_at: datetime | None = None
    lines: int = 0
    final: bool = False
    readable: bool = True
    reason: str = ""
    there: tuple[str, ...] = ()
    """Files of the run's goals that were written since it was delegated, as the goals name them."""
    series: dict[str, tuple[Point, ...]] = Field(default_factory=dict)
    """The values of the goals' metrics in this piece, by name."""


class Interpreted(Event):
    """The model read a log. quotes_hold False (or failed set): the reading is void (I3, I4)."""

    kind: Literal["interpreted"] = "interpreted"
    name: str
    verdict: str = ""
    cause: str = ""
    summary: str = ""
    quotes: tuple[Quote, ...] = ()
    milestone: str = ""
    confidence: float = 0.0
    model: str = ""
    cost_usd: float | None = None
    failed: str = ""


class Answered(Event):
    """A person answered question `number` with this reply (key, number or free text)."""

    kind: Literal["answered"] = "answered"
    number: int
    reply: str
    by: str = ""


class StopRequested(Event):
    """A person asked for a stop."""

    kind: Literal["stop_requested"] = "stop_requested"
    by: str = ""
    reason: str = ""


class StopAsked(Event):
    """The stop reached the cluster (or did not: ok False)."""

    kind: Literal["stop_asked"] = "stop_asked"
    cluster_job_id: str
    ok: bool
    reason: str = ""


class DeleteRequested(Event):
    """A person asked to delete the record of this job and spelled its name (A7)."""

    kind: Literal["delete_requested"] = "delete_requested"
    by: str = ""
    name: str = ""


class Deleted(Event):
    """The delete reached the cluster (or did not: ok False)."""

    kind: Literal["deleted"] = "deleted"
    ok: bool
    reason: str = ""


class OutputsCollected(Event):
    """The wrapper's record and the declared outputs were looked at under the workspace."""

    kind: Literal["outputs_collected"] = "outputs_collected"
    collected: Collected


class WakeDue(Event):
    """A timer of this job is due: a deadline passed, a retry is due."""

    kind: Literal["wake_due"] = "wake_due"


class EffectGivenUp(Event):
    """An asked effect failed for good after its tries; the message says how. name: of the check or child, if any."""

    kind: Literal["effect_given_up"] = "effect_given_up"
    effect: str
    reason: str
    name: str = ""


AnyEvent = (
    Delegated
    | CheckFinished
    | ChildFinished
    | Submitted
    | SubmitRejected
    | SubmitUnclear
    | LookedUp
    | Observed
    | ClusterUnreachable
    | LogsRead
    | Interpreted
    | Answered
    | StopRequested
    | StopAsked
    | DeleteRequested
    | Deleted
    | OutputsCollected
    | WakeDue
    | EffectGivenUp
)

EVENTS: tuple[type[Event], ...] = AnyEvent.__args__
KINDS: tuple[str, ...] = tuple(event.model_fields["kind"].default for event in EVENTS)

_adapter: TypeAdapter[AnyEvent] = TypeAdapter(Annotated[AnyEvent, Field(discriminator="kind")])


def parse_event(data: object) -> AnyEvent:
    """An event from its JSON-able form. Raises pydantic.ValidationError on a kind or field that is not known."""
    return _adapter.validate_python(data)


def new_job_key(job: Job) -> str:
    """Idempotency key of the delegation itself."""
    return f"{job.id}:delegated"
