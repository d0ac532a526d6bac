"""Verbs of the end: collect, say the outcome, record the lesson, or try once more (RULES F, E13).

Never: set the state (the row does), read the world, or decide whether to act (the guard did).
"""

from __future__ import annotations

from datetime import datetime

from states import reports
from states.actions.asking import withdraw_all
from states.actions.change import Change, after, tell
from states.actions.parts import (
    another_attempt,
    collect_effects,
    end_run,
    lost_since_milestone,
    native_words,
    resubmit_elsewhere,
    verdict_words,
    with_look,
)
from states.effects import StopJob
from states.events import (
    LogsRead,
    LookedUp,
    Observed,
    OutputsCollected,
    StopRequested,
    SubmitRejected,
    WakeDue,
)
from states.job import Job, State, StopOrder
from states.outcome import is_infra, outcome_of, why_no_further_try


def collect(job: Job, event: Observed) -> Change:
    """It is over: one last bounded log read, then the outputs (F1)."""
    seen = event.observation
    noted = with_look(job, seen).but_attempt(ended_at=seen.ended_at or event.at)
    noted = noted.but(
        end=seen, logs_at=None, collect_at=after(event.at, job.policy.collect_retry_s), collect_tries=1
    )
    withdrawn, tells = withdraw_all(noted, event.at, f"the job is over ({seen.phase})")
    return Change(withdrawn, (*tells, *collect_effects(withdrawn)), native_words(seen))


def collect_after_refusal(job: Job, event: SubmitRejected | LookedUp) -> Change:
    """A restart did not come about, but an earlier attempt ran: wrap up what there is."""
    why = event.reason or "it was stopped before it was there"
    return wrap_up_earlier(job, event.at, f"the restart did not come about: {why}")


def collect_and_stop(job: Job, event: StopRequested) -> Change:
    """The same because a person asked for a stop while the restart waited."""
    order = StopOrder(by=event.by, reason=event.reason or "asked for", rule="A2", at=event.at)
    return wrap_up_earlier(job.but(stop=order), event.at, "the restart was given up: a stop was asked for")


def wrap_up_earlier(job: Job, at: datetime, why: str) -> Change:
    end = job.attempts[-2].seen if len(job.attempts) > 1 else None
    noted = job.but(end=end, collect_at=after(at, job.policy.collect_retry_s), collect_tries=1)
    withdrawn, tells = withdraw_all(noted.with_note(why), at, why)
    return Change(withdrawn, (*tells, *collect_effects(withdrawn)), why)


def collect_again(job: Job, event: WakeDue) -> Change:
    """The wrap-up's reads have not answered: ask again."""
    later = after(event.at, job.policy.collect_retry_s)
    return Change(
        job.but(collect_at=later, collect_tries=job.collect_tries + 1), collect_effects(job), "asked again"
    )


def note_final_log(job: Job, event: LogsRead) -> Change:
    """The last log read is in; the outputs are still to come."""
    return Change(job, (), verdict_words(job) if event.readable else event.reason)


def finish(job: Job, event: OutputsCollected | WakeDue) -> Change:
    """Say the outcome, where the artifacts are and the next safe action; record the lesson (F2, F3)."""
    outcome = outcome_of(job)
    tried = job.resubmissions and outcome.state is State.failed and is_infra(job, outcome.cause)
    noted = job.with_note(why_no_further_try(job, outcome.cause)) if tried else job
    return end_run(noted, event.at, outcome.state, outcome.why)


def restart(job: Job, event: Observed) -> Change:
    """Preempted for good: a NEW attempt from the last saved state, and what was lost is said (E13)."""
    lost = lost_since_milestone(job, event.at)
    noted = with_look(job, event.observation).but_attempt(ended_at=event.at)
    noted = noted.but(preemptions=job.preemptions + 1)
    return another_attempt(
        noted,
        event.at,
        noted.spec,
        tell("restarted", reports.restarted(noted, event.at, lost), must_not_miss=True),
    )


def resubmit_lost(job: Job, event: Observed) -> Change:
    """The node is lost: the same run elsewhere, within the infrastructure's own budget. The node may only have been
    cut off, and the job come back with it: it is told to halt before the new one is sent (I1)."""
    noted = with_look(job, event.observation).but_attempt(ended_at=event.at)
    change = resubmit_elsewhere(noted, event.at, "node.lost")
    old = StopJob(name=job.attempt.name, cluster_job_id=job.attempt.cluster_job_id, twin=True)
    return change._replace(effects=(old, *change.effects))


def resubmit_failed(job: Job, event: OutputsCollected) -> Change:
    """It failed by a fault of the infrastructure: the same run elsewhere, within its own budget."""
    return resubmit_elsewhere(job, event.at, outcome_of(job).cause)
