"""The rows that reports are made of: job -> lines, each bounded, in the job's own language.

What a log, a cluster or a person wrote goes through `plain`; a row without a value is no row at all.

Never: decide anything about the job; raise for data that is missing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from datetime import datetime

from states.job import Check, CheckLevel, Job, Moment, State
from states.observation import Observation
from states.orders import WHOSE
from states.questions import Question, Status, option_text, worded
from states.reading import Quote
from states.timers import next_look
from states.words.closing import cause_of, diagnosis_of, owner_of
from states.words.sparkline import spark
from states.words.wording import (
    PATH_CHARS_MAX,
    command_line,
    count_of,
    duration,
    mib,
    number,
    plain,
    rate,
    say,
    since,
    unit_of,
    when,
    wrapped,
)

EVIDENCE_LINES_MAX = 4
ITEMS_MAX = 10
MOMENTS_SHOWN_MAX = 20
NOTES_MAX = 12
SPARK_CHARS = 48
WORST_FIRST: tuple[CheckLevel, ...] = ("refuse", "ask", "could_not", "warn", "note", "fine")
FINE = frozenset({"starting", "progressing", "succeeded"})
"""Verdicts that are no concern."""


def text(*lines: str) -> str:
    """The report: its lines, the empty ones left out, the long ones broken."""
    return "\n".join(wrapped(line) for line in lines if line)


def tell(job: Job, phrase: str, **facts: str) -> str:
    """A phrase in the job's language. `job` stands for its id in every phrase."""
    return say(job.language, phrase, **{"job": job.id, **facts})


def time_of(job: Job, seconds: float) -> str:
    """A duration in the job's language."""
    return duration(seconds, job.language)


def row(job: Job, label: str, value: str) -> str:
    """`label: value`, or nothing at all without a value."""
    return f"{tell(job, f'label.{label}')}: {value}" if value else ""


def with_rules(words: str, rules: str) -> str:
    """`words (E6)`."""
    return f"{words} ({rules})".strip() if rules else words


def listed(job: Job, items: Iterable[str], between: str = ", ") -> str:
    """Texts in a row, bounded, with a word about what is left out."""
    shown = [plain(item, PATH_CHARS_MAX) for item in items]
    rest = [tell(job, "more", count=str(len(shown) - ITEMS_MAX))] if len(shown) > ITEMS_MAX else []
    return between.join([*shown[:ITEMS_MAX], *rest])


def worst_first(job: Job) -> list[Check]:
    """The checks, refusals first, in their own order otherwise."""
    return sorted(job.checks.values(), key=lambda check: WORST_FIRST.index(check.level))


def check_rows(job: Job, check: Check) -> list[str]:
    """`refused  image: evidence (C5)`, then the mend; a walk-through keeps its own lines (B1)."""
    head = with_rules(f"  {tell(job, f'level.{check.level}')}  {plain(check.name)}", check.rule)
    evidence = plain(check.evidence)
    first, *rest = [plain(line) for line in check.mend.splitlines() if line.strip()][:NOTES_MAX] or [""]
    return [
        f"{head}: {evidence}" if evidence else head,
        f"    {row(job, 'mend', first)}" if first else "",
        *(f"      {line}" for line in rest),
    ]


def spec_rows(job: Job) -> list[str]:
    """What runs where, with which resources and mounts, by which command (C14)."""
    spec = job.spec
    workspace = [tell(job, "workspace", path=workspace_of(job))] if spec.workspace else []
    theirs = tell(job, "clusters_default")  # a figure of 0 is left to the cluster
    resources = {
        "cpu": f"{spec.cpu:g}" if spec.cpu else theirs,
        "gpu": str(spec.gpu),
        "memory": mib(spec.memory_mib) if spec.memory_mib else theirs,
    }
    return [
        row(job, "job", attempt_name(job)),
        row(job, "cluster", plain(job.cluster)),
        row(job, "lane", tell(job, f"lane.{spec.lane}")),
        row(job, "image", plain(spec.image, PATH_CHARS_MAX) or tell(job, "no_image")),
        row(job, "environment", plain(spec.environment, PATH_CHARS_MAX)),
        row(job, "proxy", plain(spec.proxy, PATH_CHARS_MAX)),
        row(job, "resources", tell(job, "resources", replicas=str(spec.replicas), **resources)),
        row(job, "mounts", listed(job, [*workspace, *spec.mounts]) or tell(job, "nothing")),
        row(job, "command", command_line(spec.command) or tell(job, "nothing")),
        row(job, "extra", command_line(spec.extra_args)),
    ]


def settled_rows(job: Job, *names: str) -> list[str]:
    """What the checks (or these of them) settled into the spec, from where, and how a figure was chosen (H2, C4)."""
    told = [check for check in job.checks.values() if not names or check.name in names]
    found = [c for c in told if c.found or c.rule == "C4" or (names and "note" in c.facts)]
    settled = [f"{plain(check.name)}: {plain(check.evidence)}" for check in found]
    by_order = [] if names else [plain(words) for words in job.by_order]
    return [row(job, "settled", words) for words in (*by_order, *settled)]


def workspace_of(job: Job) -> str:
    """The workspace's path, or words for it."""
    return plain(job.spec.workspace, PATH_CHARS_MAX) or tell(job, "its_workspace")


def attempt_name(job: Job) -> str:
    """The present attempt's name and cluster job id; of a job to be taken over, the ones it was given."""
    if job.attempts:
        present = job.attempts[-1]
        told = plain(present.cluster_job_id, 80) or tell(job, "id_open")
        return tell(job, "attempt", name=present.name, id=told)
    existing = job.request.existing
    if existing is None:
        return tell(job, "none_yet")
    told = plain(existing.cluster_job_id, 80) or tell(job, "id_open")
    return tell(job, "attempt", name=plain(existing.name, 80) or job.id, id=told)


def seen_of(job: Job) -> Observation | None:
    """The newest look at the present attempt."""
    return job.attempts[-1].seen if job.attempts else None


def words_row(job: Job) -> str:
    """The cluster's own words about the present attempt, native state first."""
    seen = job.end if job.is_terminal and job.end else seen_of(job)
    if seen is None:
        return ""
    return row(job, "words", ", ".join(word for word in (plain(seen.native, 80), plain(seen.reason)) if word))


def look_row(job: Job, at: datetime) -> str:
    """When it is looked at next: its log if that is planned, else its status; nothing once it is over."""
    planned = job.logs_at if job.doing is State.running and job.logs_at and job.logs_at > at else None
    look = planned or next_look(job, at)
    if look is None:
        return ""
    return row(job, "look", tell(job, "look", when=when(look), wait=time_of(job, since(at, look))))


def note_rows(job: Job) -> list[str]:
    """The newest notes (a remembered config that turned out wrong is one of them: F5)."""
    return [row(job, "note", plain(note)) for note in job.notes[-NOTES_MAX:]]


def standing(job: Job, at: datetime) -> str:
    """`digits-k3f9: running for 1 h 05 min on node3`."""
    words = f"{job.id}: {tell(job, f'state.{job.state}')}"
    if job.state is State.blocked and job.resume_to:
        words += f" ({tell(job, f'state.{job.resume_to}')})"
    attempt = job.attempts[-1] if job.attempts else None
    running = job.doing is State.running and attempt
    begun = (attempt.started_at if running and attempt else None) or job.state_since
    if begun and not job.is_terminal:
        words += " " + tell(job, "for", time=time_of(job, since(begun, at)))
    node = plain(attempt.node, 80) if running and attempt else ""
    return words + (" " + tell(job, "on_node", node=node) if node else "")


def progress_rows(job: Job, at: datetime) -> list[str]:
    """How far it is, on one row; none before the first look at its log."""
    facts = facts_of(job, at)
    return [row(job, "progress", ", ".join(facts))] if facts else []


def facts_of(job: Job, at: datetime) -> list[str]:
    """How far the work is, as the log shows it: count, time left, loss, rate, the log's own ETA, age."""
    track = job.track
    facts = [count_of(track.main)] if track.main else []
    # The times left were true at the look they come from.
    gone_s = since(track.looked_at, at) if track.looked_at else 0
    if track.eta_s is not None and not job.is_terminal:
        left, spread = time_of(job, track.eta_s - gone_s), time_of(job, track.eta_spread_s or 0)
        facts.append(tell(job, "left_spread" if track.eta_spread_s else "left", time=left, spread=spread))
    if track.nan_since:
        facts.append(tell(job, "loss_nan", when=when(track.nan_since)))
    elif track.losses:
        facts.append(tell(job, "loss", value=number(track.losses[-1].value)))
    if track.rate_per_s and track.main:
        facts.append(rate(track.rate_per_s, unit_of(track.main), job.language))
    if track.log_eta_s is not None and not job.is_terminal:
        facts.append(tell(job, "log_left", time=time_of(job, track.log_eta_s - gone_s)))
    if track.phase:
        facts.append(tell(job, "at_phase", phase=plain(track.phase, 60)))
    return facts + _ages(job, at)


def _ages(job: Job, at: datetime) -> list[str]:
    """How long ago it last advanced, and last printed: activity is not progress (E5)."""
    track = job.track
    if job.is_terminal or not track.looks:
        return []
    if track.milestone_at is None:
        ages = [tell(job, "no_milestone")]
    else:
        ages = [tell(job, "milestone", time=time_of(job, since(track.milestone_at, at)))]
    if track.output_at and track.output_at != track.milestone_at:
        ages.append(tell(job, "output", time=time_of(job, since(track.output_at, at))))
    return ages


def concern_row(job: Job) -> str:
    """What the verdict worries about, if it does."""
    verdict = job.verdict
    if verdict is None or verdict.name in FINE:
        return ""
    summary = plain(verdict.summary)
    return row(job, "concern", tell(job, f"verdict.{verdict.name}") + (f": {summary}" if summary else ""))


def worry(job: Job) -> str:
    """What a list must not hide: open questions, else the verdict."""
    if job.open_questions:
        return tell(job, "open", count=str(len(job.open_questions)))
    if job.verdict is None or job.verdict.name in FINE:
        return ""
    return tell(job, f"verdict.{job.verdict.name}")


def cause_rows(job: Job) -> list[str]:
    """Cause, whose it is, its evidence lines, other readings, advice (E3, F1)."""
    found, cause = diagnosis_of(job), cause_of(job)
    if not cause:
        return []
    also = found.also if found.cause in {cause, "none"} else (found.cause, *found.also)
    return [
        row(job, "cause", f"{plain(cause, 80)} ({tell(job, f'owner.{owner_of(job)}')})"),
        *evidence_rows(job, found.evidence),
        row(job, "also", listed(job, also)),
        row(job, "advice", plain(found.advice)),
    ]


def evidence_rows(job: Job, quotes: Sequence[Quote]) -> list[str]:
    """A few lines of the log, each behind its number, so that none passes for the report's own words (I2)."""
    return [
        f"  {tell(job, 'line', line=str(quote.line), text=plain(quote.text))}"
        for quote in quotes[:EVIDENCE_LINES_MAX]
    ]


def open_rows(job: Job) -> list[str]:
    """The open questions, each with the command that answers it."""
    return [
        f"{row(job, 'question', asks(job, question))} -> wk answer {question.id} <{_keys(question)}>"
        for question in job.open_questions
    ]


def _keys(question: Question) -> str:
    return "|".join(option.key for option in question.template.options)


def asks(job: Job, question: Question) -> str:
    """The question's own sentence. Its facts may quote a log or a cluster, so they go through `plain`."""
    facts = {"name": job.id} | {name: plain(value, 600) for name, value in question.facts.items()}
    return plain(worded(question.model_copy(update={"facts": facts}), job.language), 800)


def question_rows(job: Job, question: Question) -> list[str]:
    """A question with its evidence, numbered options, the default, its deadline, and how to answer (G1)."""
    default = question.default
    within = time_of(job, since(question.asked_at, question.answer_by)) + ordered(job, question.deadline_by)
    rows = [f"{question.id}: {asks(job, question)}", *evidence_rows(job, question.evidence)]
    for index, option in enumerate(question.template.options, start=1):
        mark = f" ({tell(job, 'default')}{ordered(job, question.preset_by)})" if option == default else ""
        key = f"{option.key}=<{option.value}>" if option.value else option.key
        rows.append(f"  {index} {key}: {option_text(option, job.language)}{mark}")
    value = f": {plain(question.preset_value, PATH_CHARS_MAX)}" if question.preset_value else ""
    silent = {
        "option": option_text(default, job.language) + value,
        "when": when(question.answer_by),
        "time": within,
    }
    return [
        *rows,
        "  " + tell(job, "by_default", **silent),
        "  " + row(job, "answer", f"wk answer {question.id} <{_keys(question)}>"),
    ]


def ordered(job: Job, whose: str) -> str:
    """`, by your standing order`: said wherever an order was followed; nothing for what is built in."""
    return tell(job, "by_whom", whose=tell_order(job, whose)) if whose else ""


def tell_order(job: Job, whose: str) -> str:
    """Whose order, in the job's language."""
    known = {words: f"order.{layer}" for layer, words in WHOSE.items()}
    return tell(job, known[whose]) if whose in known else whose


def chosen_words(job: Job, question: Question) -> str:
    """The option that was taken, in words, with its value if it has one."""
    taken = [option for option in question.template.options if option.key == question.chosen]
    words = option_text(taken[0] if taken else question.default, job.language)
    return f"{words}: {plain(question.value, PATH_CHARS_MAX)}" if question.value else words


def closed_row(job: Job, question: Question) -> str:
    """A question that was settled, and how."""
    if question.status is Status.withdrawn:
        return ""
    return row(job, "question", f"{asks(job, question)} -> {chosen_words(job, question)}")


def timeline_rows(job: Job) -> list[str]:
    """The moments of the run, the first and the newest when there are too many."""
    moments = job.moments
    if not moments:
        return []
    shown, gap = moments, ""
    if len(moments) > MOMENTS_SHOWN_MAX:
        shown = moments[-(MOMENTS_SHOWN_MAX - 1) :]
        gap = f"  {tell(job, 'more', count=str(len(moments) - MOMENTS_SHOWN_MAX))}"
    head = [_moment_row(moments[0]), gap] if gap else []
    return [row(job, "timeline", " ").rstrip(), *head, *(_moment_row(moment) for moment in shown)]


def _moment_row(moment: Moment) -> str:
    words = plain(moment.text)
    return f"  {when(moment.at)} {moment.state}" + (f": {words}" if words else "")


def figures(job: Job, at: datetime) -> str:
    """How long it took and ran, how often it was tried."""
    attempt = job.attempts[-1] if job.attempts else None
    ended = (attempt.ended_at if attempt else None) or (job.end.ended_at if job.end else None) or at
    parts = [tell(job, "took", time=time_of(job, since(job.created_at, ended)))]
    if attempt and attempt.started_at:
        parts.append(tell(job, "ran", time=time_of(job, since(attempt.started_at, ended))))
    counts = {
        "attempts": str(len(job.attempts)),
        "preemptions": str(job.preemptions),
        "resubmissions": str(job.resubmissions),
    }
    parts.append(tell(job, "counts", **counts))
    restarts = sum(each.restarts_seen for each in job.attempts)
    if restarts:
        parts.append(tell(job, "cluster_restarts", count=str(restarts)))
    return ", ".join(parts)


def loss_curve(job: Job) -> str:
    """First, last and lowest loss, and the series as a small curve."""
    values = [point.value for point in job.track.losses]
    finite = [value for value in values if math.isfinite(value)]
    if not finite:
        return ""
    ends = {"first": number(values[0]), "last": number(values[-1]), "low": number(min(finite))}
    return tell(job, "loss_curve", spark=spark(values, SPARK_CHARS), **ends)
