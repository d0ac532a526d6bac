"""Signed links to one question: who holds one may answer that question on the page until its deadline, nothing else.

The token says which question, by which channel it went out, and until when; it is signed with the key of the people's
file under a salt of its own, so no session can be made of it, and deleting that file voids them all.

Never: a right beyond one answer to one question; a link without an end.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import NamedTuple

from itsdangerous import BadSignature, URLSafeSerializer

from agent.clock import Clock

SALT = "answer-link"
PATH = "/a/"
"""Where the page takes them: `<public url>/a/<token>`."""


class Link(NamedTuple):
    """What a token is good for. by: how an answer by it is recorded, as `phone` (the channel's name)."""

    question_id: str
    by: str
    until: datetime


class NotGood(Exception):
    """The link is forged, damaged or too old; the message says which and what to do."""


class Links:
    """Signs and reads. key: `People.signing_key`; while it gives "" (nobody was let in yet) nothing is signed.
    base: where people reach the page; "" makes no address."""

    def __init__(self, key: Callable[[], str], clock: Clock, *, base: str = "") -> None:
        self._key, self._clock, self._base = key, clock, base.rstrip("/")

    def sign(self, question_id: str, *, by: str, until: datetime) -> str:
        """A token for one question, good until then. "" without a key."""
        if not self._key():
            return ""
        return str(self._signer().dumps([question_id, by, int(until.timestamp())]))

    def read(self, token: str) -> Link:
        """What a token is good for. Raises NotGood."""
        try:
            if not self._key():
                raise BadSignature("no key")
            question_id, by, until = self._signer().loads(token)
            ends = datetime.fromtimestamp(until, tz=self._clock.now().tzinfo)
            link = Link(str(question_id), str(by), ends)
        except (BadSignature, ValueError, TypeError, OverflowError):
            raise NotGood(
                "this link is not one of ours, or it is damaged; open it from the message again"
            ) from None
        if self._clock.now() >= link.until:
            raise NotGood(
                f"this link was good until {link.until.isoformat(timespec='minutes')}; the default was carried out "
                f"then. What became of it: wk show {link.question_id.partition('/')[0]}"
            )
        return link

    def url(self, question_id: str, *, by: str, until: datetime) -> str:
        """The whole address; "" without a key or a page that people reach."""
        token = self.sign(question_id, by=by, until=until) if self._base else ""
        return f"{self._base}{PATH}{token}" if token else ""

    def _signer(self) -> URLSafeSerializer:
        return URLSafeSerializer(self._key(), salt=SALT)
