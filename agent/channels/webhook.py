"""The generic signed webhook, outbound: one JSON document a parcel, signed as Standard Webhooks has it.

`webhook-id` is the same at every try, so a receiver that keeps the ids it took drops a second one.

Never: a redirect followed (the signature is for one receiver); an address or a secret in an error.
"""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

import httpx2

from agent.channels import signing
from agent.channels.base import ChannelError, Parcel, Unsure
from agent.clock import Clock
from states.questions import option_text
from states.words.rows import asks

VERSION = 1
"""Of the document's form; fields are added without raising it."""


class WebhookChannel:
    """Posts to one address. url: "" for a program that only sends to us: nothing goes out then."""

    threads = False

    def __init__(self, name: str, *, url: str, secret: str, timeout_s: float, clock: Clock) -> None:
        self.name = name
        self._url, self._secret, self._timeout_s, self._clock = url, secret, timeout_s, clock

    def send(self, parcel: Parcel) -> str:
        if self._url:
            self._post(parcel.id, document(parcel))
        return ""

    def find(self, parcel: Parcel, since: datetime) -> str | None:
        return None  # the same id is sent again, and its receiver drops the second

    def test(self) -> str:
        if not self._url:
            return "it only sends to us: nothing goes out"
        now = self._clock.now()
        self._post(f"test:{now.timestamp():.0f}", {"version": VERSION, "type": "test", "at": now.isoformat()})
        return "a signed test was taken"

    def shown(self) -> str:
        return f"webhook {urlsplit(self._url).hostname or '(inbound only)'}"

    def _post(self, key: str, data: dict[str, Any]) -> None:
        body = json.dumps(data, ensure_ascii=False).encode()
        signed = signing.headers(self._secret, key, self._clock.now(), body)
        try:
            with httpx2.Client(timeout=self._timeout_s, trust_env=False, follow_redirects=False) as client:
                answer = client.post(
                    self._url, content=body, headers={"content-type": "application/json", **signed}
                )
        except (
            httpx2.ConnectError,
            httpx2.ConnectTimeout,
            httpx2.UnsupportedProtocol,
            httpx2.InvalidURL,
        ) as error:
            raise ChannelError(f"no connection to {self.shown()}: {type(error).__name__}") from None
        except httpx2.HTTPError as error:
            raise Unsure(f"no answer from {self.shown()}: {type(error).__name__}") from None
        if not answer.is_success:
            raise ChannelError(f"{self.shown()} answered {answer.status_code}")


def document(parcel: Parcel) -> dict[str, Any]:
    """The parcel for a program. `questions` carry what an answer needs: the id, and each option's key."""
    return {
        "version": VERSION,
        "type": parcel.kind,
        "stage": parcel.stage,
        "id": parcel.id,
        "run": parcel.run or None,
        "at": parcel.at.isoformat(),
        "must_not_miss": parcel.loud,
        "title": parcel.title,
        "text": parcel.text,
        "link": parcel.link or None,
        "questions": [
            {
                "id": one.question.id,
                "kind": one.question.kind,
                "asks": asks(one.job, one.question),
                "options": [
                    {
                        "key": option.key,
                        "text": option_text(option, one.job.language),
                        "value": option.value or None,
                    }
                    for option in one.question.template.options
                ],
                "default": one.question.default.key,
                "answer_by": one.question.answer_by.isoformat(),
                "link": one.link or None,
            }
            for one in parcel.asked
        ],
    }
