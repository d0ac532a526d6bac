"""Deliver questions, withdrawals and reports into the inbox; the effect's id is the key, so none comes twice.

Channels that reach further (mail, chat) read the inbox; what is here is what every surface shows.

Never: a message that is not also in the journal.
"""

from __future__ import annotations

from agent.asked import AskedEffect
from agent.leases import Lease
from agent.ports import Ports
from states import reports
from states.effects import Ask, Report, Withdraw
from states.job import Job


def ask(effect: Ask, asked: AskedEffect, job: Job, ports: Ports, lease: Lease) -> None:
    """All questions in one message (A8), set apart from routine (E12)."""
    open_now = {question.number for question in job.open_questions}
    questions = tuple(question for question in effect.questions if question.number in open_now)
    if questions:
        _deliver(asked, ports, "question", "question", reports.asked(job, questions), must_not_miss=True)


def withdraw(effect: Withdraw, asked: AskedEffect, job: Job, ports: Ports, lease: Lease) -> None:
    """A question needs no answer any more, and why (E9)."""
    question = next((q for q in job.questions if q.number == effect.number), None)
    if question is not None:
        _deliver(asked, ports, "withdrawal", "withdrawn", reports.withdrawn(job, question, effect.why))


def report(effect: Report, asked: AskedEffect, job: Job, ports: Ports, lease: Lease) -> None:
    """A report, as the step worded it."""
    _deliver(asked, ports, "report", effect.stage, effect.text, must_not_miss=effect.must_not_miss)


def _deliver(
    asked: AskedEffect, ports: Ports, kind: str, stage: str, text: str, *, must_not_miss: bool = False
) -> None:
    ports.store.deliver(
        {
            "id": asked.id,
            "job_id": asked.job_id,
            "at": ports.clock.now(),
            "kind": kind,
            "stage": stage,
            "text": text,
            "must_not_miss": must_not_miss,
        }
    )
