"""What the tools give back, as data: runs, questions, jobs, looks, decisions. The wire's names are these.

Times are ISO 8601 with their zone; figures are per replica, memory is MiB. A field `text` is for reading as it is.

Never: the environment of a job (it may hold what its owner calls harmless); a whole history.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from pydantic import BaseModel, ConfigDict

from agent.mcp.fence import fenced, quoted
from states import reports
from states.job import Job
from states.questions import Question, option_text
from states.words.rows import asks, concern_row, facts_of, standing
from states.words.wording import plain

ROWS_MAX = 30
CHANGES_MAX = 12
REPORT = "wrap-up"
"""The stage of the last report."""


class Shape(BaseModel):
    """Base of every result."""

    model_config = ConfigDict(frozen=True)


class Choice(Shape):
    """An option of a question. value: what must be given with it ("" for nothing)."""

    key: str
    does: str
    value: str = ""


class Asked(Shape):
    """An open question (RULES G1). default: what is done at `answer_by` without an answer."""

    question: str
    asks: str
    options: tuple[Choice, ...]
    default: str
    answer_by: datetime
    evidence: str = ""


class Run(Shape):
    """A delegated run. seq: the cursor for wait_for_change. told: one line for a person. text: its last report."""

    run: str
    state: str
    ended: bool
    seq: int
    told: str
    job: str = ""
    cluster: str = ""
    concern: str = ""
    questions: tuple[Asked, ...] = ()
    outcome: str = ""
    next: str = ""
    artifacts: tuple[str, ...] = ()
    note: str = ""
    text: str = ""


class Change(Shape):
    """One thing that happened to a run."""

    at: datetime
    event: str
    state: str
    said: str = ""


class Waited(Shape):
    """The run after a wait. reached: what was waited for is there. changes: the newest since the cursor."""

    reached: bool
    run: Run
    changes: tuple[Change, ...] = ()


class Sent(Shape):
    """A single submit, or its preview (`text`)."""

    submitted: bool
    cluster: str
    name: str
    job: str = ""
    note: str = ""
    text: str = ""


class Free(Shape):
    """Free and total; null where the cluster does not tell. block_gpu: most free GPUs on one node."""

    cluster: str
    group: str = ""
    free_gpu: int | None = None
    total_gpu: int | None = None
    free_cpu: float | None = None
    total_cpu: float | None = None
    free_memory_mib: int | None = None
    total_memory_mib: int | None = None
    block_gpu: int | None = None
    queued: int | None = None


class ClusterJob(Shape):
    """A job as its cluster tells it. run: the delegated run it belongs to, if it does."""

    job: str
    name: str
    phase: str
    words: str = ""
    node: str = ""
    replicas: int | None = None
    replicas_ready: int | None = None
    exit_code: int | None = None
    run: str = ""


class Jobs(Shape):
    """Jobs of the cluster, and the delegated runs that have not ended."""

    jobs: tuple[ClusterJob, ...]
    runs: tuple[str, ...] = ()


class Got(Shape):
    """One job: as the cluster tells it (null where it has none, or none any longer), and as a run if it is one."""

    job: ClusterJob | None = None
    run: Run | None = None


class Log(Shape):
    """A bounded piece of a log. cursor: hand it back to read on. ready: false while there is none."""

    job: str
    ready: bool
    truncated: bool = False
    cursor: str = ""
    text: str = ""


class Event(Shape):
    """A scheduling or lifecycle event."""

    at: datetime | None
    kind: str
    message: str
    count: int = 1


class Events(Shape):
    """Events of a job, oldest first."""

    job: str
    events: tuple[Event, ...]


class Done(Shape):
    """What was asked of the cluster or of a run."""

    asked: str
    job: str
    state: str = ""
    note: str = ""


class Checked(Shape):
    """One look at a job, judged by the rules (A3). evidence: lines of its log."""

    job: str
    phase: str
    words: str = ""
    verdict: str = ""
    summary: str = ""
    step: int | float | str | None = None
    total: int | float | str | None = None
    loss: int | float | str | None = None
    cause: str = ""
    owner: str = ""
    advice: str = ""
    evidence: str = ""
    run: Run | None = None


class Questions(Shape):
    """The open questions, of one run or of all."""

    questions: tuple[Asked, ...]


class Decision(Shape):
    """One decision of a run: what happened, what became of it, by which rule, why (I5)."""

    seq: int
    at: datetime
    event: str
    became: str
    rule: str = ""
    did: str = ""
    because: str = ""


class Decisions(Shape):
    """Decisions, oldest first. earlier: how many are not shown."""

    run: str
    decisions: tuple[Decision, ...]
    earlier: int = 0


class SetUp(Shape):
    """A set-up on record for a kind of work (H1). stale: why it no longer counts, if it does not."""

    purpose: str
    image: str = ""
    environment: str = ""
    proxy: str = ""
    worked: int = 0
    used: int = 0
    last_at: datetime
    stale: str = ""
    notes: tuple[str, ...] = ()


class SetUps(Shape):
    """The config library."""

    entries: tuple[SetUp, ...]


def question_of(job: Job, question: Question) -> Asked:
    """An open question, worded in the run's language."""
    options = tuple(
        Choice(key=option.key, does=option_text(option, job.language), value=option.value)
        for option in question.template.options
    )
    return Asked(
        question=question.id,
        asks=asks(job, question),
        options=options,
        default=question.default.key,
        answer_by=question.answer_by,
        evidence=quoted(question.evidence),
    )


def run_of(job: Job, at: datetime, *, messages: Sequence[Mapping[str, Any]] = (), note: str = "") -> Run:
    """A run as it stands at `at`. messages: of its inbox; the last report of an ended run is shown."""
    last = [str(row["text"]) for row in messages if row["stage"] == REPORT]
    attempt = job.attempts[-1] if job.attempts else None
    return Run(
        run=job.id,
        state=str(job.state),
        ended=job.is_terminal,
        seq=job.seq,
        told=", ".join([standing(job, at), *facts_of(job, at)[:4]]),
        job=attempt.cluster_job_id or attempt.name if attempt else "",
        cluster=job.cluster,
        concern=concern_row(job),
        questions=tuple(question_of(job, question) for question in job.open_questions),
        outcome=reports.outcome_line(job) if job.is_terminal else "",
        next=reports.next_action(job) if job.is_terminal else "",
        artifacts=tuple(plain(artifact.path) for artifact in job.collected.artifacts[:ROWS_MAX]),
        note=note,
        text=fenced(last[-1], f"report of {job.id}, with lines of its log")
        if job.is_terminal and last
        else "",
    )


def changes_of(rows: Sequence[Mapping[str, Any]]) -> tuple[Change, ...]:
    """The newest rows of a journal."""
    return tuple(
        Change(at=row["at"], event=row["kind"], state=str(row["to"]), said=plain(str(row["said"] or "")))
        for row in rows[-CHANGES_MAX:]
    )
