"""Which message goes to which channel, and when: at once, grouped, or after quiet hours (E12).

A must-not-miss message interrupts; routine ones are gathered and come quietly, several in one. In quiet hours nothing
that can wait is sent. A question waits at most so long that there is still time to answer before its default is
carried out, so one whose deadline is near comes at once, whatever the hour.

Never: a message lost over a rule (what a channel does not want stays in the inbox); a clock or a zone of its own.
"""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta, tzinfo
from typing import TYPE_CHECKING, Literal, NamedTuple

from states.reading import Frozen

if TYPE_CHECKING:
    from states.orders import QuietHours  # the settings import this file, and are read at every start

Wants = Literal["all", "must-not-miss", "questions"]
"""What a channel takes: every message, those that interrupt, or only what asks."""

NEAR_S = 3600.0
"""Seconds that somebody who is woken at the end of quiet hours has left to answer; with less, it is sent before."""

EPOCH = datetime(2000, 1, 1, tzinfo=UTC)


class Rule(Frozen):
    """What one channel wants. group_s: routine messages of so many seconds come as one; 0: each by itself."""

    wants: Wants = "all"
    group_s: float = 900.0
    quiet: bool = True
    """Whether quiet hours hold here; False for a channel that wakes nobody (a program, a mailbox)."""


class Notice(NamedTuple):
    """A message of the inbox as the rules see it. kind: question, withdrawal or report; answer_by: of the first
    question in it, None where it asks nothing."""

    kind: str
    must_not_miss: bool
    at: datetime
    answer_by: datetime | None = None


class Plan(NamedTuple):
    """send_at: not before this. loud: it interrupts, so it comes by itself; else it may come with others."""

    send_at: datetime
    loud: bool


def plan(
    notice: Notice, rule: Rule, now: datetime, *, quiet: QuietHours | None = None, zone: tzinfo = UTC
) -> Plan | None:
    """When this channel gets it; None: it does not want it. now: aware; zone: that of the quiet hours."""
    if not wanted(notice, rule):
        return None
    loud = notice.must_not_miss or notice.kind == "question"
    send_at = now if loud else _grouped(notice.at, now, rule.group_s)
    if quiet is not None and rule.quiet:
        send_at = _after_quiet(notice, send_at, quiet, zone)
    return Plan(max(send_at, now), loud)


def wanted(notice: Notice, rule: Rule) -> bool:
    """Whether the channel takes such a message. Who is asked is also told that an answer is no longer needed."""
    asks = notice.kind in ("question", "withdrawal")
    match rule.wants:
        case "questions":
            return asks
        case "must-not-miss":
            return asks or notice.must_not_miss
        case "all":
            return True


def quiet_end(at: datetime, quiet: QuietHours, zone: tzinfo) -> datetime | None:
    """When the quiet hours end that `at` falls into; None: it falls into none. Over midnight as well."""
    local = at.astimezone(zone)
    begin, end = _clock(quiet.begin), _clock(quiet.end)
    if begin == end:
        return None
    minute = local.time().replace(second=0, microsecond=0)
    inside = begin <= minute < end if begin < end else minute >= begin or minute < end
    if not inside:
        return None
    day = local.date() + timedelta(days=1 if begin > end and minute >= begin else 0)
    return datetime.combine(day, end, tzinfo=zone).astimezone(UTC)


def _grouped(at: datetime, now: datetime, group_s: float) -> datetime:
    """The next full interval, so that all that is told meanwhile comes together."""
    if not group_s:
        return now
    interval = timedelta(seconds=group_s)
    return EPOCH + interval * ((at - EPOCH) // interval + 1)


def _after_quiet(notice: Notice, send_at: datetime, quiet: QuietHours, zone: tzinfo) -> datetime:
    end = quiet_end(send_at, quiet, zone)
    if end is None:
        return send_at
    if notice.answer_by is None:
        return end
    return min(end, notice.answer_by - timedelta(seconds=NEAR_S))


def _clock(text: str) -> time:
    return time.fromisoformat(text)
