"""What is on its way to the channels, as rows: one per (channel, message), so that none is lost and none is doubled.

The inbox is the truth: every message that it holds is found again from where the last look ended, whoever died
meanwhile. What was once begun together (a parcel) is tried again together, under the same key.

Never: send anything (`agent/channels` does); decide what a channel gets (`states/routing.py` does).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple, cast

from sqlalchemy import Connection, Table, and_, exists, func, insert, literal, or_, select, update

from agent.database import EFFECTS, MESSAGES, Record
from agent.store import Store
from agent.tables import ChannelRow, DeliveryRow
from states.routing import Notice, Plan

CHANNELS = cast(Table, ChannelRow.__table__)  # type: ignore[attr-defined]
DELIVERIES = cast(Table, DeliveryRow.__table__)  # type: ignore[attr-defined]

OVERLAP = timedelta(hours=1)
"""A message may be committed this long after the time that it bears (a slow write, another machine's clock)."""
HELD = timedelta(seconds=120)
"""How long who claimed a delivery holds it; longer than any send."""
CLAIM_MAX = 200


class Waiting(NamedTuple):
    """A delivery that may be sent now. numbers: the questions that its message asks; begun_at: when it was first
    sent without its end being known (None: it was not)."""

    id: str
    message_id: str
    job_id: str
    at: datetime
    kind: str
    stage: str
    text: str
    loud: bool
    numbers: tuple[int, ...]
    parcel: str
    tries: int
    begun_at: datetime | None


class Standing(NamedTuple):
    """How a channel does. waiting: due and not sent; failing_since: of a streak of failures, None for none."""

    name: str
    sent_at: datetime | None
    failing_since: datetime | None
    fails: int
    told_at: datetime | None
    said: str
    waiting: int


class Deliveries:
    """The deliveries of one Watchkeeper. Thread-safe; each call is one transaction."""

    def __init__(self, store: Store, redact: Callable[[str], str] = str) -> None:
        self._store, self._redact = store, redact

    # --- taking in -----------------------------------------------------------------------------------------

    def enlist(self, channel: str, now: datetime, plan: Callable[[Notice], Plan | None]) -> int:
        """Plan every message that is new to the channel; how many are to be sent. A channel that is new here begins
        with what comes from now on."""
        with self._store.read() as connection:  # most looks find nothing, and need no writer's lock
            row = _channel(connection, channel)
            if row is not None and not _new_messages(connection, channel, _since(row)):
                return 0
        with self._store.write() as connection:
            row = _channel(connection, channel, lock=True)
            if row is None:
                values = {"name": channel, "since": now, "upto": now, "fails": 0, "said": ""}
                connection.execute(insert(CHANNELS), values)
                return 0
            found = _new_messages(connection, channel, _since(row))
            planned = [_planned(message, channel, plan) for message in found]
            if planned:
                connection.execute(insert(DELIVERIES), planned)
                upto = max(row["upto"], *(message["at"] for message in found))
                connection.execute(_this(channel).values(upto=upto))
        return sum(values["state"] == "waiting" for values in planned)

    def notice(self, channel: str, key: str, text: str, now: datetime) -> None:
        """Something about the channels themselves, for this one; once per key."""
        values = {
            **_NEW, "id": f"{channel}:{key}", "channel": channel, "message_id": "", "job_id": "",
            "at": now, "due_at": now, "loud": True, "text": self._redact(text),
        }  # fmt: skip
        with self._store.write() as connection:
            known = select(DELIVERIES.c.id).where(DELIVERIES.c.id == values["id"])
            if connection.execute(known).scalar() is None:
                connection.execute(insert(DELIVERIES), values)

    # --- sending -------------------------------------------------------------------------------------------

    def claim(self, channel: str, now: datetime) -> list[Waiting]:
        """What is due, and of the runs that are spoken of aloud also what waits to be gathered. Held for this caller
        for HELD; oldest first."""
        open_here = and_(DELIVERIES.c.channel == channel, DELIVERIES.c.done_at.is_(None))
        free = or_(DELIVERIES.c.held_until.is_(None), DELIVERIES.c.held_until <= now)
        due = and_(open_here, free, DELIVERIES.c.due_at <= now)
        query = _WAITING.where(due).order_by(DELIVERIES.c.at, DELIVERIES.c.id).limit(CLAIM_MAX)
        with self._store.read() as connection:
            if connection.execute(select(DELIVERIES.c.id).where(due).limit(1)).scalar() is None:
                return []
        with self._store.write() as connection:
            if connection.dialect.name == "postgresql":
                query = query.with_for_update(of=DELIVERIES, skip_locked=True)
            found: list[Any] = list(connection.execute(query).mappings())
            aloud = {row["job_id"] for row in found if row["loud"] and row["job_id"]}
            gathered = and_(
                DELIVERIES.c.due_at > now, DELIVERIES.c.loud.is_(False), DELIVERIES.c.parcel == ""
            )
            if aloud:
                with_them = _WAITING.where(open_here, free, gathered, DELIVERIES.c.job_id.in_(aloud))
                found += connection.execute(with_them.order_by(DELIVERIES.c.at)).mappings()
            ids = [row["id"] for row in found]
            connection.execute(_these(ids).values(held_until=now + HELD))
        return [_waiting(row) for row in found]

    def begin(self, ids: Sequence[str], parcel: str, now: datetime) -> None:
        """Intent before the call: from here on these belong together, and a crash leaves a mark."""
        first = func.coalesce(DELIVERIES.c.begun_at, _us(now))
        with self._store.write() as connection:
            connection.execute(_these(ids).values(state="begun", parcel=parcel, begun_at=first, due_at=now))

    def sent(self, channel: str, ids: Sequence[str], place: str, now: datetime) -> None:
        """They are there. place: where the channel put them."""
        with self._store.write() as connection:
            connection.execute(_these(ids).values(state="sent", done_at=now, place=place, said=""))
            row = _channel(connection, channel)
            healed = {"failing_since": None, "fails": 0, "told_at": None, "said": ""}
            if row is not None:
                connection.execute(_this(channel).values(sent_at=now, **healed))

    def failed(
        self, channel: str, ids: Sequence[str], due_at: datetime, said: str, now: datetime, *, unsure: bool
    ) -> None:
        """They were not sent; again at `due_at`. unsure: they may have been, which is found out first then."""
        said = self._redact(said)[:400]
        mark = {} if unsure else {"state": "waiting", "begun_at": None}
        with self._store.write() as connection:
            tries = DELIVERIES.c.tries + 1
            values = {"due_at": due_at, "tries": tries, "said": said, "held_until": None, **mark}
            connection.execute(_these(ids).values(**values))
            since = func.coalesce(CHANNELS.c.failing_since, _us(now))
            connection.execute(
                _this(channel).values(failing_since=since, fails=CHANNELS.c.fails + 1, said=said)
            )

    def moot(self, ids: Sequence[str], said: str, now: datetime) -> None:
        """They need not be sent any more."""
        with self._store.write() as connection:
            connection.execute(_these(ids).values(state="moot", done_at=now, said=said))

    def release(self, ids: Sequence[str]) -> None:
        """They were claimed and not tried."""
        if not ids:
            return
        with self._store.write() as connection:
            connection.execute(_these(ids).values(held_until=None))

    def told(self, channel: str, now: datetime) -> None:
        """The other channels know that this one fails."""
        with self._store.write() as connection:
            connection.execute(_this(channel).values(told_at=now))

    # --- looking -------------------------------------------------------------------------------------------

    def standing(self, channel: str, now: datetime) -> Standing:
        """How the channel does; one that never ran stands fine."""
        late = select(func.count()).where(
            DELIVERIES.c.channel == channel, DELIVERIES.c.done_at.is_(None), DELIVERIES.c.due_at <= now
        )
        with self._store.read() as connection:
            row = _channel(connection, channel) or {}
            waiting = int(connection.execute(late).scalar() or 0)
        values = {name: row.get(name) for name in ("sent_at", "failing_since", "told_at")}
        return Standing(
            name=channel, fails=row.get("fails") or 0, said=row.get("said") or "", waiting=waiting, **values
        )

    def next_at(self, channel: str) -> datetime | None:
        """When the next delivery of this channel falls due."""
        query = select(func.min(DELIVERIES.c.due_at)).where(
            DELIVERIES.c.channel == channel, DELIVERIES.c.done_at.is_(None)
        )
        with self._store.read() as connection:
            return cast("datetime | None", connection.execute(query).scalar())

    def open_count(self, channels: Iterable[str], *, tries_max: int) -> int:
        """How many are still to be sent by these channels, those left out that failed so often that waiting for them
        would hold up an end that nobody else waits for."""
        query = select(func.count()).where(
            DELIVERIES.c.channel.in_(list(channels)),
            DELIVERIES.c.done_at.is_(None),
            DELIVERIES.c.tries < tries_max,
        )
        with self._store.read() as connection:
            return int(connection.execute(query).scalar() or 0)

    def place_of(self, channel: str, job_id: str) -> str:
        """Where the channel put the first message of a run: the beginning of its thread; "" for none."""
        query = (
            select(DELIVERIES.c.place)
            .where(DELIVERIES.c.channel == channel, DELIVERIES.c.job_id == job_id, DELIVERIES.c.place != "")
            .order_by(DELIVERIES.c.done_at, DELIVERIES.c.id)
            .limit(1)
        )
        with self._store.read() as connection:
            return str(connection.execute(query).scalar() or "")

    def run_at(self, channel: str, place: str) -> str:
        """The run whose message stands at this place; "" for none."""
        query = select(DELIVERIES.c.job_id).where(
            DELIVERIES.c.channel == channel, DELIVERIES.c.place == place
        )
        with self._store.read() as connection:
            return str(connection.execute(query.limit(1)).scalar() or "")

    def of_message(self, message_id: str) -> list[Record]:
        """What became of a message, channel by channel."""
        query = select(DELIVERIES).where(DELIVERIES.c.message_id == message_id).order_by(DELIVERIES.c.channel)
        with self._store.read() as connection:
            return cast("list[Record]", list(connection.execute(query).mappings()))


_NEW: dict[str, Any] = {"state": "waiting", "parcel": "", "tries": 0, "place": "", "said": "", "text": ""}

_WAITING = (
    select(
        DELIVERIES,
        MESSAGES.c.kind.label("kind"),
        MESSAGES.c.stage.label("stage"),
        MESSAGES.c.text.label("words"),
        EFFECTS.c.body.label("body"),
    )
    .outerjoin(MESSAGES, MESSAGES.c.id == DELIVERIES.c.message_id)
    .outerjoin(EFFECTS, EFFECTS.c.id == DELIVERIES.c.message_id)
)


def _this(channel: str) -> Any:
    return update(CHANNELS).where(CHANNELS.c.name == channel)


def _these(ids: Sequence[str]) -> Any:
    return update(DELIVERIES).where(DELIVERIES.c.id.in_(list(ids)))


def _us(at: datetime) -> Any:
    return literal(at, CHANNELS.c.since.type)


def _channel(connection: Connection, name: str, *, lock: bool = False) -> Record | None:
    query = select(CHANNELS).where(CHANNELS.c.name == name)
    if lock and connection.dialect.name == "postgresql":
        query = query.with_for_update()  # two processes plan the same messages one after the other
    found = connection.execute(query).mappings().one_or_none()
    return cast("Record | None", found)


def _since(row: Record) -> datetime:
    """From when on messages may be new to a channel."""
    return cast(datetime, max(row["since"], row["upto"] - OVERLAP))


def _new_messages(connection: Connection, channel: str, since: datetime) -> list[Record]:
    known = exists().where(DELIVERIES.c.id == literal(f"{channel}:") + MESSAGES.c.id)
    query = (
        select(MESSAGES, EFFECTS.c.body)
        .outerjoin(EFFECTS, EFFECTS.c.id == MESSAGES.c.id)
        .where(MESSAGES.c.at >= since, ~known)
        .order_by(MESSAGES.c.at, MESSAGES.c.id)
    )
    return cast("list[Record]", list(connection.execute(query).mappings()))


def _planned(message: Record, channel: str, plan: Callable[[Notice], Plan | None]) -> dict[str, Any]:
    """The row of a message; one that is not wanted is written down as done, so that it is not found again."""
    ends = [question["answer_by"] for question in _questions(message["body"])]
    answer_by = min(map(datetime.fromisoformat, ends), default=None)
    wanted = plan(Notice(message["kind"], message["must_not_miss"], message["at"], answer_by))
    return {
        **_NEW,
        "id": f"{channel}:{message['id']}",
        "channel": channel,
        "message_id": message["id"],
        "job_id": message["job_id"],
        "at": message["at"],
        "due_at": wanted.send_at if wanted else message["at"],
        "loud": bool(wanted and wanted.loud),
        "state": "waiting" if wanted else "moot",
        "done_at": None if wanted else message["at"],
        "said": "" if wanted else "this channel does not want it",
    }


def _questions(body: Any) -> list[dict[str, Any]]:
    """The questions of the effect that a message came from."""
    return list((body or {}).get("questions", ()))


def _waiting(row: Any) -> Waiting:
    same = {
        name: row[name]
        for name in ("id", "message_id", "job_id", "at", "loud", "parcel", "tries", "begun_at")
    }
    numbers = tuple(int(question["number"]) for question in _questions(row["body"]))
    text = row["words"] or row["text"]
    return Waiting(kind=row["kind"] or "notice", stage=row["stage"] or "", text=text, numbers=numbers, **same)
