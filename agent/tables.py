"""The rows: jobs, the journal of events, asked effects, delivered messages, the config library.

Constraints make illegal states unstorable: one row per (job, seq), one per (job, key), one effect per
(job, seq, n), one message per effect, one job per request id. Truth is the snapshot; the other columns of a job
exist to be queried.

Never: logic; a session opened outside `store.py`.
"""

from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import JSON, BigInteger, Column, Dialect, Index, Text, UniqueConstraint, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.types import TypeDecorator, TypeEngine
from sqlmodel import Field, SQLModel

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

SCHEMA_VERSION = 4
"""Number of the newest migration; `wk doctor` compares."""


OPEN = text("done_at IS NULL")
"""Effects that are still to be performed: few, among very many that were."""
WHOLE = text("ended_at IS NOT NULL AND compacted_at IS NULL")
"""Ended runs whose journal is still as it was written."""
LIVE = text("ended_at IS NULL")
"""Runs that have not ended: few, among all that ever were."""
LEASED = text("lease_until IS NOT NULL")
"""Runs that somebody performs effects of now, or did when it was killed."""


class UtcTime(TypeDecorator[datetime]):
    """An aware datetime as whole microseconds since the epoch (UTC): the same on every database, exact, and fit
    for arithmetic in SQL (quiet looks move thousands of timers in one statement). A naive one is refused."""

    impl = BigInteger
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> int | None:
        return None if value is None else microseconds(value)

    def process_result_value(self, value: int | None, dialect: Dialect) -> datetime | None:
        return None if value is None else EPOCH + timedelta(microseconds=value)


def microseconds(at: datetime) -> int:
    """Whole microseconds since the epoch. ValueError for a naive datetime."""
    if at.tzinfo is None:
        raise ValueError(f"a naive datetime may not be stored: {at!r}")
    return (at - EPOCH) // timedelta(microseconds=1)


class Json(TypeDecorator[Any]):
    """JSON text; JSONB on PostgreSQL."""

    impl = JSON
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        return dialect.type_descriptor(JSONB() if dialect.name == "postgresql" else JSON())


class JobRow(SQLModel, table=True):
    """One delegated run. snapshot is the truth; the rest is for queries.

    board: the few values that lists show. story/deadline_at/look_s: for quiet looks (`states/quiet.py`).
    away: the cluster did not answer at the last look. lease_*: who performs its effects now.
    compacted_at: when the journal of the ended run was cut to its decisions (`agent/retention.py`).
    What waves move stands before the snapshot: SQLite keeps the beginnings of long rows together, and a wave then
    writes far fewer pages.
    """

    __tablename__ = "job"
    __table_args__ = (
        Index("job_due", "wake_at"),
        Index("job_state", "state"),
        Index("job_whole", "ended_at", sqlite_where=WHOLE, postgresql_where=WHOLE),
        Index("job_new", "created_at", "id"),
        Index("job_live", "created_at", "id", sqlite_where=LIVE, postgresql_where=LIVE),
        Index("job_attempt", "attempt_name"),
        Index("job_leased", "lease_until", sqlite_where=LEASED, postgresql_where=LEASED),
    )

    id: str = Field(primary_key=True)
    request_id: str | None = Field(default=None, unique=True)
    owner: str = ""
    cluster: str = ""
    state: str
    seq: int
    created_at: datetime = Field(sa_type=UtcTime)
    ended_at: datetime | None = Field(default=None, sa_type=UtcTime)
    wake_at: datetime | None = Field(default=None, sa_type=UtcTime)
    deadline_at: datetime | None = Field(default=None, sa_type=UtcTime)
    seen_at: datetime | None = Field(default=None, sa_type=UtcTime)
    look_s: float | None = None
    look_s_max: float | None = None
    story: str = ""
    away: bool = False
    watched: bool = False
    attempt_name: str = ""
    cluster_job_id: str = ""
    submitted_at: datetime | None = Field(default=None, sa_type=UtcTime)
    lease_token: str = ""
    lease_until: datetime | None = Field(default=None, sa_type=UtcTime)
    snapshot: dict[str, Any] = Field(sa_column=Column(Json, nullable=False))
    board: dict[str, Any] = Field(default_factory=dict, sa_column=Column(Json, nullable=False))
    compacted_at: datetime | None = Field(default=None, sa_type=UtcTime)


class EventRow(SQLModel, table=True):
    """One journal line: what happened, what became of it, and which row of the table said so."""

    __tablename__ = "event"
    __table_args__ = (UniqueConstraint("job_id", "seq"), UniqueConstraint("job_id", "key"))

    id: int | None = Field(default=None, primary_key=True)
    job_id: str = Field(foreign_key="job.id")
    seq: int
    key: str
    kind: str
    at: datetime = Field(sa_type=UtcTime)
    body: dict[str, Any] = Field(sa_column=Column(Json, nullable=False))
    outcome: str
    source: str
    to: str
    rule: str = ""
    action: str = ""
    said: str = Field(default="", sa_column=Column(Text, nullable=False))
    version: int = 1


class EffectRow(SQLModel, table=True):
    """One asked effect. id = `<job>:<seq>:<n>`; state: asked, begun, done, given_up."""

    __tablename__ = "effect"
    __table_args__ = (
        UniqueConstraint("job_id", "seq", "n"),
        Index("effect_open", "not_before", sqlite_where=OPEN, postgresql_where=OPEN),
    )

    id: str = Field(primary_key=True)
    job_id: str = Field(foreign_key="job.id", index=True)
    seq: int
    n: int
    kind: str
    lane: str
    body: dict[str, Any] = Field(sa_column=Column(Json, nullable=False))
    state: str = "asked"
    tries: int = 0
    asked_at: datetime = Field(sa_type=UtcTime)
    not_before: datetime = Field(sa_type=UtcTime)
    begun_at: datetime | None = Field(default=None, sa_type=UtcTime)
    done_at: datetime | None = Field(default=None, sa_type=UtcTime)
    said: str = Field(default="", sa_column=Column(Text, nullable=False))
    version: int = 1


class MessageRow(SQLModel, table=True):
    """One report, question or withdrawal as it was put into the person's inbox. id = the effect's id."""

    __tablename__ = "message"
    __table_args__ = (Index("message_job", "job_id", "at"), Index("message_at", "at"))

    id: str = Field(primary_key=True)
    job_id: str = Field(foreign_key="job.id")
    at: datetime = Field(sa_type=UtcTime)
    kind: str
    stage: str = ""
    text: str = Field(sa_column=Column(Text, nullable=False))
    must_not_miss: bool = False


class ChannelRow(SQLModel, table=True):
    """One channel as it was last seen. Messages from `since` on are for it; `upto`: the newest that was taken in.

    failing_since: of a streak of failed sends, fails: their number; told_at: when the other channels were told of it.
    """

    __tablename__ = "channel"

    name: str = Field(primary_key=True)
    since: datetime = Field(sa_type=UtcTime)
    upto: datetime = Field(sa_type=UtcTime)
    sent_at: datetime | None = Field(default=None, sa_type=UtcTime)
    failing_since: datetime | None = Field(default=None, sa_type=UtcTime)
    fails: int = 0
    told_at: datetime | None = Field(default=None, sa_type=UtcTime)
    said: str = Field(default="", sa_column=Column(Text, nullable=False))


class DeliveryRow(SQLModel, table=True):
    """One message on its way to one channel. id = `<channel>:<message>`; state: waiting, begun, sent, moot.

    parcel: what it was first sent in, and is sent in again; place: where the channel put it (a Slack `ts`).
    text: of a notice about a channel, which is no message of a run (message_id and job_id are "" then).
    """

    __tablename__ = "delivery"
    __table_args__ = (
        Index("delivery_due", "channel", "done_at", "due_at"),
        Index("delivery_run", "channel", "job_id"),
        Index("delivery_place", "channel", "place"),
    )

    id: str = Field(primary_key=True)
    channel: str
    message_id: str = ""
    job_id: str = ""
    at: datetime = Field(sa_type=UtcTime)
    due_at: datetime = Field(sa_type=UtcTime)
    loud: bool = False
    state: str = "waiting"
    parcel: str = ""
    tries: int = 0
    held_until: datetime | None = Field(default=None, sa_type=UtcTime)
    begun_at: datetime | None = Field(default=None, sa_type=UtcTime)
    done_at: datetime | None = Field(default=None, sa_type=UtcTime)
    place: str = ""
    said: str = Field(default="", sa_column=Column(Text, nullable=False))
    text: str = Field(default="", sa_column=Column(Text, nullable=False))


class LibraryRow(SQLModel, table=True):
    """One entry of the config library: "for this kind of work, this set-up". digest folds exact repeats."""

    __tablename__ = "library"
    __table_args__ = (UniqueConstraint("purpose", "digest"),)

    id: int | None = Field(default=None, primary_key=True)
    purpose: str = Field(index=True)
    digest: str
    settings: dict[str, Any] = Field(sa_column=Column(Json, nullable=False))
    used: int = 0
    worked: int = 0
    first_at: datetime = Field(sa_type=UtcTime)
    last_at: datetime = Field(sa_type=UtcTime)
    stale_at: datetime | None = Field(default=None, sa_type=UtcTime)
    stale_why: str = Field(default="", sa_column=Column(Text, nullable=False))
    notes: list[str] = Field(default_factory=list, sa_column=Column(Json, nullable=False))


class LibraryKeyRow(SQLModel, table=True):
    """Effects that the library has taken in already, so that a repeat is dropped (KEYED)."""

    __tablename__ = "library_key"

    id: str = Field(primary_key=True)


class ReadingRow(SQLModel, table=True):
    """One call of the model: what it cost, and the reply (the cache of readings, by the hash of the input).

    kind: "read", or why the reading is void. job_id: "" when no run asked. cost_usd: null when no price is known.
    """

    __tablename__ = "reading"
    __table_args__ = (Index("reading_key", "key"), Index("reading_job", "job_id"), Index("reading_at", "at"))

    id: int | None = Field(default=None, primary_key=True)
    key: str
    job_id: str = ""
    at: datetime = Field(sa_type=UtcTime)
    model: str
    kind: str
    stop_reason: str = ""
    reply: str = Field(default="", sa_column=Column(Text, nullable=False))
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    cost_usd: float | None = None
