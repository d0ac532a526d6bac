"""Predicates of a decided question: what an answer, or the default at its deadline, does (RULES G).

Never: change anything, read a clock (the event's `at` is now), or raise on a late event.
"""

from __future__ import annotations

from states.answers import Choice, understand
from states.events import (
    Answered,
    WakeDue,
)
from states.guards.ending import nothing_can_be_there
from states.guards.parts import (
    question_at,
)
from states.job import Job, State
from states.questions import Act


def the_answer_is_not_valid(job: Job, event: Answered) -> bool:
    question = question_at(job, event)
    return question is None or not isinstance(understand(question, event.reply), Choice)


def no_answer_is_due(job: Job, event: WakeDue) -> bool:
    return all(question.answer_by > event.at for question in job.open_questions)


def act_of(job: Job, event: Answered | WakeDue) -> Act | None:
    """What the answer, or the default at its deadline, does; None while neither applies."""
    question = question_at(job, event)
    if question is None:
        return None
    if isinstance(event, WakeDue):
        return question.default.act
    choice = understand(question, event.reply)
    return choice.option.act if isinstance(choice, Choice) else None


def it_says_give_up_before_the_submit(job: Job, event: Answered | WakeDue) -> bool:
    return act_of(job, event) in (Act.give_up, Act.stop) and nothing_can_be_there(job, event)


def it_says_give_up_but_it_may_be_there(job: Job, event: Answered | WakeDue) -> bool:
    """The submit's answer is still out: what lands is stopped."""
    return act_of(job, event) in (Act.give_up, Act.stop) and job.doing is State.submitting


def it_says_stop(job: Job, event: Answered | WakeDue) -> bool:
    return act_of(job, event) is Act.stop and job.doing in (State.queued, State.running)


def it_says_use_a_copy(job: Job, event: Answered | WakeDue) -> bool:
    """A run that only fetches is told where a copy is: its download is stopped, and the copy is used (E11)."""
    question = question_at(job, event)
    named = question is not None and question.kind == "download" and act_of(job, event) is Act.set_value
    fetches = bool(job.parent) and job.request.purpose.startswith("stage for")
    return named and fetches and job.doing in (State.queued, State.running)


def others_are_open(job: Job, event: Answered | WakeDue) -> bool:
    """One is decided now, and the run waits for the rest; what this answer touches is checked or built at once (G3).
    Only preflight asks several at a time."""
    return len(job.open_questions) > 1


def preflight_goes_on(job: Job, event: Answered | WakeDue) -> bool:
    return job.resume_to is State.preflight


def it_says_send_again(job: Job, event: Answered | WakeDue) -> bool:
    return job.resume_to is State.submitting and act_of(job, event) in (Act.resend, Act.go_on)


def a_new_spec_was_given(job: Job, event: Answered | WakeDue) -> bool:
    """A value for a refused submit: a new spec is a new attempt, so it passes preflight again."""
    return job.resume_to is State.submitting and act_of(job, event) in (Act.set_value, Act.recheck)


def the_submit_goes_on(job: Job, event: Answered | WakeDue) -> bool:
    return job.resume_to is State.submitting


def it_says_stop_the_other(job: Job, event: Answered | WakeDue) -> bool:
    question = question_at(job, event)
    return question is not None and question.kind == "twins" and act_of(job, event) is Act.go_on


def waiting_goes_on_without_a_twin(job: Job, event: Answered | WakeDue) -> bool:
    return job.resume_to is State.queued and it_says_stop_the_other(job, event)


def waiting_goes_on(job: Job, event: Answered | WakeDue) -> bool:
    return job.resume_to is State.queued
