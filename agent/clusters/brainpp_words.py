"""Brain++'s words in the machine's own: `normalise` for a job, `refusal` for a submit that was turned down.

Which words are real is in RJOB 3 (observed ones and those of the tool's library); what each means is PHASES 4.
A word that is not in the table is `unknown`, which counts as alive; words seen only in other people's defensive
lists are left out on purpose.

Never: guess at a word; call a job preempted or failed against a positive record of its own end.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from agent.clusters.brainpp_parse import Shown, quotas, shown
from states.observation import ENDED, Phase, Waiting

PHASES: Mapping[str, Phase] = {
    "created": Phase.pending,
    "pending": Phase.pending,
    "inqueue": Phase.pending,
    "queued": Phase.pending,
    "queueing": Phase.pending,
    "scheduling": Phase.pending,
    "submitted": Phase.pending,
    "creating": Phase.starting,
    "starting": Phase.starting,
    "restarting": Phase.starting,
    "running": Phase.running,
    "killing": Phase.running,
    "succeeded": Phase.succeeded,
    "failed": Phase.failed,
    "createdfailed": Phase.failed,
    "stopped": Phase.stopped,
    "killed": Phase.stopped,
}
"""By the word in lower case. Unknown, Deleting and everything else: alive until something positive is said."""

FINISHING = frozenset({"killing"})
MAY_BE_A_PREEMPTION = frozenset({"failed", "stopped", "killed"})
"""Words that a preempted idle job may show; which one it is, nobody has written down (RJOB 10)."""

_PREEMPTED = re.compile(
    r"(?<!to be )\bpreempted\b|\bpreempt(?:ing|ion)\b|\bevicted\b|\beviction\b|被抢占|抢占驱逐|被驱逐",
    re.IGNORECASE,
)
_NEVER = re.compile(
    r"is workspace type|can only use GPU/CPU workload|quotagroup .{0,60}not found", re.IGNORECASE
)
_HELD = re.compile(r"has no right|cannot get resource|operate\[use\]", re.IGNORECASE)
TEXT_MAX = 400


class End(NamedTuple):
    """What the wrapper's record tells of the command. exit_code None: it has begun and not ended."""

    started_at: datetime | None = None
    ended_at: datetime | None = None
    exit_code: int | None = None
    signal: int | None = None
    timed_out: bool = False

    @property
    def is_its_own(self) -> bool:
        """The command ended by itself: no signal took it down."""
        return self.exit_code is not None and self.signal is None


def normalise(native: Mapping[str, object]) -> dict[str, Any]:
    """Fields of an Observation (without `taken_at`) from what Brain++ and the wrapper say. Pure.

    native, all optional: `line` the text of `rjob get` for this job ("" when it printed nothing: no record);
    or `word` with `rest`, `replicas`, `active`, `node` as `Shown` has them; `events` lines of `rjob events`;
    `exit_code`, `signal`, `started_at`, `ended_at`, `timed_out` of the wrapper's record.
    """
    job = _job(native)
    end = _end(native)
    events = _texts(native.get("events"))
    if job is None:
        return {"phase": Phase.gone, "reason": "no record of this job"}
    word = job.word.lower()
    phase = _phase(word, job, end, events)
    fields: dict[str, Any] = {
        "phase": phase,
        "native": " ".join(filter(None, (job.word, job.rest)))[:TEXT_MAX],
        "reason": _reason(word, job, phase, events)[:TEXT_MAX],
        "finishing": word in FINISHING or (phase is Phase.running and end.exit_code is not None),
        "replicas": job.replicas,
        "replicas_ready": job.active,
        "node": job.node,
    }
    if phase in (Phase.pending, Phase.starting):
        waiting = _waiting(events)
        return fields | {"waiting": waiting, "held": waiting is Waiting.held}
    return fields | _told_by_the_wrapper(phase, end)


def _told_by_the_wrapper(phase: Phase, end: End) -> dict[str, Any]:
    if phase not in ENDED | {Phase.preempted}:
        return {"started_at": end.started_at}
    cause = ""
    if phase is Phase.failed and end.timed_out:
        cause = "scheduling.time_limit"
    elif phase is Phase.failed and end.signal == 9:
        cause = "process.killed"
    return {
        "started_at": end.started_at,
        "ended_at": end.ended_at,
        "exit_code": end.exit_code,
        "signal": end.signal,
        "confirmed": end.exit_code is not None,
        "cause": cause,
    }


def _phase(word: str, job: Shown, end: End, events: Sequence[str]) -> Phase:
    phase = PHASES.get(word, Phase.unknown)
    if word in MAY_BE_A_PREEMPTION and not end.is_its_own and was_preempted(events):
        return Phase.preempted
    partly = job.replicas is not None and job.active is not None and 0 < job.active < job.replicas
    if phase is Phase.running and word not in FINISHING and partly and end.started_at is None:
        return Phase.starting  # the first time; later it is running with fewer (PHASES 4)
    return phase


def _reason(word: str, job: Shown, phase: Phase, events: Sequence[str]) -> str:
    if phase is Phase.preempted:
        return next(line for line in reversed(events) if _PREEMPTED.search(line))
    if word == "createdfailed":
        return job.rest or "the platform could not create its replicas; `rjob events` says why"
    if job.rest:
        return job.rest
    return events[-1] if events and phase not in (Phase.running, Phase.succeeded) else ""


def was_preempted(events: Iterable[str]) -> bool:
    """Does a line say that it was taken down for another job? (`to be preempted` is said while one waits.)"""
    return any(_PREEMPTED.search(line) for line in events)


def _waiting(events: Sequence[str]) -> Waiting:
    if any(_NEVER.search(line) for line in events):
        return Waiting.never
    return Waiting.held if any(_HELD.search(line) for line in events) else Waiting.wait


def _job(native: Mapping[str, object]) -> Shown | None:
    if "line" in native:
        return next(iter(shown(str(native["line"]))), None)
    if not native.get("word"):
        return None
    replicas, active = native.get("replicas"), native.get("active")
    return Shown(
        name="",
        showname="",
        word=str(native["word"]),
        rest=str(native.get("rest", "")),
        replicas=replicas if isinstance(replicas, int) else None,
        active=active if isinstance(active, int) else None,
        node=str(native.get("node", "")),
    )


def _end(native: Mapping[str, object]) -> End:
    started, ended = native.get("started_at"), native.get("ended_at")
    code, number = native.get("exit_code"), native.get("signal")
    return End(
        started if isinstance(started, datetime) else None,
        ended if isinstance(ended, datetime) else None,
        code if isinstance(code, int) else None,
        number if isinstance(number, int) else None,
        native.get("timed_out") is True,
    )


def _texts(value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        return tuple(filter(None, value.splitlines()))
    return tuple(str(line) for line in value) if isinstance(value, Iterable) else ()


# --- a submit that was turned down -------------------------------------------------------------------------

ALREADY_THERE = re.compile(
    r"already ?exists|\bduplicate|name .{0,80}\b(?:taken|in use)\b|\b409\b", re.IGNORECASE
)
NOT_FOUND = re.compile(r"not[ -]?found|does not exist|no resources found", re.IGNORECASE)
NOT_READY = re.compile(r"TypeError: 'NoneType' object is not iterable")
PASSING = re.compile(
    r"temporarily unavailable|connection (?:reset|refused|aborted)|(?:i/o|read|gateway|request) time-?out|timed out"
    r"|service unavailable|too many requests|bad gateway|name or service not known|no such host|name resolution"
    r"|max retries exceeded|\b(?:429|50[234])\b",
    re.IGNORECASE,
)
PROXY = re.compile(r"\b407\b|proxy authentication|cannot connect to proxy", re.IGNORECASE)
_USAGE = re.compile(r"\berror: |unrecognized arguments|invalid choice|expected one argument")
_REFUSALS: tuple[tuple[re.Pattern[str], str, bool], ...] = tuple(
    (re.compile(words, re.IGNORECASE), cause, retryable)
    for words, cause, retryable in (
        (
            "insufficient group quota|quotaCheck|denied the request|insufficient resources",
            "scheduling.quota",
            True,
        ),
        ("no machine is available|资源不足|无可用机器", "scheduling.capacity", True),
        (
            r"is workspace type|can only use GPU/CPU workload|no documents in result|quota ?group .{0,80}not found"
            r"|namespace .{0,80}not found",
            "scheduling.unsatisfiable",
            False,
        ),
        (
            r"has no right|forbidden|cannot \w+ resource|operate\[use\]|unauthorized|\b40[13]\b|invalid access",
            "auth.denied",
            False,
        ),
    )
)


class Refusal(NamedTuple):
    """The platform said no. cause: `layer.cause` or ""; retryable: it may say yes later."""

    cause: str
    retryable: bool


def refusal(text: str, rc: int, *, asked: Mapping[str, float]) -> Refusal | None:
    """What a failed submit means, if its words leave no doubt that nothing was created; else None.

    asked: what the request comes to over all replicas, by kind (`cpu`, `memory` in bytes, `gpu`): a figure above
    the group's whole limit never fits, one below it waits for others to end (RJOB 7).
    """
    if rc == 2 and _USAGE.search(text):
        return Refusal("command.bad_argument", False)
    if PASSING.search(text) or PROXY.search(text) or ALREADY_THERE.search(text):
        return None
    for quota in quotas(text):
        kind = "gpu" if "gpu" in quota.kind.lower() else quota.kind.lower()
        if asked.get(kind, 0.0) > quota.limit:
            return Refusal("scheduling.unsatisfiable", False)
    for words, cause, retryable in _REFUSALS:
        if words.search(text):
            return Refusal(cause, retryable)
    return None
