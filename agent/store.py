"""The unit of work: the only file that opens a session. One transaction per turn of a job.

`apply` is the heart: load -> step -> event + snapshot + asked effects, committed together. The same event key twice
is a no-op that gives the first result. SQLite (WAL, synchronous=FULL, BEGIN IMMEDIATE) is the embedded default;
PostgreSQL by URL.

Never: hold a transaction open during a call to the outside; decide anything about a job.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any, NamedTuple, cast

from sqlalchemy import (
    BigInteger,
    Connection,
    CursorResult,
    Engine,
    Select,
    Table,
    bindparam,
    case,
    create_engine,
    event,
    exists,
    func,
    insert,
    literal,
    select,
    tuple_,
    update,
)
from sqlalchemy import cast as sql_cast
from sqlalchemy.pool import StaticPool

from agent import crash
from agent.tables import EffectRow, EventRow, JobRow, MessageRow, microseconds
from states.board import board
from states.effects import AnyEffect, parse_effect
from states.events import AnyEvent, Observed, parse_event
from states.job import MACHINE_VERSION, TERMINAL, WATCHED, Job, State, restored, snapshot
from states.machine import Ignored, Moved, Step, step
from states.quiet import story_of
from states.timers import deadline, pause_s
from states.versions import lift_event, lift_snapshot

JOBS, EVENTS = cast(Table, JobRow.__table__), cast(Table, EventRow.__table__)  # type: ignore[attr-defined]
EFFECTS, MESSAGES = cast(Table, EffectRow.__table__), cast(Table, MessageRow.__table__)  # type: ignore[attr-defined]

_BEFORE = EFFECTS.alias("before")
IS_FIRST_IN_LANE = ~exists().where(
    _BEFORE.c.job_id == EFFECTS.c.job_id,
    _BEFORE.c.lane == EFFECTS.c.lane,
    _BEFORE.c.done_at.is_(None),
    tuple_(_BEFORE.c.seq, _BEFORE.c.n) < tuple_(EFFECTS.c.seq, EFFECTS.c.n),
)
"""No open effect of the same run and lane stands before this one: those behind it wait, whatever their time."""

UNJOURNALLED = frozenset({"wake_due", "observed", "cluster_unreachable"})
"""Looks and timers that find nothing to do leave no journal row."""

LOOK_STRETCH = 1.25
"""A quiet look stretches the pause to the next one by this, up to the job's own bound."""

Redact = Callable[[Any], Any]

Record = Mapping[str, Any]
"""A row as it was read: values by the name of their column."""


class Applied(NamedTuple):
    """What became of an event. job: after it. duplicate: this key was here before; nothing was done again.
    action: the verb of the table's row that was taken, if one was."""

    job: Job
    outcome: str
    reason: str
    effects: int
    duplicate: bool = False
    action: str = ""


class AskedEffect(NamedTuple):
    """An effect to perform. begun: it was begun before and its end is not known."""

    id: str
    job_id: str
    effect: AnyEffect
    tries: int
    begun: bool


class Due(NamedTuple):
    """A job whose timer has come, from columns alone."""

    id: str
    cluster: str
    state: str
    watched: bool
    name: str
    cluster_job_id: str
    submitted_at: datetime | None
    story: str
    away: bool
    deadline_at: datetime | None


class Unknown(LookupError):
    """There is no such run. The message names the nearest ones."""


class Store:
    """The database of one Watchkeeper. Thread-safe; each call is one transaction."""

    def __init__(self, url: str, *, redact: Redact = lambda value: value, grid_s: float = 1.0) -> None:
        self.url = url
        self.engine = _engine(url)
        self._redact = redact
        self._grid_us = max(1, int(grid_s * 1_000_000))

    def create_schema(self) -> None:
        """Make the database's form, or bring it up to date (`agent.migrations`). Raises its TooNew."""
        from agent.migrations import upgrade

        upgrade(self.engine)

    def close(self) -> None:
        self.engine.dispose()

    # --- jobs ------------------------------------------------------------------------------------------------

    def create(self, job: Job, event: AnyEvent) -> Applied:
        """Store a new job and its first event together. A known request id answers with the run that has it."""
        with self._write() as connection:
            if job.request_id:
                known = connection.execute(
                    select(JOBS.c.id).where(JOBS.c.request_id == job.request_id)
                ).scalar()
                if known is not None:
                    return Applied(
                        self._load(connection, known), "ignored", "delegated before", 0, duplicate=True
                    )
            if connection.execute(select(JOBS.c.id).where(JOBS.c.id == job.id)).scalar() is not None:
                return Applied(
                    self._load(connection, job.id), "ignored", "delegated before", 0, duplicate=True
                )
            connection.execute(insert(JOBS).values(**_new_row(job)))
            applied = self._apply(connection, job, event)
        crash.point("event-committed")
        return applied

    def apply(self, job_id: str, event: AnyEvent, *, done: str = "", said: str = "") -> Applied:
        """Take an event to a job; `done` is the effect whose result it is, finished in the same transaction.

        Raises Unknown for an id that is not there.
        """
        with self._write() as connection:
            if done:
                self._finish(connection, done, event.at, said)
            job = self._load(connection, job_id, lock=True)
            if event.key and self._seen_before(connection, job_id, event.key):
                return Applied(job, "ignored", "this event was taken before", 0, duplicate=True)
            applied = self._apply(connection, job, event)
        crash.point("event-committed")
        return applied

    def load(self, job_id: str) -> Job:
        """The job as it stands. Raises Unknown."""
        with self._read() as connection:
            return self._load(connection, job_id)

    def find(self, text: str) -> str:
        """The full id of a run given by id, unique beginning, or attempt name. Raises Unknown."""
        with self._read() as connection:
            ids: list[str] = list(
                connection.execute(select(JOBS.c.id).order_by(JOBS.c.created_at.desc())).scalars()
            )
            if text in ids:
                return text
            starts = [job_id for job_id in ids if job_id.startswith(text)]
            if len(starts) == 1:
                return starts[0]
            named = connection.execute(select(JOBS.c.id).where(JOBS.c.attempt_name == text)).scalar()
        if named is not None:
            return str(named)
        raise Unknown(_not_found(text, starts, ids))

    def boards(self, *, live: bool = False, limit: int = 200) -> list[Record]:
        """The list columns of runs, newest first; children of other runs are left out."""
        columns = (
            JOBS.c.id,
            JOBS.c.state,
            JOBS.c.cluster,
            JOBS.c.board,
            JOBS.c.created_at,
            JOBS.c.ended_at,
            JOBS.c.wake_at,
        )
        query = select(*columns).order_by(JOBS.c.created_at.desc()).limit(limit)
        if live:
            query = query.where(JOBS.c.ended_at.is_(None))
        with self._read() as connection:
            return _records(connection, query)

    def with_open_questions(self) -> list[Job]:
        """Every blocked run."""
        with self._read() as connection:
            ids = connection.execute(select(JOBS.c.id).where(JOBS.c.state == State.blocked)).scalars()
            return [self._load(connection, job_id) for job_id in list(ids)]

    def live_ids(self) -> list[str]:
        """Every run that has not ended."""
        with self._read() as connection:
            return list(connection.execute(select(JOBS.c.id).where(JOBS.c.ended_at.is_(None))).scalars())

    def journal(self, job_id: str, *, after_seq: int = -1) -> list[Record]:
        """The events of a run, oldest first."""
        query = (
            select(EVENTS).where(EVENTS.c.job_id == job_id, EVENTS.c.seq > after_seq).order_by(EVENTS.c.seq)
        )
        with self._read() as connection:
            return _records(connection, query)

    def history(self, job_id: str) -> list[AnyEvent]:
        """The events themselves, for replay."""
        return [parse_event(lift_event(row["body"])) for row in self.journal(job_id)]

    def effects_of(self, job_id: str) -> list[Record]:
        """Every effect that was asked for a run, in order."""
        query = select(EFFECTS).where(EFFECTS.c.job_id == job_id).order_by(EFFECTS.c.seq, EFFECTS.c.n)
        with self._read() as connection:
            return _records(connection, query)

    # --- effects ---------------------------------------------------------------------------------------------

    def next_effect(self, job_id: str, now: datetime) -> AskedEffect | None:
        """The first open effect of a lane that is due; effects behind it in the same lane wait."""
        query = (
            select(EFFECTS)
            .where(EFFECTS.c.job_id == job_id, EFFECTS.c.done_at.is_(None))
            .order_by(EFFECTS.c.seq, EFFECTS.c.n)
        )
        with self._read() as connection:
            lanes: set[str] = set()
            for row in connection.execute(query).mappings():
                if row["lane"] in lanes:
                    continue
                lanes.add(row["lane"])
                if row["not_before"] <= now:
                    effect = parse_effect(row["body"])
                    return AskedEffect(row["id"], job_id, effect, row["tries"], row["state"] == "begun")
        return None

    def begin_effect(self, effect_id: str, now: datetime) -> None:
        """Intent before call: from here on a crash leaves a mark."""
        with self._write() as connection:
            connection.execute(
                update(EFFECTS).where(EFFECTS.c.id == effect_id).values(state="begun", begun_at=now)
            )
        crash.point("effect-begun")

    def finish_effect(self, effect_id: str, now: datetime, said: str = "") -> None:
        """Done, with no event of its own (a delivered message)."""
        with self._write() as connection:
            self._finish(connection, effect_id, now, said)

    def retry_effect(self, effect_id: str, not_before: datetime, said: str) -> None:
        """It failed in a way that may pass."""
        with self._write() as connection:
            connection.execute(
                update(EFFECTS)
                .where(EFFECTS.c.id == effect_id)
                .values(
                    state="asked", not_before=not_before, tries=EFFECTS.c.tries + 1, said=self._redact(said)
                )
            )

    def jobs_with_effects(self, now: datetime, limit: int = 1000) -> list[str]:
        """Ids of jobs that have an effect to perform now and whose lease is free."""
        query = (
            select(EFFECTS.c.job_id)
            .join(JOBS, JOBS.c.id == EFFECTS.c.job_id)
            .where(EFFECTS.c.done_at.is_(None), EFFECTS.c.not_before <= now, IS_FIRST_IN_LANE)
            .where((JOBS.c.lease_until.is_(None)) | (JOBS.c.lease_until <= now))
            .distinct()
            .limit(limit)
        )
        with self._read() as connection:
            return list(connection.execute(query).scalars())

    def next_effect_at(self) -> datetime | None:
        """When the earliest effect may be performed: the first of its lane, its time come, its run's lease free.

        Anything earlier would wake the loop for nothing, again and again.
        """
        held = JOBS.c.lease_until > EFFECTS.c.not_before
        free_at = case((held, JOBS.c.lease_until), else_=EFFECTS.c.not_before)
        query = (
            select(func.min(free_at))
            .join(JOBS, JOBS.c.id == EFFECTS.c.job_id)
            .where(EFFECTS.c.done_at.is_(None), IS_FIRST_IN_LANE)
        )
        with self._read() as connection:
            return connection.execute(query).scalar()

    # --- timers ----------------------------------------------------------------------------------------------

    def claim_due(self, now: datetime, *, claim_s: float, limit: int = 20_000) -> list[Due]:
        """Take the jobs whose timer has come, and push their timers `claim_s` ahead: the claim of this wave.

        If the process dies in the middle they are due again then; another replica does not take them meanwhile.
        """
        columns = (
            JOBS.c.id,
            JOBS.c.cluster,
            JOBS.c.state,
            JOBS.c.watched,
            JOBS.c.attempt_name,
            JOBS.c.cluster_job_id,
            JOBS.c.submitted_at,
            JOBS.c.story,
            JOBS.c.away,
            JOBS.c.deadline_at,
        )
        query = select(*columns).where(JOBS.c.wake_at <= now).order_by(JOBS.c.wake_at).limit(limit)
        with self._write() as connection:
            if connection.dialect.name == "postgresql":
                query = query.with_for_update(skip_locked=True)
            rows = [Due._make(row) for row in connection.execute(query)]
            if rows:
                later = now + timedelta(seconds=claim_s)
                _in_pieces(
                    connection, [row.id for row in rows], lambda ids: _where(ids).values(wake_at=later)
                )
        crash.point("wave-claimed")
        return rows

    def rest(self, quiet: Sequence[str], now: datetime, *, seen: bool) -> None:
        """Quiet looks: move `seen_at` and `wake_at` of all of them in one statement, no journal row, no turn."""
        if not quiet:
            return
        now_us = microseconds(now)
        stretched = case(
            (JOBS.c.look_s * LOOK_STRETCH < JOBS.c.look_s_max, JOBS.c.look_s * LOOK_STRETCH),
            else_=JOBS.c.look_s_max,
        )
        look_us = literal(now_us) + sql_cast(JOBS.c.look_s * 1_000_000, BigInteger)
        grid_us = (look_us + (self._grid_us - 1)) // self._grid_us * self._grid_us
        due_us = sql_cast(JOBS.c.deadline_at, BigInteger)
        wake_us = case((due_us.is_not(None) & (due_us < grid_us), due_us), else_=grid_us)
        values: dict[Any, Any] = {JOBS.c.wake_at: wake_us, JOBS.c.look_s: stretched}
        if seen:
            values[JOBS.c.seen_at] = now
            values[JOBS.c.away] = False
        with self._write() as connection:
            _in_pieces(connection, quiet, lambda ids: _where(ids).values(values))
        crash.point("quiet-rested")

    def next_wake(self) -> datetime | None:
        """The earliest timer of all."""
        with self._read() as connection:
            return connection.execute(select(func.min(JOBS.c.wake_at))).scalar()

    # --- messages --------------------------------------------------------------------------------------------

    def deliver(self, message: Mapping[str, Any]) -> bool:
        """Put a message into the inbox; False when it is there already (KEYED). Its id is that of the effect that
        asks for it, which is done with the same commit."""
        with self._write() as connection:
            if (
                connection.execute(select(MESSAGES.c.id).where(MESSAGES.c.id == message["id"])).scalar()
                is not None
            ):
                return False
            connection.execute(insert(MESSAGES).values(**{**message, "text": self._redact(message["text"])}))
            self._finish(connection, message["id"], message["at"], "")
        crash.point("message-delivered")
        return True

    def messages(self, job_id: str, *, after_id: str = "") -> list[Record]:
        """The messages of a run, oldest first."""
        query = select(MESSAGES).where(MESSAGES.c.job_id == job_id).order_by(MESSAGES.c.at, MESSAGES.c.id)
        with self._read() as connection:
            rows = _records(connection, query)
        ids = [row["id"] for row in rows]
        return rows[ids.index(after_id) + 1 :] if after_id in ids else rows

    # --- inside ----------------------------------------------------------------------------------------------

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """A write transaction, for the library and the leases."""
        with self._write() as connection:
            yield connection

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A read transaction, for the library and the leases."""
        with self._read() as connection:
            yield connection

    @contextmanager
    def _write(self) -> Iterator[Connection]:
        with self.engine.connect().execution_options(write=True) as connection, connection.begin():
            yield connection

    @contextmanager
    def _read(self) -> Iterator[Connection]:
        with self.engine.connect() as connection, connection.begin():
            yield connection

    def _load(self, connection: Connection, job_id: str, *, lock: bool = False) -> Job:
        query = select(JOBS.c.snapshot, JOBS.c.seq, JOBS.c.seen_at, JOBS.c.wake_at).where(JOBS.c.id == job_id)
        if lock and connection.dialect.name == "postgresql":
            query = query.with_for_update()
        row = connection.execute(query).one_or_none()
        if row is None:
            raise Unknown(f"there is no run {job_id!r}; `wk jobs` lists them")
        return restored(lift_snapshot(row[0]), seq=row[1], seen_at=row[2], wake_at=row[3])

    def _seen_before(self, connection: Connection, job_id: str, key: str) -> bool:
        query = select(EVENTS.c.id).where(EVENTS.c.job_id == job_id, EVENTS.c.key == key)
        return connection.execute(query).scalar() is not None

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
        connection.execute(
            insert(EVENTS).values(
                job_id=job.id,
                seq=seq,
                key=key,
                kind=happened.kind,
                at=happened.at,
                body=body | {"key": key},
                outcome=outcome,
                source=str(job.state),
                to=str(after.state),
                rule=taken.rule,
                action=taken.action,
                said=reason,
                version=MACHINE_VERSION,
            )
        )
        if taken.effects:
            connection.execute(
                insert(EFFECTS),
                [_effect_row(job.id, seq, n, effect, happened.at) for n, effect in enumerate(taken.effects)],
            )
        changed: CursorResult[Any] = connection.execute(
            update(JOBS)
            .where(JOBS.c.id == job.id, JOBS.c.seq == job.seq)
            .values(**self._row(after, happened.at), seq=seq)
        )
        if changed.rowcount != 1:
            raise RuntimeError(f"{job.id} changed under its own transaction; nothing was written")
        return Applied(after, outcome, reason, len(taken.effects), action=taken.action)

    def _rest_one(self, connection: Connection, job: Job, at: datetime) -> None:
        """A timer or look that found nothing: only the timer moves."""
        from states.timers import wake_at

        connection.execute(
            update(JOBS).where(JOBS.c.id == job.id).values(wake_at=self._on_grid(wake_at(job, at)))
        )

    def _finish(self, connection: Connection, effect_id: str, now: datetime, said: str) -> None:
        connection.execute(
            update(EFFECTS)
            .where(EFFECTS.c.id == effect_id, EFFECTS.c.done_at.is_(None))
            .values(state="done", done_at=now, said=self._redact(said))
        )

    def _row(self, job: Job, at: datetime) -> dict[str, Any]:
        pause = pause_s(job, at)
        attempt = job.attempt if job.attempts else None
        return {
            "state": str(job.state),
            "snapshot": snapshot(job),
            "board": board(job),
            "ended_at": at if job.state in TERMINAL else None,
            "wake_at": self._on_grid(job.wake_at),
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

    def _on_grid(self, at: datetime | None) -> datetime | None:
        """Timers are rounded up to the wave grid, so that jobs fall due together and share one status call."""
        if at is None:
            return None
        late_us = -microseconds(at) % self._grid_us
        return at + timedelta(microseconds=late_us)


def _engine(url: str) -> Engine:
    if not url.startswith("sqlite"):
        return create_engine(url, pool_pre_ping=True)
    memory = url in ("sqlite://", "sqlite:///:memory:")
    options: dict[str, Any] = {"poolclass": StaticPool} if memory else {}
    engine = create_engine(url, connect_args={"check_same_thread": False, "timeout": 30}, **options)

    @event.listens_for(engine, "connect")
    def _connected(connection: Any, record: object) -> None:
        connection.isolation_level = None  # the driver would begin too late and lose updates (STACK 4)
        for pragma in ("journal_mode=WAL", "synchronous=FULL", "busy_timeout=30000", "foreign_keys=ON"):
            connection.execute(f"PRAGMA {pragma}")

    @event.listens_for(engine, "begin")
    def _begun(connection: Connection) -> None:
        write = connection.get_execution_options().get("write")
        connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")

    return engine


def _records(connection: Connection, query: Select[Any]) -> list[Record]:
    return cast("list[Record]", list(connection.execute(query).mappings()))


def _where(ids: Sequence[str]) -> Any:
    return update(JOBS).where(JOBS.c.id.in_(bindparam("ids", ids, expanding=True)))


def _in_pieces(connection: Connection, ids: Sequence[str], statement: Callable[[Sequence[str]], Any]) -> None:
    """Databases bound the number of parameters; 10,000 ids are ten statements of one transaction."""
    for start in range(0, len(ids), 1000):
        connection.execute(statement(list(ids[start : start + 1000])))


def _new_row(job: Job) -> dict[str, Any]:
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


def _effect_row(job_id: str, seq: int, n: int, effect: AnyEffect, at: datetime) -> dict[str, Any]:
    return {
        "id": f"{job_id}:{seq}:{n}",
        "job_id": job_id,
        "seq": seq,
        "n": n,
        "kind": effect.kind,
        "lane": effect.lane,
        "body": effect.model_dump(mode="json", exclude_defaults=True) | {"kind": effect.kind},
        "state": "asked",
        "tries": 0,
        "asked_at": at,
        "not_before": at,
        "said": "",
        "version": MACHINE_VERSION,
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
