"""Opening and closing questions: asked in one message, closed by an answer, a deadline, or because they are moot.

Never: set the state (the row does), read the world, or decide whether to act (the guard did).
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from states import reports
from states.actions.change import Change, after, purpose_of, tell
from states.effects import AnyEffect, Ask, Remember, Withdraw
from states.events import Answered, WakeDue
from states.guards import question_at
from states.job import QUESTIONS_MAX, TOPICS_MAX, Check, Job
from states.preflight import with_values
from states.questions import Act, Choice, Question, Status, understand
from states.reading import Quote


def check_facts(job: Job, check: Check) -> dict[str, str]:
    why = check.evidence + (f" {check.mend}" if check.mend else "")
    return {"name": job.id, "why": why, "check": check.name, **check.facts}


def is_asked(job: Job, check: Check) -> bool:
    return any(q.is_open and q.facts.get("check") == check.name for q in job.questions)


def open_questions(
    job: Job, at: datetime, asked: Iterable[tuple[str, str, dict[str, str], tuple[Quote, ...]]]
) -> Change:
    """Open questions of (kind, topic, facts, evidence), all in one message; a must-not-miss moment (E12)."""
    questions = list(job.questions)
    new: list[Question] = []
    for kind, topic, facts, evidence in asked:
        number = questions[-1].number + 1 if questions else 1
        question = Question(
            id=f"{job.id}/{number}",
            number=number,
            kind=kind,
            topic=topic,
            asked_at=at,
            answer_by=at,
            facts=facts,
            evidence=evidence[:6],
        )
        limit_s = getattr(job.policy, question.template.deadline)
        question = question.model_copy(update={"answer_by": after(at, limit_s)})
        questions.append(question)
        new.append(question)
    changed = job.but(
        questions=tuple(questions[-QUESTIONS_MAX:]),
        asked_topics=(*job.asked_topics, *(q.topic for q in new))[-TOPICS_MAX:],
    )
    return Change(changed, (Ask(questions=tuple(new)),), "; ".join(q.facts.get("why", "") for q in new))


def answer_words(job: Job, event: Answered | WakeDue) -> str:
    question = question_at(job, event)
    if question is None:
        return ""
    if isinstance(event, WakeDue):
        return f"no answer by {question.answer_by.isoformat()}: default {question.default.key}"
    return f"{event.by or 'its owner'} answered {event.reply}"


def closed_words(job: Job, number: int) -> str:
    """What already happened to a question that is not open (G4)."""
    question = next((q for q in job.questions if q.number == number), None)
    if question is None:
        return f"there is no question {number}"
    chosen = f": {question.chosen}" if question.chosen else ""
    why = f" ({question.closed_why})" if question.closed_why else ""
    return f"question {number} was {question.status}{chosen}{why}"


def close_by(job: Job, event: object) -> tuple[Job, tuple[AnyEffect, ...]]:
    """Close the question that an answer or a deadline is about; an answered value goes into the spec (G6)."""
    if not isinstance(event, (Answered, WakeDue)):
        return job, ()
    question = question_at(job, event)
    if question is None:
        return job, ()
    if isinstance(event, WakeDue):
        closed = question.model_copy(
            update={"status": Status.defaulted, "chosen": question.default.key, "closed_at": event.at}
        )
        text = reports.defaulted(job, closed)
        return with_question(job, closed), (tell("defaulted", text, must_not_miss=True),)
    choice = understand(question, event.reply)
    assert isinstance(choice, Choice)  # guarded by the_answer_is_not_valid
    closed = question.model_copy(
        update={
            "status": Status.answered,
            "chosen": choice.option.key,
            "value": choice.value,
            "by": event.by,
            "closed_at": event.at,
        }
    )
    changed = with_question(job, closed)
    effects: tuple[AnyEffect, ...] = (tell("answered", reports.answered(changed, closed)),)
    if choice.option.act is Act.set_value:
        changed = changed.but(spec=with_values(changed.spec, {choice.option.value: choice.value}))
        fact = Remember(what="fact", purpose=purpose_of(job), values={choice.option.value: choice.value})
        effects = (*effects, fact)
    return changed, effects


def with_question(job: Job, closed: Question) -> Job:
    return job.but(questions=tuple(closed if q.number == closed.number else q for q in job.questions))


def withdraw_all(job: Job, at: datetime, why: str) -> tuple[Job, tuple[AnyEffect, ...]]:
    """Close every open question, each with the reason (E9)."""
    effects: list[AnyEffect] = []
    for question in job.open_questions:
        closed = question.model_copy(update={"status": Status.withdrawn, "closed_at": at, "closed_why": why})
        job = with_question(job, closed)
        effects.append(Withdraw(number=question.number, why=why))
    return job, tuple(effects)
