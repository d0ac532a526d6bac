"""Verbs of a decided question: an answer, or the safe default at its deadline (RULES G).

Never: set the state (the row does), read the world, or decide whether to act (the guard did).
"""

from __future__ import annotations

from states.actions.asking import answer_words, close_by, closed_words
from states.actions.change import Change, after
from states.actions.parts import CHILD_ROWS, order_stop, preflight_after
from states.answers import NotAnAnswer, understand
from states.effects import (
    RunCheck,
    StopJob,
)
from states.events import (
    Answered,
    WakeDue,
)
from states.guards import question_at
from states.job import Job, StopOrder
from states.preflight import LATER
from states.timers import look_s


def refuse_answer(job: Job, event: Answered) -> Change:
    """It does not answer the question, which stays open (G4)."""
    question = question_at(job, event)
    if question is None:
        return Change(job, (), closed_words(job, event.number))
    heard = understand(question, event.reply)
    return Change(job, (), heard.reason if isinstance(heard, NotAnAnswer) else "")


def take_answer(job: Job, event: Answered | WakeDue) -> Change:
    """The answer, or the default at its deadline, is taken; the job goes on where it was."""
    closed, tells = close_by(job, event)
    return Change(closed, tells, answer_words(job, event))


def take_answer_and_watch(job: Job, event: Answered | WakeDue) -> Change:
    """The same for a job that runs: its log is looked at again soon."""
    closed, tells = close_by(job, event)
    return Change(closed.but(logs_at=after(event.at, look_s(closed))), tells, answer_words(job, event))


def take_answer_and_check(job: Job, event: Answered | WakeDue) -> Change:
    """Go on with preflight: what the answer touched is checked again, the rest stands."""
    question = question_at(job, event)
    closed, tells = close_by(job, event)
    return Change(*preflight_after(closed, question, event, tells), said=answer_words(job, event))


def take_answer_and_respecify(job: Job, event: Answered | WakeDue) -> Change:
    """A refused submit gets a new value: the whole gate is passed again, and a new attempt is submitted."""
    closed, tells = close_by(job, event)
    names = tuple(name for name in closed.checks if name not in CHILD_ROWS | LATER)
    again = closed.but(checks={}, checks_open=names, checks_at=event.at, overridden=())
    return Change(again, (*tells, *(RunCheck(name=name) for name in names)), answer_words(job, event))


def take_answer_and_stop(job: Job, event: Answered | WakeDue) -> Change:
    """The answer (or a default that the seed names: E11) is to stop."""
    closed, tells = close_by(job, event)
    question = question_at(job, event)
    ordered = question.preset_by if question is not None else ""
    by = event.by if isinstance(event, Answered) else ordered or "the question's default"
    order = StopOrder(by=by, reason=f"answered: {answer_words(job, event)}", rule="G2", at=event.at)
    change = order_stop(closed, event.at, order, "it is being stopped")
    return Change(change.job, (*tells, *change.effects), answer_words(job, event))


def take_answer_and_stop_twin(job: Job, event: Answered | WakeDue) -> Change:
    """Of two the one that is not watched is stopped, because a person said so."""
    question = question_at(job, event)
    closed, tells = close_by(job, event)
    twin = question.facts.get("twin", "") if question else ""
    name = question.facts.get("twin_name", "") if question else ""
    stop = StopJob(name=name or job.attempt.name, cluster_job_id=twin, twin=True)
    return Change(closed, (*tells, stop), f"stop twin {twin}")
