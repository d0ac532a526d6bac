"""Verbs of the gate before the submit: run checks, ask for what is missing, prove the set-up, submit.

Never: set the state (the row does), read the world, or decide whether to act (the guard did).
"""

from __future__ import annotations

from states.actions.asking import check_facts, is_asked, open_questions
from states.actions.change import Change, purpose_of
from states.actions.parts import (
    check_words,
    end_run,
    new_attempt,
    start_child,
)
from states.cost import why_preview
from states.effects import (
    Remember,
    RunCheck,
)
from states.events import (
    Answered,
    CheckFinished,
    ChildFinished,
    Delegated,
    EffectGivenUp,
    WakeDue,
)
from states.intake import take_in_child
from states.job import Attempt, Check, Job, State
from states.preflight import (
    LATER,
    refusals,
    smoke_request,
    unanswered,
    without_smoke,
)
from states.staging import PREPARATIONS, failed_runs, look_again_due, preparation_due, preparation_request


def begin_checks(job: Job, event: Delegated) -> Change:
    """Run every preflight check at once, so that all that is missing comes back in one message."""
    now = tuple(name for name in event.checks if name not in LATER)
    later = tuple(name for name in event.checks if name in LATER)
    started = job.but(checks_open=now, checks_later=later, checks_at=event.at)
    return Change(
        started,
        tuple(RunCheck(name=name) for name in now),
        "; ".join([f"delegated by {event.by or 'its owner'}", *job.by_order]),
    )


def begin_watching(job: Job, event: Delegated) -> Change:
    """Take over a job that is on the cluster already: monitoring and wrap-up only."""
    existing = job.request.existing
    assert existing is not None  # guarded by is_a_takeover
    attempt = Attempt(
        number=1,
        name=existing.name or existing.cluster_job_id,
        fingerprint="",
        intent_at=event.at,
        accepted_at=event.at,
        cluster_job_id=existing.cluster_job_id,
    )
    return Change(job.but(attempts=(attempt,)), (), f"handed over by {event.by or 'its owner'} to be watched")


def note_check(job: Job, event: CheckFinished) -> Change:
    """The check's row is written down; others have not answered yet."""
    return Change(job, (), check_words(event.check))


def refuse(job: Job, event: CheckFinished | Answered | WakeDue) -> Change:
    """End unsubmitted: something in the request may not run."""
    found = refusals(job)
    return end_run(job, event.at, State.not_submitted, "; ".join(check.evidence for check in found))


def ask_for_missing(job: Job, event: CheckFinished | Answered | WakeDue) -> Change:
    """Put everything that is missing into one message (A8); what was remembered and is gone is stale (F5)."""
    missing = [check for check in unanswered(job) if not is_asked(job, check)]
    stale = tuple(
        Remember(what="stale", purpose=purpose_of(job), values={c.name: c.facts["stale"]}, note=c.evidence)
        for c in missing
        if "stale" in c.facts
    )
    asked = open_questions(
        job, event.at, [(c.question, f"check:{c.name}", check_facts(job, c), ()) for c in missing]
    )
    return asked._replace(effects=(*stale, *asked.effects))


def run_preview(job: Job, event: object) -> Change:
    """Ask the cluster what it makes of a dear or uncertain spec, once, before anything is spent on it (C13)."""
    due = tuple(name for name in job.checks_later if name not in job.checks)
    at = getattr(event, "at", job.checks_at)
    asked = job.but(checks_open=due, checks_at=at)
    return Change(asked, tuple(RunCheck(name=name) for name in due), f"previewed first: {why_preview(job)}")


def run_smoke(job: Job, event: object) -> Change:
    """Prove the set-up with a cheap run before the real submit is spent (D4)."""
    return start_child(job, "smoke", smoke_request(job))


def prepare(job: Job, event: object) -> Change:
    """Put in place what is missing by a run of its own, before anything is spent on it (D1, C6)."""
    name = preparation_due(job)
    return start_child(job, PREPARATIONS[name], preparation_request(job, name))


def look_again(job: Job, event: CheckFinished | ChildFinished | WakeDue) -> Change:
    """What was put in place is believed when it is seen: its check runs once more."""
    names = look_again_due(job)
    asked = job.but(checks_open=names, checks_at=event.at)
    return Change(asked, tuple(RunCheck(name=name) for name in names), f"looking again: {', '.join(names)}")


def give_up_on_children(job: Job, event: ChildFinished) -> Change:
    """So many failed that another would be no different: nothing is submitted (D4)."""
    said = f"{event.purpose} runs failed {failed_runs(job, event.purpose)} times; the last: {event.summary}"
    return end_run(job, event.at, State.not_submitted, said)


def note_child(job: Job, event: ChildFinished) -> Change:
    """The smoke or build run passed: its row is written down."""
    return Change(job, (), event.summary or f"{event.purpose} run passed")


def ask_about_child(job: Job, event: ChildFinished) -> Change:
    """The smoke or build run failed: nothing is submitted on it, the person decides."""
    row = job.checks[event.purpose]
    facts = check_facts(job, row)
    return open_questions(job, event.at, [(row.question, f"child:{event.child}", facts, event.evidence)])


def submit_first(job: Job, event: CheckFinished | ChildFinished | Answered | WakeDue) -> Change:
    """All is settled: the attempt gets its name and is submitted, with no click in between (A6)."""
    return new_attempt(job.with_note(without_smoke(job)), event.at, job.spec, said="every check is settled")


def rerun_checks(job: Job, event: WakeDue) -> Change:
    """Checks that have not answered are asked again."""
    asked = tuple(RunCheck(name=name) for name in job.checks_open)
    return Change(job.but(checks_at=event.at), asked, f"no answer yet from: {', '.join(job.checks_open)}")


def note_lost_check(job: Job, event: EffectGivenUp) -> Change:
    """A check could not run at all: said so, never passed in silence."""
    lost = Check(name=event.name, level="could_not", evidence=event.reason)
    still_open = tuple(name for name in job.checks_open if name != event.name)
    noted = job.but(checks={**job.checks, event.name: lost}, checks_open=still_open)
    return Change(noted, (), event.reason)


def note_lost_child(job: Job, event: EffectGivenUp) -> Change:
    """The smoke or build run could not be delegated: it counts as failed, and is asked about in its turn."""
    return Change(take_in_child(job, lost_child(job, event)), (), event.reason)


def ask_about_lost_child(job: Job, event: EffectGivenUp) -> Change:
    """The same while nothing else is open: asked now."""
    failed = lost_child(job, event)
    return ask_about_child(take_in_child(job, failed), failed)


def lost_child(job: Job, event: EffectGivenUp) -> ChildFinished:
    purpose = job.children[event.name]
    return ChildFinished(at=event.at, child=event.name, purpose=purpose, ok=False, summary=event.reason)
