"""Carries the deliveries of one channel: take in, plan, send, try again later; a channel that fails is told of on the
others.

Each delivery is marked before it is sent, so a crash leaves a mark: then the channel is asked whether it has it.
Where it cannot say, what interrupts is sent again and says so, and a routine update is left to the inbox.

Never: give a message up; hold one channel up for another; raise for what a channel did.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, tzinfo

from agent import crash, observe
from agent.channels.base import Channel, ChannelError, Parcel, Unsure
from agent.channels.parcels import Packer
from agent.clock import Clock
from agent.deliveries import Deliveries, Waiting
from states.orders import QuietHours
from states.questions import Language
from states.routing import Notice, Plan, Rule, plan

log = logging.getLogger(__name__)

RETRY_S = 5.0
RETRY_S_MAX = 900.0
FAILS_TELL = 3
TELL_S = 120.0
"""A channel that failed so often and for so long is told of on the others; less may be a hiccup."""

WORDS: dict[Language, dict[str, str]] = {
    "en": {
        "dead": "The channel {name} has not taken anything since {since}: {said}\n"
        "What was meant for it waits and is sent when it answers again. Look at it: wk doctor",
        "back": "The channel {name} answers again; what waited since {since} is sent.",
    },
    "zh": {
        "dead": "渠道 {name} 从 {since} 起无法送达: {said}\n待发内容会保留, 恢复后补发。检查: wk doctor",
        "back": "渠道 {name} 已恢复, {since} 以来的内容会补发。",
    },
}


@dataclass
class Courier:
    """One channel's. others: names of the other channels. quiet: the hours of the standing orders, in `zone`."""

    channel: Channel
    rule: Rule
    deliveries: Deliveries
    packer: Packer
    clock: Clock
    others: Sequence[str] = ()
    quiet: QuietHours | None = None
    zone: tzinfo = UTC
    language: Language = "en"
    tell: Callable[[], None] = field(default=lambda: None)
    """Called when something was put down for the other channels."""

    @property
    def name(self) -> str:
        return self.channel.name

    def round(self) -> int:
        """Send what is due. Returns how many parcels went out. Ends at the first that fails: the next round goes on
        behind it."""
        self.take_in()
        groups = self.packer.together(self.deliveries.claim(self.name, self.clock.now()))
        crash.point("delivery-claimed")
        sent = 0
        while groups:
            if not self._deliver(groups.pop(0)):
                break
            sent += 1
        self.deliveries.release([one.id for group in groups for one in group])
        return sent

    def take_in(self) -> int:
        """Put down what is new in the inbox; how many of it are to be sent."""
        now = self.clock.now()

        def planned(notice: Notice) -> Plan | None:
            return plan(notice, self.rule, now, quiet=self.quiet, zone=self.zone)

        return self.deliveries.enlist(self.name, now, planned)

    def next_at(self) -> datetime | None:
        """When the next delivery falls due."""
        return self.deliveries.next_at(self.name)

    def _deliver(self, group: list[Waiting]) -> bool:
        """One parcel. False: it failed, and is tried again later."""
        now = self.clock.now()
        ids = [one.id for one in group]
        key = group[0].parcel or group[0].id
        begun_at = min((one.begun_at for one in group if one.begun_at is not None), default=None)
        try:
            parcel = self._packed(group, key)
            if parcel is None:
                self.deliveries.moot(ids, "closed before it was sent", now)
                return True
            if begun_at is not None:
                place, known = self._found(parcel, begun_at)
                if place is not None:
                    self._is_sent(ids, place)
                    return True
                parcel = parcel if known else self._packed(group, key, again=True) or parcel
            self.deliveries.begin(ids, key, now)
            crash.point("delivery-begun")
            with observe.during("delivery", channel=self.name, run=parcel.run):
                place = self.channel.send(parcel)
            crash.point("delivery-sent")
        except Exception as error:  # whatever a channel does, its messages are kept and the others go on
            self._failed(group, error)
            return False
        self._is_sent(ids, place)
        return True

    def _packed(self, group: Sequence[Waiting], key: str, *, again: bool = False) -> Parcel | None:
        run = group[0].job_id
        thread = self.deliveries.place_of(self.name, run) if run and self.channel.threads else ""
        return self.packer.packed(group, key, thread=thread, again=again)

    def _found(self, parcel: Parcel, begun_at: datetime) -> tuple[str | None, bool]:
        """(where a parcel is that was begun before, or None: send it; whether that is known)."""
        try:
            return self.channel.find(parcel, begun_at), True
        except Unsure:
            return (None if parcel.loud else ""), False

    def _is_sent(self, ids: Sequence[str], place: str) -> None:
        now = self.clock.now()
        before = self.deliveries.standing(self.name, now)
        self.deliveries.sent(self.name, ids, place, now)
        crash.point("delivery-recorded")
        if before.told_at is not None and before.failing_since is not None:
            self._say_elsewhere("back", before.failing_since, "")

    def _failed(self, group: Sequence[Waiting], error: Exception) -> None:
        now = self.clock.now()
        known = isinstance(error, ChannelError)
        said = str(error) if known else f"{type(error).__name__}: {error}"
        pause = timedelta(seconds=min(RETRY_S * 2.0 ** min(group[0].tries, 20), RETRY_S_MAX))
        unsure = isinstance(error, Unsure) or not known
        ids = [one.id for one in group]
        self.deliveries.failed(self.name, ids, now + pause, said, now, unsure=unsure)
        log.warning("the channel %s did not take %s: %s", self.name, group[0].id, said, exc_info=not known)
        standing = self.deliveries.standing(self.name, now)
        since = standing.failing_since
        if standing.told_at is not None or since is None or standing.fails < FAILS_TELL:
            return
        if now - since >= timedelta(seconds=TELL_S):
            self._say_elsewhere("dead", since, standing.said)
            self.deliveries.told(self.name, now)

    def _say_elsewhere(self, what: str, since: datetime, said: str) -> None:
        """Once per outage, whoever says it: the key is its beginning."""
        stamp = since.isoformat(timespec="seconds")
        text = WORDS[self.language][what].format(name=self.name, since=stamp, said=said)
        for other in self.others:
            self.deliveries.notice(
                other, f"{what}:{self.name}:{since.timestamp():.6f}", text, self.clock.now()
            )
        self.tell()
