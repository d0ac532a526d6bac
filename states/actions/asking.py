"""Opening and closing questions: asked in one message, closed by an answer, a deadline, or because they are moot.

Never: set the state (the row does), read the world, or decide whether to act (the guard did).
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from states import reports
from states.actions.change import Change, after, purpose_of, tell
from states.answers import Choice, understand
from states.effects import AnyEffect, Ask, Remember, Withdraw
from states.events import Answered, WakeDue
from states.guards import question_at
from states.job import QUESTIONS_MAX, TOPICS_MAX, Check, Job
from states.preflight import with_values
from states.questions import Act, Question, Status
from states.reading import Quote
from states.sizing import in_step


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
        question = with_deadline(job, question)
        questions.append(question)
        new.append(question)
    changed = job.but(
        questions=tuple(questions[-QUESTIONS_MAX:]),
        asked_topics=(*job.asked_topics, *(q.topic for q in new))[-TOPICS_MAX:],
    )
    said = [" ".join(part for part in (q.facts.get("why", ""), _ordered(q)) if part) for q in new]
    return Change(changed, (Ask(questions=tuple(new)),), "; ".join(said))


def with_deadline(job: Job, question: Question) -> Question:
    """The question with its deadline and what is carried out then: by a standing order, else as built in.

    In a job that was handed over without leave to stop it, no deadline stops it (A10).
    """
    kind, changes = question.kind, dict[str, object]()
    limit_s, changes["deadline_by"] = job.orders.deadline_s(kind) or (
        getattr(job.policy, question.template.deadline),
        "",
    )
    preset = job.orders.default_of(kind, gpu=job.spec.gpu, may_stop=job.may_stop_alone)
    if preset is not None:
        choice, whose = preset
        changes |= {"preset": choice.option.key, "preset_value": choice.value, "preset_by": whose}
    elif question.default.act is Act.stop and not job.may_stop_alone:
        kept = next(option for option in question.template.options if option.act is Act.keep)
        changes |= {"preset": kept.key, "preset_by": "it was handed over to be watched"}
    return question.model_copy(update={**changes, "answer_by": after(question.asked_at, limit_s)})


def _ordered(question: Question) -> str:
    """What a standing order says about the question, for `wk why`."""
    value = f"={question.preset_value}" if question.preset_value else ""
    told = [f"default {question.preset}{value} by {question.preset_by}"] if question.preset else []
    told += [f"deadline by {question.deadline_by}"] if question.deadline_by else []
    return f"({', '.join(told)})" if told else ""


def answer_words(job: Job, event: Answered | WakeDue) -> str:
    question = question_at(job, event)
    if question is None:
        return ""
    if isinstance(event, WakeDue):
        whose = f", by {question.preset_by}" if question.preset_by else ""
        return f"no answer by {question.answer_by.isoformat()}: default {question.default.key}{whose}"
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
        value = {"value": question.preset_value, "closed_at": event.at}
        closed = question.model_copy(
            update={"status": Status.defaulted, "chosen": question.default.key, **value}
        )
        text = reports.defaulted(job, closed)
        changed = with_question(job, closed)
        if question.preset_value:
            changed = changed.but(
                spec=with_values(
                    changed.spec, in_step(changed, {question.default.value: question.preset_value})
                )
            )
        return changed, (tell("defaulted", text, must_not_miss=True),)
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
        changed = changed.but(
            spec=with_values(changed.spec, in_step(changed, {choice.option.value: choice.value}))
        )
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
