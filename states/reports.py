"""What the watch says about a job: each report of its life as plain text, in the job's own language.

A report is a few lines: what happened first, then `label: value` rows. It reads the job and nothing else, so
a report that was lost can be made again word for word. What a log, a cluster or a person wrote goes through
`plain` (I2); only this run's own record is used, so an earlier run's success can never stand in for it (F4).
`at` is the moment of the report (aware); every function answers a str and none raises for missing data.

Never: decide anything about the job; colours; a log's text at length.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from states.job import Job, State
from states.observation import Waiting
from states.questions import Question
from states.timers import late_looks
from states.words.artifacts import artifact_rows
from states.words.closing import OWN, has_cause, standing_checks, unproved_checks
from states.words.closing import next_action as next_action
from states.words.closing import outcome_line as outcome_line
from states.words.goals import goal_rows
from states.words.rows import (
    FINE,
    WORST_FIRST,
    asks,
    attempt_name,
    cause_rows,
    check_rows,
    chosen_words,
    closed_row,
    concern_row,
    evidence_rows,
    facts_of,
    figures,
    listed,
    look_row,
    loss_curve,
    note_rows,
    open_rows,
    ordered,
    progress_rows,
    question_rows,
    row,
    seen_of,
    settled_rows,
    spec_rows,
    standing,
    tell,
    text,
    time_of,
    timeline_rows,
    with_rules,
    words_row,
    worry,
    worst_first,
)
from states.words.wording import plain, since, when

# --- before and at the submit ------------------------------------------------------------------------------


def preflight(job: Job) -> str:
    """One row per check, the worst first: level, name, evidence and how to mend it (A8, C11)."""
    checks = worst_first(job)
    counts = ", ".join(
        f"{sum(check.level == level for check in checks)} {tell(job, f'level.{level}')}"
        for level in WORST_FIRST
        if any(check.level == level for check in checks)
    )
    return text(
        tell(job, "preflight", summary=counts or tell(job, "preflight_empty")),
        *(row for check in checks for row in check_rows(job, check)),
        tell(job, "preflight_open", names=", ".join(job.checks_open)) if job.checks_open else "",
    )


def submitted(job: Job, at: datetime) -> str:
    """What was submitted, for the reader to find it and trust it (C14), and what it was settled from (H2)."""
    return text(
        tell(job, "submitted"),
        *spec_rows(job),
        *settled_rows(job),
        *goal_rows(job),
        *(line for check in unproved_checks(job) for line in check_rows(job, check)),
        *note_rows(job),
        # The report is made in the step that queues it, before the row of the table sets the state.
        look_row(job.but(state=State.queued), at),
    )


def submit_unclear(job: Job, reason: str) -> str:
    """No usable answer to the submit: it is looked up before anything is sent again (I1)."""
    return text(
        tell(job, "submit_unclear", reason=plain(reason) or tell(job, "no_reason")),
        tell(job, "submit_how", name=attempt_name(job)),
    )


def not_submitted(job: Job, at: datetime) -> str:
    """The run ended before it began: the checks that refused, and how to mend each (A8, B1, B2)."""
    return text(
        _first_line(job),
        *(row for check in standing_checks(job) for row in check_rows(job, check)),
        *(closed_row(job, question) for question in job.questions if not question.is_open),
        *note_rows(job),
        tell(job, "not_submitted"),
        *_late_rows(job, at),
        row(job, "next", next_action(job)),
    )


# --- while it waits and runs -------------------------------------------------------------------------------


def still_waiting(job: Job, at: datetime) -> str:
    """Not running yet: normal, and said as such (E1), unless the cluster says that it will not move."""
    seen = seen_of(job)
    stuck = seen is not None and (seen.held or seen.waiting in {Waiting.never, Waiting.held})
    begun = (job.attempts[-1].accepted_at or job.attempts[-1].intent_at) if job.attempts else job.created_at
    first = "still_held" if stuck else "still_waiting"
    return text(
        tell(job, first, time=time_of(job, since(begun, at))),
        words_row(job) or row(job, "words", tell(job, "no_reason")),
        tell(job, "held") if stuck else "",
    )


def started(job: Job, at: datetime) -> str:
    """It runs: where, how long it waited, when its log is looked at first."""
    attempt = job.attempts[-1] if job.attempts else None
    node = plain(attempt.node) if attempt else ""
    begun = attempt.accepted_at if attempt else None
    waited = since(begun, (attempt.started_at if attempt else None) or at) if begun else None
    return text(
        tell(job, "started", where=" " + tell(job, "on_node", node=node) if node else ""),
        row(job, "job", attempt_name(job)),
        tell(job, "waited", time=time_of(job, waited)) if waited is not None else "",
        look_row(job.but(state=State.running), at),
    )


def routine(job: Job, at: datetime) -> str:
    """Phase, progress and any concern (E12)."""
    return text(
        standing(job, at),
        words_row(job),
        *progress_rows(job, at),
        concern_row(job),
        *open_rows(job),
        look_row(job, at),
    )


def resumed(job: Job, at: datetime) -> str:
    """It waits again: the cluster requeued it under the same id, nothing was submitted (WALKS 5)."""
    restarts = str(job.attempts[-1].restarts_seen) if job.attempts else "0"
    return text(
        tell(job, "resumed", attempt=tell(job, "cluster_restarts", count=restarts)),
        words_row(job),
        *progress_rows(job, at),
        tell(job, "resumed_how"),
    )


def restarted(job: Job, at: datetime, lost: str) -> str:
    """Preempted and begun again as a new attempt; says what was lost (E13)."""
    count, limit = str(job.preemptions), str(job.request.max_restarts)
    return text(
        tell(job, "restarted", count=count, limit=limit),
        row(job, "lost", plain(lost) or tell(job, "lost_unknown")),
        row(job, "over", attempt_name(job)),
    )


def resubmitted(job: Job, at: datetime, cause: str, node: str) -> str:
    """The infrastructure failed under it; a new attempt follows, without the node if one is to blame."""
    count, limit = str(job.resubmissions), str(job.policy.infra_resubmits_max)
    return text(
        tell(job, "resubmitted", count=count, limit=limit),
        row(job, "cause", plain(cause) or tell(job, "no_reason")),
        *evidence_rows(job, job.diagnosis.evidence),
        tell(job, "left_out", node=plain(node)) if node else "",
        row(job, "over", attempt_name(job)),
    )


def concern(job: Job, at: datetime) -> str:
    """What looks wrong, with the evidence and the rules it rests on (E5-E9); set apart from routine (E12)."""
    verdict = job.verdict
    if verdict is None or verdict.name in FINE:
        return text(tell(job, "concern_none"), *progress_rows(job, at))
    return text(
        tell(job, "concern", verdict=tell(job, f"verdict.{verdict.name}")),
        row(job, "why", with_rules(plain(verdict.summary), ", ".join(verdict.because))),
        *cause_rows(job.but(diagnosis=verdict.diagnosis)),
        row(job, "advice", plain(verdict.advice)) if verdict.advice != verdict.diagnosis.advice else "",
        *progress_rows(job, at),
        *(open_rows(job) or [tell(job, "watched_on")]),
    )


def stopping(job: Job, at: datetime) -> str:
    """A stop is under way: who decided it, why, by which rule (A2, E6-E8)."""
    order = job.stop
    reason = plain(order.reason) if order else ""
    own = order is not None and order.by == OWN
    by = tell(job, "own_judgment") if own else (plain(order.by) if order else "") or tell(job, "its_owner")
    return text(
        tell(job, "stopping", reason=reason or tell(job, "stop_no_reason")),
        row(job, "by", with_rules(by, order.rule if order else "")),
        *(cause_rows(job) if own else ()),
        tell(job, "stop_how"),
    )


def stop_is_late(job: Job, at: datetime) -> str:
    """The stop was asked for long ago and the end is not seen: said aloud, since it may still cost."""
    order = job.stop
    return text(
        tell(
            job,
            "stop_is_late",
            time=time_of(job, since(order.at, at) if order else 0),
            tries=str(order.tries if order else 0),
        ),
        words_row(job),
        tell(job, "stop_goes_on"),
    )


def unreachable(job: Job, at: datetime, reason: str) -> str:
    """The cluster does not answer; nothing is concluded from it (WALKS 4)."""
    seen = seen_of(job)
    gone_s = since(job.unreachable_since, at) if job.unreachable_since else 0
    return text(
        tell(job, "unreachable", cluster=job.cluster, time=time_of(job, gone_s)),
        row(job, "why", plain(reason)),
        tell(job, "last_seen", phase=seen.phase.value, when=when(seen.taken_at)) if seen else "",
        tell(job, "unreachable_how"),
        look_row(job, at),
    )


def odd_word(job: Job, word: str) -> str:
    """The cluster used a word that its table has not; the job counts as alive (PHASES)."""
    return text(tell(job, "odd_word", word=plain(word, 80)), tell(job, "odd_how"))


def twin_stopped(job: Job, cluster_job_id: str) -> str:
    """Two cluster jobs answered to one name; the younger had not started (I1)."""
    twin = plain(cluster_job_id, 80) or tell(job, "id_open")
    return text(tell(job, "twin_stopped", twin=twin), tell(job, "twin_kept", name=attempt_name(job)))


def earlier_stopped(job: Job, cluster_job_id: str) -> str:
    """A job that was given up for lost came back after another was sent (I1)."""
    earlier = plain(cluster_job_id, 80)
    return text(tell(job, "earlier_stopped", earlier=earlier), tell(job, "twin_kept", name=attempt_name(job)))


def twin_runs(job: Job, cluster_job_ids: str) -> str:
    """Two cluster jobs answer to one name and both run; no question is asked about it now (I1)."""
    return tell(job, "twin_runs", twin=plain(cluster_job_ids, 80), name=attempt_name(job))


def late_job_stopped(job: Job, cluster_job_id: str) -> str:
    """A submit that was given up was carried out after the run had ended (I1)."""
    return tell(job, "late_job", late=plain(cluster_job_id, 80))


# --- questions ---------------------------------------------------------------------------------------------


def asked(job: Job, questions: Sequence[Question]) -> str:
    """All questions in one message: evidence, numbered options, default, deadline, how to answer (G1, A8)."""
    many = tell(job, "asked_one" if len(questions) == 1 else "asked_many", count=str(len(questions)))
    return text(
        tell(job, "asked", count=many),
        *(row for question in questions for row in question_rows(job, question)),
    )


def answered(job: Job, question: Question) -> str:
    """An answer was taken, and whose."""
    by = f" ({tell(job, 'answered_by', name=plain(question.by, 80))})" if question.by else ""
    return text(
        tell(job, "answered", id=question.id, answer=chosen_words(job, question)) + by,
        row(job, "question", asks(job, question)),
    )


def defaulted(job: Job, question: Question) -> str:
    """Nobody answered by the deadline, so the default was carried out; said as such (G2)."""
    deadline = when(question.answer_by)
    answer = chosen_words(job, question) + ordered(job, question.preset_by)
    return text(
        tell(job, "defaulted", id=question.id, when=deadline, answer=answer),
        row(job, "question", asks(job, question)),
    )


def withdrawn(job: Job, question: Question, why: str) -> str:
    """The question no longer matters, with a word why (E9)."""
    return text(
        tell(job, "withdrawn", id=question.id),
        row(job, "why", plain(why or question.closed_why)),
        row(job, "question", asks(job, question)),
    )


# --- the end -----------------------------------------------------------------------------------------------


def wrap_up(job: Job, at: datetime) -> str:
    """The end of the run: outcome first, next safe action last, what supports both between (F1-F5, F7)."""
    return text(
        _first_line(job),
        *(cause_rows(job) if has_cause(job) else ()),
        *artifact_rows(job),
        row(job, "missing", listed(job, job.collected.missing)),
        *timeline_rows(job),
        row(job, "figures", figures(job, at)),
        row(job, "loss", loss_curve(job)),
        row(job, "made", listed(job, [f"{child} ({what})" for child, what in job.children.items()])),
        *note_rows(job),
        *_late_rows(job, at),
        row(job, "next", next_action(job)),
    )


def _late_rows(job: Job, at: datetime) -> list[str]:
    """What may show after the end, and that it will be seen to (I1)."""
    looks = late_looks(job, at)
    return [tell(job, "late_look", time=time_of(job, (when - at).total_seconds())) for _, when in looks[-1:]]


def not_kept(job: Job, reason: str) -> str:
    """Its reports cannot be written under the workspace; said once, and no failure of the run."""
    workspace = plain(job.spec.workspace)
    return text(tell(job, "not_kept", workspace=workspace, reason=plain(reason)), tell(job, "not_kept_how"))


# --- one look ----------------------------------------------------------------------------------------------


def status_line(job: Job, at: datetime) -> str:
    """The job on one line, for lists: id, state and since when, how far, what needs attention."""
    parts = [standing(job, at)]
    if not job.is_terminal:
        parts += [*facts_of(job, at)[:3], worry(job)]
    return ", ".join(part for part in parts if part)


def status(job: Job, at: datetime) -> str:
    """One look at the job on a few lines (A3: a tight summary, not a history)."""
    gone = job.unreachable_since
    ended = job.is_terminal
    return text(
        standing(job, at),
        row(job, "job", f"{attempt_name(job)}, {plain(job.cluster)}, {job.spec.lane}"),
        *([] if ended else settled_rows(job, "size", "lane", "capacity")),
        words_row(job),
        *progress_rows(job, at),
        "" if ended else concern_row(job),
        *([] if ended else goal_rows(job)),
        tell(job, "unreachable_for", time=time_of(job, since(gone, at))) if gone and not ended else "",
        *open_rows(job),
        outcome_line(job) if ended else look_row(job, at),
        row(job, "next", next_action(job)) if ended else "",
    )


def _first_line(job: Job) -> str:
    """The outcome, always with the job's id in it."""
    line = outcome_line(job)
    return line if job.id in line else f"{job.id}: {line}"
