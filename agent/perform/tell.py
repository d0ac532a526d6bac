"""Deliver questions, withdrawals and reports into the inbox; the effect's id is the key, so none comes twice.

Channels that reach further (mail, chat) read the inbox; what is here is what every surface shows. The run's reports
are also kept under its workspace (`agent/keep.py`); where that cannot be, one message says so.

Never: a report or question that is not also in the journal; a run that fails because its reports cannot be kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agent.asked import AskedEffect
from agent.keep import keep
from agent.leases import Lease
from agent.ports import Ports
from states import reports
from states.effects import Ask, Report, Withdraw
from states.job import Job

NOT_KEPT = "not-kept"
"""Stage of the one message about reports that cannot be kept."""


def ask(effect: Ask, asked: AskedEffect, job: Job, ports: Ports, lease: Lease) -> None:
    """All questions in one message (A8), set apart from routine (E12)."""
    open_now = {question.number for question in job.open_questions}
    questions = tuple(question for question in effect.questions if question.number in open_now)
    if questions:
        _deliver(asked, job, ports, "question", "question", reports.asked(job, questions), must_not_miss=True)


def withdraw(effect: Withdraw, asked: AskedEffect, job: Job, ports: Ports, lease: Lease) -> None:
    """A question needs no answer any more, and why (E9)."""
    question = next((q for q in job.questions if q.number == effect.number), None)
    if question is not None:
        _deliver(asked, job, ports, "withdrawal", "withdrawn", reports.withdrawn(job, question, effect.why))


def report(effect: Report, asked: AskedEffect, job: Job, ports: Ports, lease: Lease) -> None:
    """A report, as the step worded it."""
    _deliver(asked, job, ports, "report", effect.stage, effect.text, must_not_miss=effect.must_not_miss)


def _deliver(
    asked: AskedEffect,
    job: Job,
    ports: Ports,
    kind: str,
    stage: str,
    text: str,
    *,
    must_not_miss: bool = False,
) -> None:
    message = _message(asked.id, job, ports, kind, stage, text, must_not_miss)
    failed = _keep(
        job, ports, message
    )  # first: once it is delivered, a crash would leave it out of the files
    ports.store.deliver(message)
    if failed:
        said = reports.not_kept(job, failed)
        ports.store.deliver(_message(f"{job.id}:{NOT_KEPT}", job, ports, "report", NOT_KEPT, said, False))


def _keep(job: Job, ports: Ports, message: Mapping[str, Any]) -> str:
    """The reports with this one, under the workspace; why that cannot be, or ""."""
    try:
        keep(job, [*ports.store.messages(job.id), message], ports.redact)
    except OSError as error:
        return error.strerror or type(error).__name__
    return ""


def _message(
    key: str, job: Job, ports: Ports, kind: str, stage: str, text: str, must_not_miss: bool
) -> dict[str, Any]:
    """A message as the inbox takes it, once per key."""
    return {
        "id": key,
        "job_id": job.id,
        "at": ports.clock.now(),
        "kind": kind,
        "stage": stage,
        "text": text,
        "must_not_miss": must_not_miss,
    }
