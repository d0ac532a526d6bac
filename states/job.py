"""What is known about one delegated job. Frozen: a change gives a new one.

The snapshot of this is the authority for running; the journal of events is how it came about. It stays small
(bounded lists, no log text), because thousands of them are loaded and stored.

Never: a credential, a clock reading of its own (times come in with events), or a cluster's object.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from functools import cached_property
from typing import Any, Literal, Self

from pydantic import Field

from states.observation import ENDED, Artifact, Capabilities, Observation
from states.orders import Standing
from states.policy import Policy
from states.questions import Question
from states.reading import Diagnosis, Frozen, Track, Verdict
from states.spec import Request, Spec

MACHINE_VERSION = 1
"""Raised with every change that decides differently; stored on each job and event (RELIABILITY 7.1)."""

MOMENTS_MAX = 60
QUESTIONS_MAX = 40
TOPICS_MAX = 64
NOTES_MAX = 12


class State(StrEnum):
    """Where a job stands. `blocked` remembers what it was doing in `Job.resume_to`."""

    preflight = "preflight"
    submitting = "submitting"
    queued = "queued"
    running = "running"
    blocked = "blocked"
    stopping = "stopping"
    collecting = "collecting"
    succeeded = "succeeded"
    failed = "failed"
    stopped = "stopped"
    not_submitted = "not_submitted"
    unknown = "unknown"


TERMINAL = frozenset({State.succeeded, State.failed, State.stopped, State.not_submitted, State.unknown})
LIVE = frozenset(State) - TERMINAL
WATCHED = frozenset({State.queued, State.running, State.blocked, State.stopping})
"""States in which a cluster job may exist that has to be looked at."""

CheckLevel = Literal["fine", "note", "warn", "ask", "refuse", "could_not"]


class Check(Frozen):
    """The result of one preflight check: a row of the preflight report.

    level: `ask` needs an answer (question: its kind), `refuse` ends the run unsubmitted, `could_not` = the check
    itself could not run (said, never passed in silence). found: settled values for the spec, by field name.
    """

    name: str
    level: CheckLevel
    evidence: str = ""
    mend: str = ""
    rule: str = ""
    question: str = ""
    found: dict[str, Any] = Field(default_factory=dict)
    facts: dict[str, str] = Field(default_factory=dict)


class Attempt(Frozen):
    """One submit and what came of it. name and fingerprint are the idempotency key (DESIGN 4.1).

    intent_at: when the submit was decided. sends: submit calls made under this name. look_up_at: next look by
    name while the answer is unclear; unclear_since: since when. resend_at: next send after a passing refusal.
    seen: the newest observation; None until a look showed its job. suspect: a first look at preempted, lost or gone,
    waiting for the second.
    """

    number: int
    name: str
    fingerprint: str
    intent_at: datetime
    sends: int = 1
    unclear_since: datetime | None = None
    look_up_at: datetime | None = None
    resend_at: datetime | None = None
    cluster_job_id: str = ""
    accepted_at: datetime | None = None
    started_at: datetime | None = None
    starting_since: datetime | None = None
    ended_at: datetime | None = None
    seen: Observation | None = None
    suspect: Observation | None = None
    restarts_seen: int = 0
    programs_without_milestone: int = 0
    node: str = ""
    ran_before_s: float = 0.0
    """Seconds of running before the cluster requeued it; budgets count them (E8)."""

    @property
    def lost_topic(self) -> str:
        """Among the topics once a send of it was given up, and another followed."""
        return f"lost:{self.name}"


class StopOrder(Frozen):
    """Why and by whom the job is being stopped."""

    by: str
    reason: str
    rule: str
    at: datetime
    tries: int = 0
    retry_at: datetime | None = None
    said_late: bool = False


class Collected(Frozen):
    """What the wrap-up found: the wrapper's own record and the declared outputs."""

    exit_code: int | None = None
    signal: int | None = None
    artifacts: tuple[Artifact, ...] = ()
    missing: tuple[str, ...] = ()
    looked: bool = False


class Failure(Frozen):
    """A failure signature: the same one twice without progress between means no further try (WALKS 5).

    milestone_at: the newest milestone when it failed. counter, reached: the main counter and the furthest it had come
    (None: none was seen), since an attempt that begins again passes the old milestones once more.
    """

    fingerprint: str
    milestone_at: datetime | None = None
    counter: str = ""
    reached: float | None = None


class Moment(Frozen):
    """A line of the timeline."""

    at: datetime
    state: State
    text: str


class Job(Frozen):
    """One delegated run. Units: seconds, MiB; times are aware.

    id: unique and readable. request_id: the caller's idempotency key. owner: whom it belongs to.
    policy_set: the numbers that differ from the built-in ones. seen_at/wake_at are columns of the store, put in
    at load: quiet looks move them without touching the snapshot.
    """

    id: str
    request: Request
    spec: Spec
    created_at: datetime
    request_id: str = ""
    owner: str = ""
    cluster: str = "local"
    language: Literal["en", "zh"] = "en"
    capabilities: Capabilities = Capabilities()
    policy_set: dict[str, Any] = Field(default_factory=dict)
    version: int = MACHINE_VERSION

    state: State = State.preflight
    resume_to: State | None = None
    state_since: datetime | None = None
    seq: int = 0

    checks: dict[str, Check] = Field(default_factory=dict)
    checks_open: tuple[str, ...] = ()
    checks_later: tuple[str, ...] = ()
    """Checks that look at the settled spec, so they come when all others have answered (C13)."""
    checks_at: datetime | None = None
    overridden: tuple[str, ...] = ()
    """Checks whose finding the person (or a default) chose to go on with."""
    attempts: tuple[Attempt, ...] = ()
    questions: tuple[Question, ...] = ()
    asked_topics: tuple[str, ...] = ()
    orders: Standing = Field(default_factory=Standing)
    """The standing orders that were in force when it was delegated."""
    by_order: tuple[str, ...] = ()
    """What they filled in of the request, in words."""

    track: Track = Field(default_factory=Track)
    verdict: Verdict | None = None
    diagnosis: Diagnosis = Diagnosis()
    logs_at: datetime | None = None
    logs_asked_lines: int = 0
    interprets: int = 0

    unreachable_since: datetime | None = None
    unreachable_said: bool = False
    reported_at: datetime | None = None
    odd_words: tuple[str, ...] = ()

    stop: StopOrder | None = None
    end: Observation | None = None
    collected: Collected = Collected()
    collect_at: datetime | None = None
    collect_tries: int = 0
    preemptions: int = 0
    resubmissions: int = 0
    failures: tuple[Failure, ...] = ()

    outcome: str = ""
    """One sentence, once terminal."""
    next_action: str = ""
    notes: tuple[str, ...] = ()
    moments: tuple[Moment, ...] = ()
    parent: str = ""
    children: dict[str, str] = Field(default_factory=dict)
    """{child job id: what it is for} of smoke and preparation runs."""

    seen_at: datetime | None = None
    wake_at: datetime | None = None

    @cached_property
    def policy(self) -> Policy:
        """The numbers in force for this run."""
        return Policy(**self.policy_set)

    @property
    def attempt(self) -> Attempt:
        """The present attempt. Raises IndexError before the first submit."""
        return self.attempts[-1]

    @property
    def at_large(self) -> tuple[Attempt, ...]:
        """Earlier attempts whose jobs may come back, so they are looked at too (I1): no end is known, or more than
        one was sent under the name."""
        accepted = (attempt for attempt in self.attempts[:-1] if attempt.cluster_job_id)
        return tuple(
            one for one in accepted if one.sends > 1 or one.seen is None or one.seen.phase not in ENDED
        )

    @property
    def lost_sends(self) -> tuple[Attempt, ...]:
        """Attempts of which one send was never answered: another followed it, or it is still sought. A cluster that
        is slower than it promises may carry that send out yet (I1)."""
        topics = self.asked_topics
        return tuple(
            one for one in self.attempts if one.lost_topic in topics or one.unclear_since is not None
        )

    @property
    def is_terminal(self) -> bool:
        return self.state in TERMINAL

    @property
    def doing(self) -> State:
        """What the job is at, looking through `blocked`."""
        return self.resume_to if self.state is State.blocked and self.resume_to else self.state

    @property
    def is_takeover(self) -> bool:
        """True for a job that somebody else submitted (RULES A10)."""
        return self.request.existing is not None

    @property
    def may_stop_alone(self) -> bool:
        """Whether the clear cases may be stopped without asking (E6, E7; A10 for handed-over jobs)."""
        return self.request.existing is None or self.request.existing.may_stop

    @property
    def open_questions(self) -> tuple[Question, ...]:
        return tuple(question for question in self.questions if question.is_open)

    def but(self, **changes: Any) -> Self:
        """A copy with these fields changed."""
        return self.model_copy(update=changes)

    def but_attempt(self, **changes: Any) -> Self:
        """A copy whose present attempt has these fields changed."""
        changed = self.attempt.model_copy(update=changes)
        return self.but(attempts=(*self.attempts[:-1], changed))

    def with_moment(self, at: datetime, state: State, text: str) -> Self:
        """A copy with one more line on the timeline (bounded: the first and the newest are kept)."""
        moments = (*self.moments, Moment(at=at, state=state, text=text))
        if len(moments) > MOMENTS_MAX:
            moments = (moments[0], *moments[-(MOMENTS_MAX - 1) :])
        return self.but(moments=moments)

    def with_note(self, note: str) -> Self:
        """A copy that remembers a sentence for the wrap-up (once, bounded)."""
        return self if not note or note in self.notes else self.but(notes=(*self.notes, note)[-NOTES_MAX:])


def snapshot(job: Job) -> dict[str, Any]:
    """The job as JSON-able data, without what equals its default (small rows)."""
    return job.model_dump(mode="json", exclude_defaults=True, exclude={"seen_at", "wake_at", "seq"})


def restored(data: Mapping[str, Any], **columns: Any) -> Job:
    """The job of a snapshot; columns: seq, seen_at, wake_at as the store has them."""
    return Job.model_validate({**data, **columns})
