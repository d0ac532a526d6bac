"""The unit of work: jobs and their journal. One transaction per event.

`apply` is the heart: load -> step -> event + snapshot + asked effects, committed together. The same event key twice
is a no-op that gives the first result.

Never: hold a transaction open during a call to the outside; decide anything about a job.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import cached_property
from typing import Any, NamedTuple

from sqlalchemy import (
    Connection,
    CursorResult,
    bindparam,
    func,
    insert,
    select,
    tuple_,
    update,
)

from agent import crash
from agent.asked import AskedEffects, effect_row
from agent.database import EFFECTS, EVENTS, JOBS, MESSAGES, Database, Record, records
from agent.due import DueJobs
from agent.tables import UtcTime
from states.board import board
from states.events import AnyEvent, Observed, parse_event
from states.job import MACHINE_VERSION, TERMINAL, WATCHED, Job, State, restored, snapshot
from states.machine import Ignored, Moved, Step, step
from states.quiet import story_of
from states.timers import deadline, pause_s
from states.versions import lift_event, lift_snapshot

UNJOURNALLED = frozenset({"wake_due", "observed", "cluster_unreachable"})
"""Looks and timers that find nothing to do leave no journal row."""


_JOB = select(JOBS.c.snapshot, JOBS.c.seq, JOBS.c.seen_at, JOBS.c.wake_at).where(
    JOBS.c.id == bindparam("job")
)
_JOB_LOCKED = _JOB.with_for_update()
_JOB_OF_REQUEST = select(JOBS.c.id).where(JOBS.c.request_id == bindparam("request"))
_JOB_OF_ID = select(JOBS.c.id).where(JOBS.c.id == bindparam("job"))
_JOB_OF_ATTEMPT = select(JOBS.c.id).where(JOBS.c.attempt_name == bindparam("attempt"))
NEAR_MAX, SEVERAL_MAX = 1000, 6
"""Of how many ids, the newest, one is offered for one that is not there; how many that fit are told."""
_NEWEST_FIRST = (JOBS.c.created_at.desc(), JOBS.c.id.desc())
_NEWEST_IDS = select(JOBS.c.id).order_by(*_NEWEST_FIRST).limit(NEAR_MAX)
_BEGINS = (
    select(JOBS.c.id)
    .where(func.substr(JOBS.c.id, 1, func.length(bindparam("text"))) == bindparam("text"))
    .limit(SEVERAL_MAX)
)
_BEGINS_SORTED = _BEGINS.where(JOBS.c.id.between(bindparam("text"), bindparam("upto")))
"""The same by the index of the ids, where texts are in the order of their code points (SQLite)."""
LAST_CHARACTER = "\U0010ffff"
_CREATED = select(JOBS.c.created_at).where(JOBS.c.id == bindparam("job"))
_OLDER = tuple_(JOBS.c.created_at, JOBS.c.id) < tuple_(bindparam("at", type_=UtcTime), bindparam("before"))
_LIVE_IDS = select(JOBS.c.id).where(JOBS.c.ended_at.is_(None))
_BLOCKED_IDS = select(JOBS.c.id).where(JOBS.c.state == str(State.blocked))
_NEW_JOB, _NEW_EVENT, _NEW_EFFECTS = insert(JOBS), insert(EVENTS), insert(EFFECTS)
_UNCHANGED = update(JOBS).where(JOBS.c.id == bindparam("job"), JOBS.c.seq == bindparam("seq_before"))
"""The job as it was loaded, to be written: no row matches when somebody else wrote it meanwhile."""
_SET_WAKE = update(JOBS).where(JOBS.c.id == bindparam("job")).values(wake_at=bindparam("wake"))
_EVENT_OF_KEY = select(EVENTS.c.id).where(
    EVENTS.c.job_id == bindparam("job"), EVENTS.c.key == bindparam("event_key")
)
_NEWEST_EVENT = select(func.max(EVENTS.c.id))
_NEWEST_OF_JOB = select(func.max(EVENTS.c.seq)).where(EVENTS.c.job_id == bindparam("job"))
_TOLD_OF_JOB = select(func.count()).where(MESSAGES.c.job_id == bindparam("job"))
_EVENTS_OF_JOB = (
    select(EVENTS)
    .where(EVENTS.c.job_id == bindparam("job"), EVENTS.c.seq > bindparam("after"))
    .order_by(EVENTS.c.seq)
)
_EFFECTS_OF_JOB = (
    select(EFFECTS)
    .where(EFFECTS.c.job_id == bindparam("job"), EFFECTS.c.seq > bindparam("after"))
    .order_by(EFFECTS.c.seq, EFFECTS.c.n)
)


class Applied(NamedTuple):
    """What became of an event. job: after it. duplicate: this key was here before; nothing was done again.
    action: the verb of the table's row that was taken, if one was."""

    job: Job
    outcome: str
    reason: str
    effects: int
    duplicate: bool = False
    action: str = ""


class Before(NamedTuple):
    """How an earlier attempt is known to its cluster."""

    name: str
    cluster_job_id: str
    submitted_at: datetime
    sends: int = 1


BEFORE_MAX = 10_000
"""Attempts whose forerunners are kept in memory; a long-lived process begins anew then."""


class Unknown(LookupError):
    """There is no such run. The message names the nearest ones."""


class Compacted(LookupError):
    """The journal of a run was cut to its decisions; the message says what is still there."""


class Store(AskedEffects, DueJobs):
    """The database of one Watchkeeper. Thread-safe; each call is one transaction."""

    @cached_property
    def _at_large(self) -> dict[str, tuple[Before, ...]]:
        return {}

    def create(self, job: Job, event: AnyEvent) -> Applied:
        """Store a new job and its first event together. A known request id answers with the run that has it."""
        with self._write() as connection:
            if job.request_id:
                known = connection.execute(_JOB_OF_REQUEST, {"request": job.request_id}).scalar()
                if known is not None:
                    return Applied(
                        self._load(connection, known), "ignored", "delegated before", 0, duplicate=True
                    )
            if connection.execute(_JOB_OF_ID, {"job": job.id}).scalar() is not None:
                return Applied(
                    self._load(connection, job.id), "ignored", "delegated before", 0, duplicate=True
                )
            connection.execute(_NEW_JOB, [new_row(job)])
            applied = self._apply(connection, job, event)
        crash.point("event-committed")
        return applied

    def apply(self, job_id: str, event: AnyEvent, *, done: str = "", said: str = "") -> Applied:
        """Take an event to a job; `done` is the effect whose result it is, finished in the same transaction.

        Raises Unknown for an id that is not there.
        """
        event = self._told_apart(event)
        with self._write() as connection:
            if done:
                self._finish(connection, done, event.at, said)
            job = self._load(connection, job_id, lock=True)
            if event.key and self._seen_before(connection, job_id, event.key):
                return Applied(job, "ignored", "this event was taken before", 0, duplicate=True)
            applied = self._apply(connection, job, event)
        crash.point("event-committed")
        return applied

    def _told_apart(self, event: AnyEvent) -> AnyEvent:
        """The event, a key that looks like a credential replaced by its hash: redacted, two keys would be one."""
        if not event.key or self._redact(event.key) == event.key:
            return event
        digest = hashlib.blake2b(event.key.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()
        return event.model_copy(update={"key": f"hashed-{digest}"})

    def load(self, job_id: str) -> Job:
        """The job as it stands. Raises Unknown."""
        with self._read() as connection:
            return self._load(connection, job_id)

    def at_large(self, job_id: str, attempt: str) -> tuple[Before, ...]:
        """The earlier attempts whose jobs may come back beside this one (`Job.at_large`). What came before an attempt
        never changes, so a snapshot is read once for it. Raises Unknown."""
        if attempt not in self._at_large:
            if len(self._at_large) >= BEFORE_MAX:
                self._at_large.clear()
            job = self.load(job_id)
            if job.attempt.name != attempt:
                return ()
            self._at_large[attempt] = tuple(
                Before(one.name, one.cluster_job_id, one.intent_at, one.sends) for one in job.at_large
            )
        return self._at_large[attempt]

    def came_to_rest(self, attempt: str, over: Sequence[Before]) -> None:
        """These need no look any more. Kept in memory alone: after a start each is looked at once more."""
        if over and attempt in self._at_large:
            self._at_large[attempt] = tuple(one for one in self._at_large[attempt] if one not in over)

    def find(self, text: str) -> str:
        """The full id of a run given by id, unique beginning, or attempt name. Raises Unknown."""
        with self._read() as connection:
            if connection.execute(_JOB_OF_ID, {"job": text}).scalar() is not None:
                return text
            begins = _BEGINS_SORTED if connection.dialect.name == "sqlite" else _BEGINS
            values = {"text": text, "upto": text + LAST_CHARACTER}
            starts = list(connection.execute(begins, values).scalars())
            if len(starts) == 1:
                return str(starts[0])
            named = connection.execute(_JOB_OF_ATTEMPT, {"attempt": text}).scalar()
            if named is not None:
                return str(named)
            newest = list(connection.execute(_NEWEST_IDS).scalars())
        raise Unknown(_not_found(text, starts, newest))

    def boards(self, *, live: bool = False, limit: int = 200, before: str = "") -> list[Record]:
        """The list columns of runs, newest first; children of other runs are left out. before: the id of a run, the
        cursor: only what is older than it. Raises Unknown for one that is not there."""
        columns = (
            JOBS.c.id,
            JOBS.c.state,
            JOBS.c.cluster,
            JOBS.c.board,
            JOBS.c.created_at,
            JOBS.c.ended_at,
            JOBS.c.wake_at,
        )
        query = select(*columns).order_by(*_NEWEST_FIRST).limit(limit)
        if live:
            query = query.where(JOBS.c.ended_at.is_(None))
        with self._read() as connection:
            if not before:
                return records(connection, query)
            at = connection.execute(_CREATED, {"job": before}).scalar()
            if at is None:
                raise Unknown(f"there is no run {before!r} to list what is older than it")
            return records(connection, query.where(_OLDER), at=at, before=before)

    def with_open_questions(self) -> list[Job]:
        """Every blocked run."""
        with self._read() as connection:
            ids = connection.execute(_BLOCKED_IDS).scalars()
            return [self._load(connection, job_id) for job_id in list(ids)]

    def live_ids(self) -> list[str]:
        """Every run that has not ended."""
        with self._read() as connection:
            return list(connection.execute(_LIVE_IDS).scalars())

    def journal(self, job_id: str, *, after_seq: int = -1) -> list[Record]:
        """The events of a run, oldest first."""
        with self._read() as connection:
            return records(connection, _EVENTS_OF_JOB, job=job_id, after=after_seq)

    def mark(self, job_id: str = "") -> str:
        """A mark that is another one as soon as anything was recorded of the run (or of any run) or told of it."""
        with self._read() as connection:
            if not job_id:
                return str(connection.execute(_NEWEST_EVENT).scalar() or 0)
            queries = (_NEWEST_OF_JOB, _TOLD_OF_JOB)
            return ".".join(str(connection.execute(each, {"job": job_id}).scalar() or 0) for each in queries)

    def history(self, job_id: str) -> list[AnyEvent]:
        """The events themselves, for replay. Raises Compacted."""
        rows = self.journal(job_id)
        if any("at" not in row["body"] for row in rows):
            raise Compacted(
                f"the journal of {job_id} was compacted; its decisions are there: wk why {job_id}"
            )
        return [parse_event(lift_event(row["body"])) for row in rows]

    def effects_of(self, job_id: str, *, after_seq: int = -1) -> list[Record]:
        """The effects that were asked for a run, in order."""
        with self._read() as connection:
            return records(connection, _EFFECTS_OF_JOB, job=job_id, after=after_seq)

    def _load(self, connection: Connection, job_id: str, *, lock: bool = False) -> Job:
        query = _JOB_LOCKED if lock and connection.dialect.name == "postgresql" else _JOB
        row = connection.execute(query, {"job": job_id}).one_or_none()
        if row is None:
            raise Unknown(f"there is no run {job_id!r}; `wk jobs` lists them")
        return restored(lift_snapshot(row[0]), seq=row[1], seen_at=row[2], wake_at=row[3])

    def _seen_before(self, connection: Connection, job_id: str, key: str) -> bool:
        return connection.execute(_EVENT_OF_KEY, {"job": job_id, "event_key": key}).scalar() is not None

    def _apply(self, connection: Connection, job: Job, happened: AnyEvent) -> Applied:
        body = happened.model_dump(mode="json", exclude_defaults=True) | {"kind": happened.kind}
        clean = self._redact(body)
        if clean != body:
            body, happened = clean, parse_event(clean)
        taken = step(job, happened)
        outcome, reason = _outcome_words(taken)
        if taken.changed_nothing and happened.kind in UNJOURNALLED:
            looked_at_next = happened.kind == "wake_due" and pause_s(job, happened.at) is not None
            if not looked_at_next:  # else the look of the same wave sets the timer
                self._rest_one(connection, job, happened.at)
            return Applied(job, outcome, reason, 0)
        seq = job.seq + 1
        after = taken.job.but(seq=seq)
        if isinstance(happened, Observed):
            after = after.but(seen_at=happened.observation.taken_at)
        key = happened.key or f"{happened.kind}:{seq}"
        line = {
            "job_id": job.id,
            "seq": seq,
            "key": key,
            "kind": happened.kind,
            "at": happened.at,
            "body": body | {"key": key},
            "outcome": outcome,
            "source": str(job.state),
            "to": str(after.state),
            "rule": taken.rule,
            "action": taken.action,
            "said": reason,
            "version": MACHINE_VERSION,
        }
        connection.execute(_NEW_EVENT, [line])
        if taken.effects:
            connection.execute(
                _NEW_EFFECTS,
                [effect_row(job.id, seq, n, effect, happened.at) for n, effect in enumerate(taken.effects)],
            )
        columns = job_columns(self, after, happened.at)
        changed: CursorResult[Any] = connection.execute(
            _UNCHANGED, {**columns, "seq": seq, "job": job.id, "seq_before": job.seq}
        )
        if changed.rowcount != 1:
            raise RuntimeError(f"{job.id} changed under its own transaction; nothing was written")
        return Applied(after, outcome, reason, len(taken.effects), action=taken.action)

    def _rest_one(self, connection: Connection, job: Job, at: datetime) -> None:
        """A timer or look that found nothing: only the timer moves."""
        from states.timers import wake_at

        connection.execute(_SET_WAKE, {"job": job.id, "wake": self.on_grid(wake_at(job, at))})


def new_row(job: Job) -> dict[str, Any]:
    return {
        "id": job.id,
        "request_id": job.request_id or None,
        "owner": job.owner,
        "cluster": job.cluster,
        "state": str(job.state),
        "seq": 0,
        "snapshot": snapshot(job),
        "board": board(job),
        "created_at": job.created_at,
        "story": "",
        "away": False,
        "watched": False,
        "attempt_name": "",
        "cluster_job_id": "",
        "lease_token": "",
    }


def job_columns(store: Database, job: Job, at: datetime) -> dict[str, Any]:
    pause = pause_s(job, at)
    attempt = job.attempt if job.attempts else None
    return {
        "state": str(job.state),
        "snapshot": snapshot(job),
        "board": board(job),
        "ended_at": at if job.state in TERMINAL else None,
        "wake_at": store.on_grid(job.wake_at),
        "deadline_at": deadline(job),
        "seen_at": job.seen_at,
        "look_s": pause[0] if pause else None,
        "look_s_max": pause[1] if pause else None,
        "story": story_of(job),
        "away": job.unreachable_since is not None,
        "watched": job.state in WATCHED and pause is not None,
        "attempt_name": attempt.name if attempt else "",
        "cluster_job_id": attempt.cluster_job_id if attempt else "",
        "submitted_at": attempt.intent_at if attempt else None,
    }


def _outcome_words(taken: Step) -> tuple[str, str]:
    match taken.outcome:
        case Moved():
            return "moved", taken.said
        case Ignored(reason):
            return "ignored", reason
        case stayed:
            return "stayed", stayed.reason


def _not_found(text: str, starts: Iterable[str], ids: Sequence[str]) -> str:
    several = list(starts)
    if several:
        return f"{text!r} fits several runs: {', '.join(several[:5])}; give more of the id"
    from difflib import get_close_matches

    near = get_close_matches(text, ids, n=1)
    return f"there is no run {text!r}" + (
        f"; did you mean {near[0]!r}?" if near else "; `wk jobs` lists them"
    )
