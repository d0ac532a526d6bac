"""The `do` column of the table: verbs on (job, event) that give the changed job and what is to be done.

An action never sets the state (the row does) and never reads the world; it notes, and it asks for effects.

Never: decide whether it should have been called; that was the guard.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from states import reports
from states.conditions import met_condition, texts_to_look_for
from states.effects import (
    AnyEffect,
    Ask,
    Collect,
    Delegate,
    DeleteJob,
    FindByName,
    Interpret,
    ReadLogs,
    Remember,
    Report,
    RunCheck,
    StopChild,
    StopJob,
    Submit,
    TellParent,
    Withdraw,
)
from states.events import (
    Answered,
    CheckFinished,
    ChildFinished,
    ClusterUnreachable,
    Delegated,
    Deleted,
    DeleteRequested,
    EffectGivenUp,
    Interpreted,
    LogsRead,
    LookedUp,
    Observed,
    OutputsCollected,
    StopAsked,
    StopRequested,
    Submitted,
    SubmitRejected,
    SubmitUnclear,
    WakeDue,
)
from states.guards import WAITS, question_at, verdict_topic
from states.job import QUESTIONS_MAX, TOPICS_MAX, Attempt, Check, Failure, Job, State, StopOrder
from states.naming import attempt_name, fingerprint
from states.observation import SECOND_LOOK, Match, Observation, Phase
from states.outcome import outcome_of
from states.preflight import (
    build_request,
    refusals,
    smoke_request,
    unanswered,
    with_values,
)
from states.questions import Act, Choice, NotAnAnswer, Question, Status, understand
from states.reading import Quote, Track
from states.spec import Request, Spec
from states.timers import look_s, waiting_topic


class Change(NamedTuple):
    """What an action gives back. said: the evidence or reason in one line, for `wk why`."""

    job: Job
    effects: tuple[AnyEffect, ...] = ()
    said: str = ""


def stay(job: Job, event: object) -> Change:
    """Nothing changes."""
    return Change(job)


# --- preflight ---------------------------------------------------------------------------------------------


def begin_checks(job: Job, event: Delegated) -> Change:
    """Run every preflight check at once, so that all that is missing comes back in one message."""
    started = job.but(checks_open=event.checks, checks_at=event.at)
    return Change(started, tuple(RunCheck(name=name) for name in event.checks), f"delegated by {event.by or 'its owner'}")


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
    return Change(job, (), _check_words(event.check))


def refuse(job: Job, event: CheckFinished | Answered | WakeDue) -> Change:
    """End unsubmitted: something in the request may not run."""
    found = refusals(job)
    return _end(job, event.at, State.not_submitted, "; ".join(check.evidence for check in found))


def ask_for_missing(job: Job, event: CheckFinished | Answered | WakeDue) -> Change:
    """Put everything that is missing into one message (A8)."""
    missing = [check for check in unanswered(job) if not _is_asked(job, check)]
    return _ask(job, event.at, [(c.question, f"check:{c.name}", _check_facts(job, c), ()) for c in missing])


def run_smoke(job: Job, event: object) -> Change:
    """Prove the set-up with a cheap run before the real submit is spent (D4)."""
    return _start_child(job, "smoke", smoke_request(job))


def note_child(job: Job, event: ChildFinished) -> Change:
    """The smoke or build run passed: its row is written down."""
    return Change(job, (), event.summary or f"{event.purpose} run passed")


def ask_about_child(job: Job, event: ChildFinished) -> Change:
    """The smoke or build run failed: nothing is submitted on it, the person decides (default: don't submit)."""
    row = job.checks[event.purpose]
    facts = _check_facts(job, row)
    return _ask(job, event.at, [(row.question, f"child:{event.child}", facts, event.evidence)])


def submit_first(job: Job, event: CheckFinished | ChildFinished | Answered | WakeDue) -> Change:
    """All is settled: the attempt gets its name and is submitted, with no click in between (A6)."""
    return _submit(job, event.at, job.spec, said="every check is settled")


def rerun_checks(job: Job, event: WakeDue) -> Change:
    """Checks that have not answered are asked again."""
    asked = tuple(RunCheck(name=name) for name in job.checks_open)
    return Change(job.but(checks_at=event.at), asked, f"no answer yet from: {', '.join(job.checks_open)}")


def note_lost_check(job: Job, event: EffectGivenUp) -> Change:
    """A check could not run at all: said so, never passed in silence."""
    lost = {name: Check(name=name, level="could_not", evidence=event.reason) for name in job.checks_open}
    return Change(job.but(checks={**job.checks, **lost}, checks_open=()), (), event.reason)


# --- submitting --------------------------------------------------------------------------------------------


def note_accepted(job: Job, event: Submitted) -> Change:
    """Report what was submitted and record the config that was used (C14, C15)."""
    accepted = _accepted(job, event.at, event.cluster_job_id).with_note(event.note)
    return Change(accepted, _submit_reports(accepted, event.at), f"id {event.cluster_job_id}")


def note_accepted_and_stop(job: Job, event: Submitted) -> Change:
    """It was accepted while a stop was waiting for it: stop it now (WISHES 7)."""
    return _stop_now(_accepted(job, event.at, event.cluster_job_id), event.at)


def resend_later(job: Job, event: SubmitRejected) -> Change:
    """A refusal that may pass: nothing is there, so the same name is sent again in a while."""
    at = _in(event.at, job.policy.submit_retry_s)
    return Change(job.but_attempt(resend_at=at), (), event.reason)


def send_again(job: Job, event: WakeDue | LookedUp | Answered) -> Change:
    """Submit once more under the SAME name: provably not there, or a person said so."""
    attempt = job.attempt
    changed = job.but_attempt(
        sends=attempt.sends + 1, unclear_since=None, look_up_at=None, resend_at=None, intent_at=event.at
    )
    closed, tells = _close_by(changed, event)
    return Change(closed, (*tells, _submit_effect(closed)), "provably not there" if isinstance(event, LookedUp) else "")


def ask_for_image(job: Job, event: SubmitRejected) -> Change:
    """The image cannot be used: ask for a known-good one; never try another tag (C5). A remembered one is stale (F5)."""
    facts = {"name": job.id, "why": event.reason}
    stale = Remember(what="stale", purpose=_purpose(job), values={"image": job.spec.image}, note=event.reason)
    asked = _ask(job, event.at, [("image", f"image:{job.spec.image}", facts, ())])
    return Change(asked.job, (stale, *asked.effects), event.reason)


def ask_about_refusal(job: Job, event: SubmitRejected) -> Change:
    """The cluster refused the spec: no job exists, the person decides (default: don't submit)."""
    facts = {"name": job.id, "why": event.reason}
    return _ask(job, event.at, [("rejected", f"rejected:{job.attempt.name}:{job.attempt.sends}", facts, ())])


def end_unsubmitted(job: Job, event: SubmitRejected | LookedUp | Answered | WakeDue | StopRequested) -> Change:
    """Nothing was submitted, and nothing will be."""
    why = getattr(event, "reason", "") or "it was given up before anything was submitted"
    closed, tells = _close_by(job, event)
    ended = _end(closed, event.at, State.not_submitted, why)
    return Change(ended.job, (*tells, *ended.effects), why)


def seek(job: Job, event: SubmitUnclear) -> Change:
    """The answer was lost: look by name after a pause, never send blindly (DESIGN 4.2)."""
    changed = job.but_attempt(unclear_since=event.at, look_up_at=_in(event.at, job.policy.look_up_s))
    report = _report("submit-unclear", reports.submit_unclear(changed, event.reason))
    return Change(changed, (report,), event.reason)


def look_up(job: Job, event: WakeDue) -> Change:
    """Ask by name."""
    attempt = job.attempt
    effect = FindByName(name=attempt.name, fingerprint=attempt.fingerprint, owner=job.owner)
    later = _in(event.at, max(job.policy.look_up_s, job.capabilities.submit_timeout_s))
    return Change(job.but_attempt(look_up_at=later), (effect,), "looking by name")


def adopt(job: Job, event: LookedUp) -> Change:
    """It is there: adopt the oldest of ours (name, fingerprint and owner agree) as this attempt's job."""
    match = _oldest(event.matches)
    accepted = _accepted(job, event.at, match.cluster_job_id)
    withdrawn, tells = _withdraw_all(accepted, event.at, "the job was found on the cluster")
    return Change(withdrawn, (*tells, *_submit_reports(withdrawn, event.at)), f"found by name: {match.cluster_job_id}")


def adopt_and_stop(job: Job, event: LookedUp) -> Change:
    """It is there, and a stop was waiting for it."""
    return _stop_now(_accepted(job, event.at, _oldest(event.matches).cluster_job_id), event.at)


def keep_seeking(job: Job, event: LookedUp) -> Change:
    """Not there yet, or not to be asked: look again later."""
    said = event.reason if not event.reachable else "not there yet"
    return Change(job.but_attempt(look_up_at=_in(event.at, job.policy.look_up_s)), (), said)


def ask_about_submit(job: Job, event: LookedUp) -> Change:
    """Not settled within the bound: ask (default: keep looking, don't submit)."""
    why = event.reason if not event.reachable else f"{job.attempt.sends} sends, and no job of that name shows"
    facts = {"name": job.id, "why": why}
    asked = _ask(job, event.at, [("unsettled", f"unsettled:{job.attempt.name}", facts, ())])
    return asked._replace(job=asked.job.but_attempt(look_up_at=_in(event.at, job.policy.look_up_s)))


def ask_about_name(job: Job, event: LookedUp) -> Change:
    """A job of that name is there and is not ours: nothing is adopted."""
    why = f"a job named {job.attempt.name} is on the cluster and does not carry this run's mark"
    return _ask(job, event.at, [("unsettled", f"taken:{job.attempt.name}", {"name": job.id, "why": why}, ())])


# --- looking -----------------------------------------------------------------------------------------------


def note_look(job: Job, event: Observed) -> Change:
    """Take the look down; nothing else has changed that matters."""
    return Change(_seen(job, event.observation), (), _native(event.observation))


def suspect(job: Job, event: Observed) -> Change:
    """A first look at preempted, lost or gone: believed only if the second says the same."""
    seen, first = event.observation, job.attempt.suspect
    kept = first if first is not None and first.phase is seen.phase else seen
    return Change(_seen(job, seen).but_attempt(suspect=kept), (), f"{seen.phase}: {_native(seen)}")


def stop_the_younger(job: Job, event: Observed) -> Change:
    """A double that has not started is stopped at once, and said aloud (DESIGN 4.4)."""
    twins = [twin for twin in event.observation.twins if twin.ours and twin.phase in WAITS]
    effects: list[AnyEffect] = [StopJob(name=t.name, cluster_job_id=t.cluster_job_id, twin=True) for t in twins]
    effects += [_report("twin", reports.twin_stopped(job, t.cluster_job_id), must_not_miss=True) for t in twins]
    return Change(_seen(job, event.observation), tuple(effects), f"twin {', '.join(t.cluster_job_id for t in twins)}")


def ask_about_twins(job: Job, event: Observed) -> Change:
    """Two of ours run: both may write the same files, so a person decides (default: leave both)."""
    twin = next(t for t in event.observation.twins if t.ours and t.phase is Phase.running)
    why = f"{job.attempt.cluster_job_id} and {twin.cluster_job_id}"
    facts = {"name": job.id, "why": why, "twin": twin.cluster_job_id}
    return _ask(_seen(job, event.observation), event.at, [("twins", f"twins:{twin.cluster_job_id}", facts, ())])


def note_start(job: Job, event: Observed) -> Change:
    """It runs: say so once, and read the log soon."""
    seen = event.observation
    attempt_at = seen.started_at or event.at
    started = _seen(job, seen).but_attempt(started_at=attempt_at, starting_since=None, node=seen.node)
    started = started.but(logs_at=_in(event.at, job.policy.look_s_first), reported_at=event.at)
    withdrawn, tells = _withdraw_all(started, event.at, "it runs now")
    return Change(withdrawn, (*tells, _report("started", reports.started(withdrawn, event.at))), _native(seen))


def note_start_meanwhile(job: Job, event: Observed) -> Change:
    """It runs, and the open question stands: it goes on being watched as a running job (G3)."""
    seen = event.observation
    started = _seen(job, seen).but_attempt(started_at=seen.started_at or event.at, starting_since=None, node=seen.node)
    started = started.but(resume_to=State.running, logs_at=_in(event.at, job.policy.look_s_first))
    return Change(started, (_report("started", reports.started(started, event.at)),), _native(seen))


def withdraw_wait(job: Job, event: Observed) -> Change:
    """What the question was about is over: taken back with the reason."""
    withdrawn, tells = _withdraw_all(_seen(job, event.observation), event.at, _native(event.observation))
    return Change(withdrawn, tells, _native(event.observation))


def note_requeue(job: Job, event: Observed) -> Change:
    """The cluster put it back under the same id: no submit of ours, a fresh watch of its log."""
    seen = event.observation
    changed = _seen(job, seen).but_attempt(started_at=None, starting_since=None, restarts_seen=seen.attempt)
    changed = changed.but(logs_at=None, track=_track_after_restart(job))
    withdrawn, tells = _withdraw_all(changed, event.at, "the cluster put the job back into its queue")
    report = _report("resumed", reports.resumed(withdrawn, event.at), must_not_miss=False)
    return Change(withdrawn, (*tells, report), _native(seen))


def read_logs(job: Job, event: Observed) -> Change:
    """A look at the log is due: read a bounded tail (E2)."""
    noted = _seen(job, event.observation)
    later = _in(event.at, look_s(job))
    return Change(noted.but(logs_at=later), (_read(noted, job.policy.log_lines),), "log look due")


def ask_about_hold(job: Job, event: Observed) -> Change:
    """Held: it will not move without a person (default: wait)."""
    return _ask_about_wait(job, event, "held", f"held:{event.observation.reason}")


def ask_about_fit(job: Job, event: Observed) -> Change:
    """A reason that no waiting cures (default: wait, since only the person can change the figure: C3)."""
    return _ask_about_wait(job, event, "never-fits", f"never-fits:{event.observation.reason}")


def ask_about_wait(job: Job, event: Observed) -> Change:
    """Queued or starting for very long: ask whether to go on (default: wait)."""
    topic = "starting" if job.attempt.starting_since is not None else "queued"
    return _ask_about_wait(job, event, "waits-long", topic)


def ask_about_finish(job: Job, event: Observed) -> Change:
    """The work is over and the cluster does not close it: ask (default: wait)."""
    return _ask_about_wait(job, event, "waits-long", f"finishing:{event.observation.reason}")


def report_odd_word(job: Job, event: Observed) -> Change:
    """A word that this cluster's table does not have: alive, and said (PHASES 4)."""
    word = event.observation.native
    noted = _seen(job, event.observation).but(odd_words=(*job.odd_words, word)[-8:])
    return Change(noted, (_report("odd-word", reports.odd_word(noted, word)),), word)


def note_away(job: Job, event: ClusterUnreachable) -> Change:
    """It could not be asked: nothing is concluded (WISHES 1)."""
    return Change(job.but(unreachable_since=job.unreachable_since or event.at), (), event.reason)


def report_away(job: Job, event: ClusterUnreachable) -> Change:
    """One routine word that the cluster does not answer."""
    said = job.but(unreachable_said=True)
    return Change(said, (_report("unreachable", reports.unreachable(said, event.at, event.reason)),), event.reason)


def ask_about_away(job: Job, event: ClusterUnreachable) -> Change:
    """Away for very long: ask (default: keep waiting)."""
    facts = {"name": job.id, "why": event.reason}
    return _ask(job, event.at, [("unreachable", f"unreachable:{job.unreachable_since}", facts, ())])


# --- reading -----------------------------------------------------------------------------------------------


def note_progress(job: Job, event: LogsRead) -> Change:
    """Nothing to worry about: next look at the learnt cadence."""
    return Change(job.but(logs_at=_in(event.at, look_s(job))), (), _verdict_words(job))


def report_progress(job: Job, event: LogsRead) -> Change:
    """A routine report is due: phase and progress in plain text (E12)."""
    noted = job.but(logs_at=_in(event.at, look_s(job)), reported_at=event.at)
    return Change(noted, (_report("routine", reports.routine(noted, event.at)),), _verdict_words(job))


def note_unreadable(job: Job, event: LogsRead) -> Change:
    """The log could not be read: nothing is concluded; look again later."""
    return Change(job.but(logs_at=_in(event.at, look_s(job))), (), event.reason)


def read_more(job: Job, event: LogsRead) -> Change:
    """The tail does not settle it: raise the bound (E2)."""
    return Change(job, (_read(job, min(event.lines * 5, job.policy.log_lines_max)),), _verdict_words(job))


def interpret(job: Job, event: LogsRead) -> Change:
    """The rules cannot settle it: let the model read (it decides nothing: I2)."""
    situation = job.verdict.summary if job.verdict else ""
    effect = Interpret(name=job.attempt.name, lines=job.policy.log_lines, situation=situation)
    return Change(job.but(logs_at=_in(event.at, look_s(job))), (effect,), _verdict_words(job))


def note_reading(job: Job, event: Interpreted) -> Change:
    """The model's reading is valid and calm: kept as evidence, the job goes on."""
    calm = f"the model read a calm phase: {event.summary}" if event.summary and not event.failed else ""
    return Change(job.with_note(calm), (), event.summary or event.failed)


def ask_whether_off(job: Job, event: LogsRead | Interpreted) -> Change:
    """It looks off, but it may be a slow phase: ask (default: keep running)."""
    evidence = _evidence(job) + (event.quotes if isinstance(event, Interpreted) and not event.failed else ())
    why = _verdict_words(job)
    if isinstance(event, Interpreted) and not event.failed and event.summary:
        why = f"{why} The model reads it so: {event.summary}"
    return _ask_concern(job, event.at, "looks-off", why, evidence)


def ask_about_network(job: Job, event: LogsRead) -> Change:
    """A fetch keeps failing: ask for a proxy (default: go on without)."""
    return _ask_concern(job, event.at, "network", _verdict_words(job), _evidence(job))


def ask_about_download(job: Job, event: LogsRead) -> Change:
    """A download drags: ask to wait or for a copy on a cluster path (default: stop the download)."""
    return _ask_concern(job, event.at, "download", _verdict_words(job), _evidence(job))


def ask_about_clear_case(job: Job, event: LogsRead) -> Change:
    """Hopeless, but it is not ours to stop: ask (A10, default: keep running)."""
    return _ask_concern(job, event.at, "clear-case", _verdict_words(job), _evidence(job))


def withdraw_concern(job: Job, event: LogsRead) -> Change:
    """It moves again: the question is taken back with the reason (E9)."""
    moved = job.but(logs_at=_in(event.at, look_s(job)))
    withdrawn, tells = _withdraw_all(moved, event.at, _verdict_words(job) or "it moves again")
    return Change(withdrawn, tells, _verdict_words(job))


def stop_as_wasted(job: Job, event: LogsRead) -> Change:
    """A clear case: stop it on its own judgment, and say why (E6, E7)."""
    verdict = job.verdict
    rule = verdict.because[0] if verdict and verdict.because else "E7"
    order = StopOrder(by="watchkeeper", reason=_verdict_words(job), rule=rule, at=event.at)
    return _order_stop(job, event.at, order, "it is being stopped")


def stop_by_condition(job: Job, event: LogsRead | WakeDue) -> Change:
    """The request's own stop condition is met (E8)."""
    met = met_condition(job, event) if isinstance(event, LogsRead) else None
    walls = [c for c in job.request.stop_when if c.wall_s is not None]
    words = (met or walls[0]).in_words()
    order = StopOrder(by="watchkeeper", reason=f"its own stop condition is met: {words}", rule="E8", at=event.at)
    return _order_stop(job, event.at, order, "its stop condition is met")


# --- answers and defaults ----------------------------------------------------------------------------------


def refuse_answer(job: Job, event: Answered) -> Change:
    """It does not answer the question, which stays open (G4)."""
    question = question_at(job, event)
    if question is None:
        return Change(job, (), _closed_words(job, event.number))
    heard = understand(question, event.reply)
    return Change(job, (), heard.reason if isinstance(heard, NotAnAnswer) else "")


def take_answer(job: Job, event: Answered | WakeDue) -> Change:
    """The answer, or the default at its deadline, is taken; the job goes on where it was."""
    closed, tells = _close_by(job, event)
    return Change(closed, tells, _answer_words(job, event))


def take_answer_and_watch(job: Job, event: Answered | WakeDue) -> Change:
    """The same for a job that runs: its log is looked at again soon."""
    closed, tells = _close_by(job, event)
    return Change(closed.but(logs_at=_in(event.at, look_s(closed))), tells, _answer_words(job, event))


def take_answer_and_check(job: Job, event: Answered | WakeDue) -> Change:
    """Go on with preflight: what the answer touched is checked again, the rest stands."""
    question = question_at(job, event)
    closed, tells = _close_by(job, event)
    return Change(*_preflight_after(closed, question, event, tells), said=_answer_words(job, event))


def take_answer_and_respecify(job: Job, event: Answered | WakeDue) -> Change:
    """A refused submit gets a new value: the whole gate is passed again, and the next submit is a new attempt."""
    closed, tells = _close_by(job, event)
    names = tuple(closed.checks)
    again = closed.but(checks={}, checks_open=names, checks_at=event.at, overridden=())
    return Change(again, (*tells, *(RunCheck(name=name) for name in names)), _answer_words(job, event))


def take_answer_and_stop(job: Job, event: Answered | WakeDue) -> Change:
    """The answer (or a default that the seed names: E11) is to stop."""
    closed, tells = _close_by(job, event)
    by = event.by if isinstance(event, Answered) else "the question's default"
    order = StopOrder(by=by, reason=f"answered: {_answer_words(job, event)}", rule="G2", at=event.at)
    change = _order_stop(closed, event.at, order, "it is being stopped")
    return Change(change.job, (*tells, *change.effects), _answer_words(job, event))


def take_answer_and_stop_twin(job: Job, event: Answered | WakeDue) -> Change:
    """The younger of two is stopped because a person said so."""
    question = question_at(job, event)
    closed, tells = _close_by(job, event)
    twin = question.facts.get("twin", "") if question else ""
    stop = StopJob(name=job.attempt.name, cluster_job_id=twin, twin=True)
    return Change(closed, (*tells, stop), f"stop twin {twin}")


# --- stopping ----------------------------------------------------------------------------------------------


def stop_on_request(job: Job, event: StopRequested) -> Change:
    """A person asked: halt the job; the record stays (A2)."""
    order = StopOrder(by=event.by, reason=event.reason or "asked for", rule="A2", at=event.at)
    return _order_stop(job, event.at, order, "it is being stopped")


def note_stop(job: Job, event: StopRequested) -> Change:
    """The submit's answer is still out: the stop waits for it and is not lost."""
    order = StopOrder(by=event.by, reason=event.reason or "asked for", rule="A2", at=event.at)
    return Change(job.but(stop=order), (), f"stop asked by {event.by or 'its owner'}")


def note_stop_and_seek(job: Job, event: StopRequested | Answered | WakeDue) -> Change:
    """It is to be stopped, and the submit's answer is still out: look until it is known what there is."""
    closed, tells = _close_by(job, event)
    by = getattr(event, "by", "") or "its owner"
    closed = closed.but(stop=StopOrder(by=by, reason=getattr(event, "reason", "") or "asked for", rule="A2", at=event.at))
    withdrawn, more = _withdraw_all(closed, event.at, "it is being stopped")
    return Change(withdrawn.but_attempt(look_up_at=event.at), (*tells, *more), f"stop asked by {by}")


def stop_again(job: Job, event: WakeDue | Observed) -> Change:
    """It still lives: ask again; a stop is an intent until the cluster shows the end (WISHES 7)."""
    noted = _seen(job, event.observation) if isinstance(event, Observed) else job
    order = noted.stop
    assert order is not None  # guarded by a_retry_is_due
    late = (event.at - order.at).total_seconds() >= job.policy.stop_report_s and not order.said_late
    later = order.model_copy(
        update={
            "tries": order.tries + 1,
            "retry_at": _in(event.at, job.policy.stop_retry_s),
            "said_late": order.said_late or late,
        }
    )
    effects: tuple[AnyEffect, ...] = (_stop_effect(noted),)
    if late:
        effects = (*effects, _report("stop-late", reports.stop_is_late(noted, event.at), must_not_miss=True))
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


# --- the end -----------------------------------------------------------------------------------------------


def collect(job: Job, event: Observed) -> Change:
    """It is over: one last bounded log read, then the outputs (F1)."""
    seen = event.observation
    noted = _seen(job, seen).but_attempt(ended_at=seen.ended_at or event.at)
    noted = noted.but(end=seen, logs_at=None, collect_at=_in(event.at, job.policy.collect_retry_s), collect_tries=1)
    withdrawn, tells = _withdraw_all(noted, event.at, f"the job is over ({seen.phase})")
    return Change(withdrawn, (*tells, *_collect_effects(withdrawn)), _native(seen))


def collect_after_refusal(job: Job, event: SubmitRejected) -> Change:
    """A restart was refused, but an earlier attempt ran: wrap up what there is."""
    end = job.attempts[-2].seen if len(job.attempts) > 1 else None
    noted = job.but(end=end, collect_at=_in(event.at, job.policy.collect_retry_s), collect_tries=1)
    noted = noted.with_note(f"the restart was refused: {event.reason}")
    return Change(noted, _collect_effects(noted), event.reason)


def collect_again(job: Job, event: WakeDue) -> Change:
    """The wrap-up's reads have not answered: ask again."""
    later = _in(event.at, job.policy.collect_retry_s)
    return Change(job.but(collect_at=later, collect_tries=job.collect_tries + 1), _collect_effects(job), "asked again")


def note_final_log(job: Job, event: LogsRead) -> Change:
    """The last log read is in; the outputs are still to come."""
    return Change(job, (), _verdict_words(job) if event.readable else event.reason)


def finish(job: Job, event: OutputsCollected | WakeDue) -> Change:
    """Say the outcome, where the artifacts are and the next safe action; record the lesson (F2, F3)."""
    outcome = outcome_of(job)
    return _end(job, event.at, outcome.state, outcome.why)


def restart(job: Job, event: Observed) -> Change:
    """Preempted for good: a NEW attempt from the last saved state, and what was lost is said (E13)."""
    lost = _lost_since_milestone(job, event.at)
    noted = _seen(job, event.observation).but_attempt(ended_at=event.at)
    noted = noted.but(preemptions=job.preemptions + 1)
    return _another(noted, event.at, noted.spec, _report("restarted", reports.restarted(noted, event.at, lost), must_not_miss=True))


def resubmit_lost(job: Job, event: Observed) -> Change:
    """The node is lost: the same run elsewhere, within the infrastructure's own budget."""
    noted = _seen(job, event.observation).but_attempt(ended_at=event.at)
    return _resubmit(noted, event.at, "node.lost")


def resubmit_failed(job: Job, event: OutputsCollected) -> Change:
    """It failed by a fault of the infrastructure: the same run elsewhere, within its own budget."""
    return _resubmit(job, event.at, outcome_of(job).cause)


# --- helpers of this file ----------------------------------------------------------------------------------


def _report(stage: str, text: str, *, must_not_miss: bool = False) -> Report:
    return Report(stage=stage, text=text, must_not_miss=must_not_miss)


def _in(at: datetime, seconds: float) -> datetime:
    return at + timedelta(seconds=seconds)


def _purpose(job: Job) -> str:
    return job.request.purpose or job.request.name or job.id.rsplit("-", 1)[0]


def _check_words(check: Check) -> str:
    return f"{check.name}: {check.level}" + (f" ({check.evidence})" if check.evidence else "")


def _check_facts(job: Job, check: Check) -> dict[str, str]:
    why = check.evidence + (f" {check.mend}" if check.mend else "")
    return {"name": job.id, "why": why, "check": check.name, **check.facts}


def _is_asked(job: Job, check: Check) -> bool:
    return any(q.is_open and q.facts.get("check") == check.name for q in job.questions)


def _start_child(job: Job, purpose: str, request: Request) -> Change:
    """A run of its own, delegated by this one; its end comes back as ChildFinished."""
    child = f"{job.id}-s{len(job.children) + 1}"
    effect = Delegate(child=child, purpose=purpose, request=request)
    return Change(job.but(children={**job.children, child: purpose}), (effect,), f"{purpose} run {child} first")


def _ask(
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
        question = question.model_copy(update={"answer_by": _in(at, limit_s)})
        questions.append(question)
        new.append(question)
    changed = job.but(
        questions=tuple(questions[-QUESTIONS_MAX:]),
        asked_topics=(*job.asked_topics, *(q.topic for q in new))[-TOPICS_MAX:],
    )
    return Change(changed, (Ask(questions=tuple(new)),), "; ".join(q.facts.get("why", "") for q in new))


def _ask_about_wait(job: Job, event: Observed, kind: str, topic: str) -> Change:
    seen = event.observation
    facts = {"name": job.id, "why": seen.reason or seen.native or str(seen.phase)}
    return _ask(_seen(job, seen), event.at, [(kind, waiting_topic(job, topic), facts, ())])


def _ask_concern(job: Job, at: datetime, kind: str, why: str, evidence: tuple[Quote, ...]) -> Change:
    noted = job.but(logs_at=_in(at, look_s(job)))
    return _ask(noted, at, [(kind, verdict_topic(job), {"name": job.id, "why": why}, evidence)])


def _answer_words(job: Job, event: Answered | WakeDue) -> str:
    question = question_at(job, event)
    if question is None:
        return ""
    if isinstance(event, WakeDue):
        return f"no answer by {question.answer_by.isoformat()}: default {question.default.key}"
    return f"{event.by or 'its owner'} answered {event.reply}"


def _closed_words(job: Job, number: int) -> str:
    """What already happened to a question that is not open (G4)."""
    question = next((q for q in job.questions if q.number == number), None)
    if question is None:
        return f"there is no question {number}"
    chosen = f": {question.chosen}" if question.chosen else ""
    return f"question {number} was {question.status}{chosen}{' (' + question.closed_why + ')' if question.closed_why else ''}"


def _close_by(job: Job, event: object) -> tuple[Job, tuple[AnyEffect, ...]]:
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
        return _replaced(job, closed), (_report("defaulted", text, must_not_miss=True),)
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
    changed = _replaced(job, closed)
    effects: tuple[AnyEffect, ...] = (_report("answered", reports.answered(changed, closed)),)
    if choice.option.act is Act.set_value:
        changed = changed.but(spec=with_values(changed.spec, {choice.option.value: choice.value}))
        fact = Remember(what="fact", purpose=_purpose(job), values={choice.option.value: choice.value})
        effects = (*effects, fact)
    return changed, effects


def _replaced(job: Job, closed: Question) -> Job:
    return job.but(questions=tuple(closed if q.number == closed.number else q for q in job.questions))


def _withdraw_all(job: Job, at: datetime, why: str) -> tuple[Job, tuple[AnyEffect, ...]]:
    """Close every open question, each with the reason (E9)."""
    effects: list[AnyEffect] = []
    for question in job.open_questions:
        closed = question.model_copy(update={"status": Status.withdrawn, "closed_at": at, "closed_why": why})
        job = _replaced(job, closed)
        effects.append(Withdraw(number=question.number, why=why))
    return job, tuple(effects)


def _preflight_after(
    job: Job, question: Question | None, event: Answered | WakeDue, tells: tuple[AnyEffect, ...]
) -> tuple[Job, tuple[AnyEffect, ...]]:
    """What preflight does after an answer: look again, go on in spite of it, or build what is missing."""
    if question is None:
        return job, tells
    name = question.facts.get("check", "")
    chosen = next((q for q in job.questions if q.number == question.number), question)
    act = chosen.option(chosen.chosen).act
    job = job.but(checks_at=event.at)
    if act is Act.build:
        started = _start_child(job.but(overridden=(*job.overridden, name)), "build", build_request(job))
        return started.job, (*tells, *started.effects)
    if act is Act.go_on:
        return job.but(overridden=(*job.overridden, name or question.kind.removesuffix("-failed"))), tells
    if question.kind == "smoke-failed":
        left = {key: check for key, check in job.checks.items() if key != "smoke"}
        return job.but(checks=left), tells
    again = tuple(dict.fromkeys((name, "image" if act is Act.set_value else name)))
    again = tuple(key for key in again if key in job.checks)
    checks = {key: check for key, check in job.checks.items() if key not in again}
    changed = job.but(checks=checks, checks_open=(*job.checks_open, *again))
    return changed, (*tells, *(RunCheck(name=key) for key in again))


def _submit(job: Job, at: datetime, spec: Spec, *, said: str) -> Change:
    number = len(job.attempts) + 1
    attempt = Attempt(
        number=number,
        name=attempt_name(job.id, number, spec),
        fingerprint=fingerprint(spec),
        intent_at=at,
    )
    changed = job.but(spec=spec, attempts=(*job.attempts, attempt))
    return Change(changed, (_submit_effect(changed),), said)


def _submit_effect(job: Job) -> Submit:
    attempt = job.attempt
    return Submit(name=attempt.name, fingerprint=attempt.fingerprint, owner=job.owner, spec=job.spec)


def _another(job: Job, at: datetime, spec: Spec, report: Report) -> Change:
    """A further attempt: a NEW name, a fresh look at a new log, open questions taken back."""
    withdrawn, tells = _withdraw_all(job, at, "the run starts again")
    fresh = withdrawn.but(track=_track_after_restart(job), logs_at=None, end=None, verdict=None)
    change = _submit(fresh, at, spec, said=report.text.splitlines()[0])
    return Change(change.job, (*tells, report, *change.effects), change.said)


def _resubmit(job: Job, at: datetime, cause: str) -> Change:
    node = job.attempt.node
    nodes = (*job.spec.exclude_nodes, node) if node and node not in job.spec.exclude_nodes else job.spec.exclude_nodes
    spec = job.spec.model_copy(update={"exclude_nodes": nodes})
    failure = Failure(fingerprint=cause, milestone_at=job.track.milestone_at)
    counted = job.but(
        resubmissions=job.resubmissions + 1, failures=(*job.failures, failure), collect_at=None, collect_tries=0
    )
    report = _report("resubmitted", reports.resubmitted(counted, at, cause, node), must_not_miss=True)
    return _another(counted, at, spec, report)


def _track_after_restart(job: Job) -> Track:
    """What the next program inherits: the milestones reached (a repeat of the same failure must not count as
    new), the learnt cadence and the loss series; not the clock of silence."""
    old = job.track
    return Track(
        milestone_at=old.milestone_at,
        cadence_s=old.cadence_s,
        output_cadence_s=old.output_cadence_s,
        losses=old.losses,
        segment=old.segment + 1,
    )


def _accepted(job: Job, at: datetime, cluster_job_id: str) -> Job:
    return job.but_attempt(
        cluster_job_id=cluster_job_id, accepted_at=at, unclear_since=None, look_up_at=None, resend_at=None
    ).but(reported_at=at)


def _submit_reports(job: Job, at: datetime) -> tuple[AnyEffect, ...]:
    values = {
        key: value
        for key, value in (
            ("image", job.spec.image),
            ("environment", job.spec.environment),
            ("proxy", job.spec.proxy),
        )
        if value
    }
    report = _report("submitted", reports.submitted(job, at))
    if not values or job.parent:
        return (report,)
    return (report, Remember(what="used", purpose=_purpose(job), values=values))


def _oldest(matches: tuple[Match, ...]) -> Match:
    """The one that was there first; where the cluster does not tell times, the first by id."""
    ours = [match for match in matches if match.ours]
    return min(ours, key=lambda m: (m.submitted_at is None, m.submitted_at and m.submitted_at.timestamp(), m.cluster_job_id))


def _seen(job: Job, seen: Observation) -> Job:
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


def _native(seen: Observation) -> str:
    return " ".join(part for part in (seen.native or str(seen.phase), seen.reason) if part)


def _read(job: Job, lines: int, *, final: bool = False) -> ReadLogs:
    end = job.end if final else job.attempt.seen
    reasons = tuple(text for text in ((end.reason, end.native) if end else ()) if text)
    return ReadLogs(
        name=job.attempt.name,
        lines=lines,
        final=final,
        look_for=texts_to_look_for(job),
        reasons=reasons,
        exit_code=end.exit_code if end and final else None,
        signal=end.signal if end and final else None,
    )


def _collect_effects(job: Job) -> tuple[AnyEffect, ...]:
    collect_outputs = Collect(name=job.attempt.name, workspace=job.spec.workspace, outputs=job.request.outputs)
    return (_read(job, job.policy.log_lines_max, final=True), collect_outputs)


def _evidence(job: Job) -> tuple[Quote, ...]:
    return job.verdict.diagnosis.evidence if job.verdict else ()


def _verdict_words(job: Job) -> str:
    return job.verdict.summary if job.verdict else ""


def _stop_effect(job: Job) -> StopJob:
    return StopJob(name=job.attempt.name, cluster_job_id=job.attempt.cluster_job_id)


def _stop_now(job: Job, at: datetime) -> Change:
    order = job.stop
    assert order is not None  # guarded by a_stop_was_asked
    return _order_stop(job, at, order, "it is being stopped")


def _order_stop(job: Job, at: datetime, order: StopOrder, why: str) -> Change:
    timed = order.model_copy(update={"retry_at": _in(at, job.policy.stop_retry_s), "tries": 1})
    withdrawn, tells = _withdraw_all(job.but(stop=timed), at, why)
    report = _report("stopping", reports.stopping(withdrawn, at), must_not_miss=order.by == "watchkeeper")
    return Change(withdrawn, (*tells, _stop_effect(withdrawn), report), order.reason)


def _lost_since_milestone(job: Job, at: datetime) -> str:
    """What a preemption threw away, as far as it is known."""
    main, since = job.track.main, job.track.milestone_at
    if main is None or since is None:
        return "everything since its last saved state"
    return f"everything since its last saved state (it had reached {main.unit or main.name} {main.value:g})"


def _end(job: Job, at: datetime, state: State, why: str) -> Change:
    """Terminal: outcome in one sentence, next safe action, wrap-up report, lesson; the parent is told."""
    withdrawn, tells = _withdraw_all(job, at, "the run is over")
    ended = withdrawn.but(state=state, outcome=why, stop=withdrawn.stop, logs_at=None, collect_at=None)
    ended = ended.but(next_action=reports.next_action(ended))
    text = reports.not_submitted(ended, at) if state is State.not_submitted else reports.wrap_up(ended, at)
    effects: list[AnyEffect] = [*tells, _report("wrap-up", text, must_not_miss=not job.parent)]
    effects += [StopChild(child=child) for child, purpose in job.children.items() if ":" not in purpose]
    effects += _lesson(ended, state)
    if job.parent:
        purpose = "build" if job.request.purpose.startswith("environment of") else "smoke"
        effects.append(
            TellParent(
                parent=job.parent,
                purpose=purpose,
                ok=state is State.succeeded,
                cause=job.diagnosis.cause,
                summary=reports.outcome_line(ended),
            )
        )
    return Change(ended, tuple(effects), why)


def _lesson(job: Job, state: State) -> list[AnyEffect]:
    """What worked, or the pitfall to avoid (F3)."""
    if job.parent or not job.attempts:
        return []
    values = {"image": job.spec.image, "environment": job.spec.environment, "proxy": job.spec.proxy}
    values = {key: value for key, value in values.items() if value}
    if state is State.succeeded:
        return [Remember(what="worked", purpose=_purpose(job), values=values)]
    if state is State.failed and job.diagnosis.cause != "none":
        note = f"{job.diagnosis.cause}: {job.diagnosis.advice}".rstrip(": ")
        return [Remember(what="pitfall", purpose=_purpose(job), values=values, note=note)]
    return []
