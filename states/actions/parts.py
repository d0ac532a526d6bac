"""What the verbs are made of: a Change, and the small steps that several of them share.

Never: set the state (the row does), read the world, or decide whether to act (the guard did).
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from states import reports
from states.actions.asking import open_questions, withdraw_all
from states.actions.change import (
    Change,
    after,
    purpose_of,
    tell,
)
from states.actions.hints import admitted, evidence_words, is_doubted, turned_out_wrong
from states.actions.late import look_for_late_jobs
from states.conditions import files_to_look_for, metrics_to_look_for, texts_to_look_for
from states.effects import (
    AnyEffect,
    Collect,
    Delegate,
    ReadLogs,
    Remember,
    Report,
    RunCheck,
    StopChild,
    StopJob,
    Submit,
    TellParent,
)
from states.events import (
    Answered,
    Observed,
    WakeDue,
)
from states.guards import verdict_topic
from states.job import (
    Attempt,
    Check,
    Collected,
    Job,
    State,
    StopOrder,
)
from states.naming import attempt_name, fingerprint
from states.observation import SECOND_LOOK, Match, Observation, Phase
from states.outcome import failure_now
from states.preflight import (
    build_request,
)
from states.questions import Act, Question
from states.reading import Diagnosis, Quote, Track
from states.spec import Request, Spec
from states.staging import purpose_of_child, settled_in_child
from states.timers import look_s, waiting_topic


def check_words(check: Check) -> str:
    return f"{check.name}: {check.level}" + (f" ({check.evidence})" if check.evidence else "")


def start_child(job: Job, purpose: str, request: Request) -> Change:
    """A run of its own, delegated by this one; its end comes back as ChildFinished."""
    child = f"{job.id}-s{len(job.children) + 1}"
    effect = Delegate(child=child, purpose=purpose, request=request)
    return Change(
        job.but(children={**job.children, child: purpose}), (effect,), f"{purpose} run {child} first"
    )


def ask_waiting(job: Job, event: Observed, kind: str, topic: str) -> Change:
    seen = event.observation
    facts = {"name": job.id, "why": seen.reason or seen.native or str(seen.phase)}
    return open_questions(with_look(job, seen), event.at, [(kind, waiting_topic(job, topic), facts, ())])


def ask_concern(job: Job, at: datetime, kind: str, why: str, evidence: tuple[Quote, ...]) -> Change:
    noted = job.but(logs_at=after(at, look_s(job)))
    return open_questions(noted, at, [(kind, verdict_topic(job), {"name": job.id, "why": why}, evidence)])


CHILD_ROWS = frozenset({"smoke", "build", "stage", "repair"})
"""Rows of the report that a run of its own answers, not a check."""


ALSO_TOUCHED: Mapping[str, tuple[str, ...]] = {"gpu": ("request",)}
"""Rows that read a value which an answer may change: a reduced figure may contradict what the command starts."""


def preflight_after(
    job: Job, question: Question | None, event: Answered | WakeDue, tells: tuple[AnyEffect, ...]
) -> tuple[Job, tuple[AnyEffect, ...]]:
    """What preflight does after an answer: look again, go on in spite of it, or build what is missing."""
    if question is None:
        return job, tells
    name = question.facts.get("check", "")
    chosen = next((q for q in job.questions if q.number == question.number), question)
    act = chosen.option(chosen.chosen).act
    job = job.but(checks_at=event.at)
    rows = {key: check for key, check in job.checks.items() if key not in CHILD_ROWS or key != name}
    if act is Act.build:
        wanted = job.but(checks=rows, overridden=(*job.overridden, question.kind))
        started = start_child(wanted, "build", build_request(job))
        return started.job, (*tells, *started.effects)
    if act is Act.go_on:
        return job.but(overridden=(*job.overridden, name or question.kind.removesuffix("-failed"))), tells
    value = chosen.option(chosen.chosen).value
    touched = (question.kind if name in CHILD_ROWS else name, value, *ALSO_TOUCHED.get(value, ()))
    again = tuple(key for key in dict.fromkeys(touched) if key in rows)
    changed = job.but(
        checks={key: check for key, check in rows.items() if key not in again},
        checks_open=tuple(dict.fromkeys((*job.checks_open, *again))),
        overridden=tuple(key for key in job.overridden if key not in again),
    )
    return changed, (*tells, *(RunCheck(name=key) for key in again))


def new_attempt(job: Job, at: datetime, spec: Spec, *, said: str) -> Change:
    number = len(job.attempts) + 1
    attempt = Attempt(
        number=number,
        name=attempt_name(job.id, number, spec),
        fingerprint=fingerprint(spec),
        intent_at=at,
    )
    changed = job.but(spec=spec, attempts=(*job.attempts, attempt))
    return Change(changed, (submit_effect(changed),), said)


def submit_effect(job: Job) -> Submit:
    attempt = job.attempt
    return Submit(name=attempt.name, fingerprint=attempt.fingerprint, owner=job.owner, spec=job.spec)


def another_attempt(job: Job, at: datetime, spec: Spec, report: Report) -> Change:
    """A further attempt: a NEW name, a fresh look at a new log, open questions taken back."""
    withdrawn, tells = withdraw_all(job, at, "the run starts again")
    fresh = withdrawn.but(
        track=track_after_restart(job),
        logs_at=None,
        end=None,
        verdict=None,
        diagnosis=Diagnosis(),
        collected=Collected(),
    )
    change = new_attempt(fresh, at, spec, said=report.text.splitlines()[0])
    return Change(change.job, (*tells, report, *change.effects), change.said)


def resubmit_elsewhere(job: Job, at: datetime, cause: str) -> Change:
    seen = job.end or job.attempt.seen
    node = job.attempt.node or (seen.node if seen is not None else "")
    nodes = (
        (*job.spec.exclude_nodes, node)
        if node and node not in job.spec.exclude_nodes
        else job.spec.exclude_nodes
    )
    spec = job.spec.model_copy(update={"exclude_nodes": nodes})
    counted = job.but(
        resubmissions=job.resubmissions + 1,
        failures=(*job.failures, failure_now(job, cause)),
        collect_at=None,
        collect_tries=0,
    )
    report = tell("resubmitted", reports.resubmitted(counted, at, cause, node), must_not_miss=True)
    return another_attempt(counted, at, spec, report)


def track_after_restart(job: Job) -> Track:
    """What the next program inherits: the milestones reached (a repeat of the same failure must not count as
    new), the learnt cadence and the loss series; not the clock of silence."""
    old = job.track
    return Track(
        milestone_at=old.milestone_at,
        cadence_s=old.cadence_s,
        output_cadence_s=old.output_cadence_s,
        losses=old.losses,
        segment=old.segment + 1,
        bests=old.bests,
    )


def with_acceptance(job: Job, at: datetime, cluster_job_id: str) -> Job:
    return job.but_attempt(
        cluster_job_id=cluster_job_id, accepted_at=at, unclear_since=None, look_up_at=None, resend_at=None
    ).but(reported_at=at)


def submit_reports(job: Job, at: datetime) -> tuple[AnyEffect, ...]:
    values = {
        key: value
        for key, value in (
            ("image", job.spec.image),
            ("environment", job.spec.environment),
            ("proxy", job.spec.proxy),
        )
        if value
    }
    report = tell("submitted", reports.submitted(job, at))
    if not values or job.parent:
        return (report,)
    return (report, Remember(what="used", purpose=purpose_of(job), values=values))


def oldest_of_ours(matches: tuple[Match, ...]) -> Match:
    """The one that was there first; where the cluster does not tell times, the first by id."""
    ours = [match for match in matches if match.ours]
    return min(
        ours,
        key=lambda m: (
            m.submitted_at is None,
            m.submitted_at and m.submitted_at.timestamp(),
            m.cluster_job_id,
        ),
    )


def with_look(job: Job, seen: Observation) -> Job:
    """The look noted on the attempt; whatever answered is reachable again, and a suspicion that is not
    confirmed is dropped."""
    attempt = job.attempt
    changes: dict[str, Any] = {"seen": seen}
    if attempt.suspect is not None and seen.phase not in SECOND_LOOK:
        changes["suspect"] = None
    if seen.phase is Phase.starting and attempt.starting_since is None:
        changes["starting_since"] = seen.taken_at
    if seen.finishing and not (attempt.seen is not None and attempt.seen.finishing):
        changes["ended_at"] = seen.taken_at
    return job.but_attempt(**changes).but(unreachable_since=None, unreachable_said=False)


def native_words(seen: Observation) -> str:
    return " ".join(part for part in (seen.native or str(seen.phase), seen.reason) if part)


def log_read(job: Job, lines: int, *, final: bool = False) -> ReadLogs:
    end = job.end if final else job.attempt.seen
    reasons = tuple(text for text in ((end.reason, end.native) if end else ()) if text)
    return ReadLogs(
        name=job.attempt.name,
        lines=lines,
        final=final,
        look_for=texts_to_look_for(job),
        files=files_to_look_for(job),
        metrics=metrics_to_look_for(job),
        reasons=reasons,
        exit_code=end.exit_code if end and final else None,
        signal=end.signal if end and final else None,
    )


def collect_effects(job: Job) -> tuple[AnyEffect, ...]:
    collect_outputs = Collect(
        name=job.attempt.name, workspace=job.spec.workspace, outputs=job.request.outputs
    )
    return (log_read(job, job.policy.log_lines_max, final=True), collect_outputs)


def evidence_of(job: Job) -> tuple[Quote, ...]:
    return job.verdict.diagnosis.evidence if job.verdict else ()


def verdict_words(job: Job) -> str:
    return job.verdict.summary if job.verdict else ""


def stop_effect(job: Job) -> StopJob:
    return StopJob(name=job.attempt.name, cluster_job_id=job.attempt.cluster_job_id)


def stop_now(job: Job, at: datetime) -> Change:
    order = job.stop
    assert order is not None  # guarded by a_stop_was_asked
    return order_stop(job, at, order, "it is being stopped")


def order_stop(job: Job, at: datetime, order: StopOrder, why: str) -> Change:
    timed = order.model_copy(update={"retry_at": after(at, job.policy.stop_retry_s), "tries": 1})
    withdrawn, tells = withdraw_all(job.but(stop=timed), at, why)
    report = tell("stopping", reports.stopping(withdrawn, at), must_not_miss=order.by == "watchkeeper")
    return Change(withdrawn, (*tells, stop_effect(withdrawn), report), order.reason)


def lost_since_milestone(job: Job, at: datetime) -> str:
    """What a preemption threw away, as far as it is known."""
    main, since = job.track.main, job.track.milestone_at
    if main is None or since is None:
        return "everything since its last saved state"
    return f"everything since its last saved state (it had reached {main.unit or main.name} {main.value:g})"


def end_run(job: Job, at: datetime, state: State, why: str) -> Change:
    """Terminal: outcome in one sentence, next safe action, wrap-up report, lesson; the parent is told."""
    withdrawn, tells = withdraw_all(job, at, "the run is over")
    wrong = turned_out_wrong(withdrawn) if state in (State.failed, State.stopped) else {}
    withdrawn, marks = admitted(withdrawn, wrong, evidence_words(withdrawn))
    ended = withdrawn.but(state=state, outcome=why, stop=withdrawn.stop, logs_at=None, collect_at=None)
    ended = ended.but(next_action=reports.next_action(ended))
    text = reports.not_submitted(ended, at) if state is State.not_submitted else reports.wrap_up(ended, at)
    effects: list[AnyEffect] = [*tells, tell("wrap-up", text, must_not_miss=not job.parent)]
    effects += [StopChild(child=child) for child, purpose in job.children.items() if ":" not in purpose]
    effects += [*lesson(ended, state), *marks, *look_for_late_jobs(ended, at)]
    if job.parent:
        effects.append(
            TellParent(
                parent=job.parent,
                purpose=purpose_of_child(job.request.purpose),
                ok=state is State.succeeded,
                cause=job.diagnosis.cause,
                summary=reports.outcome_line(ended),
                found=settled_in_child(ended),
            )
        )
    return Change(ended, tuple(effects), why)


def lesson(job: Job, state: State) -> list[AnyEffect]:
    """What worked, or the pitfall to avoid (F3)."""
    if job.parent or not job.attempts:
        return []
    values = {"image": job.spec.image, "environment": job.spec.environment, "proxy": job.spec.proxy}
    values = {key: value for key, value in values.items() if value and not is_doubted(job, key)}
    if state is State.succeeded:
        return [Remember(what="worked", purpose=purpose_of(job), values=values)]
    if state is State.failed and job.diagnosis.cause != "none":
        note = f"{job.diagnosis.cause}: {job.diagnosis.advice}".rstrip(": ")
        return [Remember(what="pitfall", purpose=purpose_of(job), values=values, note=note)]
    return []
