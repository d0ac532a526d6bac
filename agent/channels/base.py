"""The seam of channels: a parcel to send, what a channel can do with it, and the ways that fail.

Never: one channel's peculiarities.
"""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple, Protocol

from states.job import Job
from states.questions import Question


class ChannelError(Exception):
    """The parcel was not taken: tried again later. The text is for people and holds no secret."""


class Unsure(ChannelError):
    """It is not known whether the parcel was taken (no answer came)."""


class Asked(NamedTuple):
    """An open question in a parcel. link: to answer it on the page without a login; "" for none."""

    job: Job
    question: Question
    link: str = ""


class Parcel(NamedTuple):
    """What is sent at once. id: the same at every try, so that a receiver can drop a second one.

    run: "" for several or none. loud: it interrupts. title: one line. thread: where the run's first message stands,
    "" for none. kinds/stages: of what is in it, in order.
    """

    id: str
    run: str
    at: datetime
    loud: bool
    title: str
    text: str
    kind: str = "report"
    stage: str = ""
    asked: tuple[Asked, ...] = ()
    thread: str = ""
    link: str = ""
    """The run on the page; "" without a page that people reach."""


class Channel(Protocol):
    """One way to people. `threads`: it keeps the messages of a run together, so they are not mixed with others."""

    name: str
    threads: bool

    def send(self, parcel: Parcel) -> str:
        """Send it; where it is now ("" where that means nothing). Raises ChannelError, Unsure."""
        ...

    def find(self, parcel: Parcel, since: datetime) -> str | None:
        """Where a parcel is whose end is not known; None: it is not there, or the receiver drops a second one, so it
        may be sent again. Raises ChannelError; Unsure where it cannot be told."""
        ...

    def test(self) -> str:
        """Try the way out without a run; words for what was done. Raises ChannelError."""
        ...

    def shown(self) -> str:
        """Where it goes, without a secret."""
        ...
