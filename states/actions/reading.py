"""Verbs of a look at the log: note progress, report it, ask about what looks off, stop the clear cases.

Never: set the state (the row does), read the world, or decide whether to act (the guard did).
"""

from __future__ import annotations

from states import reports
from states.actions.asking import withdraw_all
from states.actions.change import Change, after, tell
from states.actions.hints import admitted, remembered
from states.actions.parts import (
    ask_concern,
    evidence_of,
    log_read,
    order_stop,
    verdict_words,
)
from states.conditions import met_goal, spent_goal
from states.effects import (
    Interpret,
)
from states.events import (
    Interpreted,
    LogsRead,
    WakeDue,
)
from states.job import Job, StopOrder
from states.timers import look_s


def note_progress(job: Job, event: LogsRead) -> Change:
    """Nothing to worry about: next look at the learnt cadence."""
    return Change(job.but(logs_at=after(event.at, look_s(job))), (), verdict_words(job))


def report_progress(job: Job, event: LogsRead) -> Change:
    """A routine report is due: phase and progress in plain text (E12)."""
    noted = job.but(logs_at=after(event.at, look_s(job)), reported_at=event.at)
    return Change(noted, (tell("routine", reports.routine(noted, event.at)),), verdict_words(job))


def note_unreadable(job: Job, event: LogsRead) -> Change:
    """The log could not be read: nothing is concluded; look again later."""
    return Change(job.but(logs_at=after(event.at, look_s(job))), (), event.reason)


def read_more(job: Job, event: LogsRead) -> Change:
    """The tail does not settle it: raise the bound (E2)."""
    return Change(job, (log_read(job, min(event.lines * 5, job.policy.log_lines_max)),), verdict_words(job))


def interpret(job: Job, event: LogsRead) -> Change:
    """The rules cannot settle it: let the model read (it decides nothing: I2)."""
    situation = job.verdict.summary if job.verdict else ""
    effect = Interpret(name=job.attempt.name, lines=job.policy.log_lines, situation=situation)
    return Change(job.but(logs_at=after(event.at, look_s(job))), (effect,), verdict_words(job))


def note_reading(job: Job, event: Interpreted) -> Change:
    """What the model read, kept as evidence; the job goes on as it was (I2)."""
    said = event.failed or event.summary
    note = (
        f"the model read the log as {event.verdict}: {event.summary}"
        if event.summary and not event.failed
        else ""
    )
    return Change(job.with_note(note), (), said)


def ask_whether_off(job: Job, event: LogsRead | Interpreted) -> Change:
    """It looks off, but it may be a slow phase: ask (default: keep running)."""
    evidence = evidence_of(job) + (
        event.quotes if isinstance(event, Interpreted) and not event.failed else ()
    )
    why = verdict_words(job)
    if isinstance(event, Interpreted) and not event.failed and event.summary:
        why = f"{why} The model reads it so: {event.summary}"
    return ask_concern(job, event.at, "looks-off", why, evidence)


def ask_about_network(job: Job, event: LogsRead) -> Change:
    """A fetch keeps failing: ask for a proxy (default: go on without). A remembered proxy was the one try (F5)."""
    wrong = {field: value for field, value in remembered(job).items() if field == "proxy"}
    job, marks = admitted(job, wrong, verdict_words(job))
    asked = ask_concern(job, event.at, "network", verdict_words(job), evidence_of(job))
    return asked._replace(effects=(*marks, *asked.effects))


def ask_about_download(job: Job, event: LogsRead) -> Change:
    """A download drags: ask to wait or for a copy on a cluster path (default: stop the download)."""
    return ask_concern(job, event.at, "download", verdict_words(job), evidence_of(job))


def ask_about_clear_case(job: Job, event: LogsRead) -> Change:
    """Hopeless, but it is not ours to stop: ask (A10, default: keep running)."""
    return ask_concern(job, event.at, "clear-case", verdict_words(job), evidence_of(job))


def withdraw_concern(job: Job, event: LogsRead) -> Change:
    """It moves again: the question is taken back with the reason (E9)."""
    moved = job.but(logs_at=after(event.at, look_s(job)))
    withdrawn, tells = withdraw_all(moved, event.at, verdict_words(job) or "it moves again")
    return Change(withdrawn, tells, verdict_words(job))


def stop_as_wasted(job: Job, event: LogsRead) -> Change:
    """A clear case: stop it on its own judgment, and say why (E6, E7)."""
    verdict = job.verdict
    rule = verdict.because[0] if verdict and verdict.because else "E7"
    order = StopOrder(by="watchkeeper", reason=verdict_words(job), rule=rule, at=event.at)
    return order_stop(job, event.at, order, "it is being stopped")


def stop_by_condition(job: Job, event: LogsRead | WakeDue) -> Change:
    """A stop condition of the request, or of a standing order, is met (E8)."""
    met = met_goal(job, event) if isinstance(event, LogsRead) else spent_goal(job, event.at)
    assert met is not None  # guarded by the_stop_condition_is_met, the_wall_clock_condition_is_met
    whose = f"the stop condition of {met.by_order}" if met.by_order else "its own stop condition"
    reason = f"{whose} is met: {met.condition.in_words()}"
    order = StopOrder(by="watchkeeper", reason=reason, rule="E8", at=event.at)
    return order_stop(job, event.at, order, "its stop condition is met")
