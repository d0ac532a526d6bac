"""Verbs of a stop: an intent that is kept and repeated until the cluster shows the end.

Never: set the state (the row does), read the world, or decide whether to act (the guard did).
"""

from __future__ import annotations

from states import reports
from states.actions.asking import close_by, withdraw_all
from states.actions.change import Change, after, tell
from states.actions.parts import order_stop, stop_effect, with_look
from states.effects import (
    AnyEffect,
    DeleteJob,
)
from states.events import (
    Answered,
    Deleted,
    DeleteRequested,
    Observed,
    StopAsked,
    StopRequested,
    WakeDue,
)
from states.job import Job, StopOrder


def stop_on_request(job: Job, event: StopRequested) -> Change:
    """A person asked: halt the job; the record stays (A2)."""
    order = StopOrder(by=event.by, reason=event.reason or "asked for", rule="A2", at=event.at)
    return order_stop(job, event.at, order, "it is being stopped")


def note_stop(job: Job, event: StopRequested) -> Change:
    """The submit's answer is still out: the stop waits for it and is not lost."""
    order = StopOrder(by=event.by, reason=event.reason or "asked for", rule="A2", at=event.at)
    return Change(job.but(stop=order), (), f"stop asked by {event.by or 'its owner'}")


def note_stop_and_seek(job: Job, event: StopRequested | Answered | WakeDue) -> Change:
    """It is to be stopped, and the submit's answer is still out: look until it is known what there is."""
    closed, tells = close_by(job, event)
    by = getattr(event, "by", "") or "its owner"
    closed = closed.but(
        stop=StopOrder(by=by, reason=getattr(event, "reason", "") or "asked for", rule="A2", at=event.at)
    )
    withdrawn, more = withdraw_all(closed, event.at, "it is being stopped")
    return Change(withdrawn.but_attempt(look_up_at=event.at), (*tells, *more), f"stop asked by {by}")


def stop_again(job: Job, event: Observed) -> Change:
    """A look shows that it still lives: ask again, ever more rarely; a stop is an intent until the cluster shows the
    end (WISHES 7)."""
    noted = with_look(job, event.observation)
    order = noted.stop
    assert order is not None  # guarded by a_retry_is_due
    late = (event.at - order.at).total_seconds() >= job.policy.stop_report_s and not order.said_late
    later = order.model_copy(
        update={
            "tries": order.tries + 1,
            "retry_at": after(event.at, job.policy.stop_retry_s * min(2.0**order.tries, 4.0)),
            "said_late": order.said_late or late,
        }
    )
    effects: tuple[AnyEffect, ...] = (stop_effect(noted),)
    if late:
        effects = (*effects, tell("stop-late", reports.stop_is_late(noted, event.at), must_not_miss=True))
    return Change(noted.but(stop=later), effects, f"stop try {order.tries + 1}")


def note_stop_asked(job: Job, event: StopAsked) -> Change:
    """What the cluster said to the stop."""
    return Change(job, (), "the cluster took the stop" if event.ok else event.reason)


def delete(job: Job, event: DeleteRequested) -> Change:
    """A person spelled out the name of an ended run: remove its record on the cluster (A7)."""
    attempt = job.attempt
    effect = DeleteJob(name=attempt.name, cluster_job_id=attempt.cluster_job_id)
    return Change(job, (effect,), f"asked by {event.by or 'its owner'}")


def note_deleted(job: Job, event: Deleted) -> Change:
    """What the cluster said to the delete."""
    said = "its record on the cluster was deleted on request" if event.ok else f"delete: {event.reason}"
    return Change(job.with_note(said), (), said)
