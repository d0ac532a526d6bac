"""Signed requests of programs: an answer to a question, or a message in words, at `/hooks/<channel>` of the page.

The body is JSON: `{"question": "<run>/<number>", "reply": "<option>", "by": "..."}` or `{"say": "how is digits?"}`.
The signature says who it is; the same id within the window gets the answer that it got, and nothing is done again.

Never: a body read beyond its bound; a request done whose signature does not hold; why it does not, in detail.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Mapping
from threading import Lock
from typing import TYPE_CHECKING, Any

from anyio import to_thread
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from agent.channel_settings import WebhookSettings
from agent.channels import signing
from agent.channels.chat import Chat
from agent.people import Role
from agent.service import Refusal
from agent.store import Unknown

if TYPE_CHECKING:
    from agent.app import App

PATH = "/hooks"
BODY_MAX = 64 * 1024
KEPT_MAX = 1000
"""Answers that are kept for a repeat; far more than come within the window."""

Reply = tuple[int, dict[str, Any]]


class Hooks:
    """The way in for the webhook channels of an app."""

    def __init__(self, app: App) -> None:
        self._app, self._chat = app, Chat(app.service)
        self._kept: OrderedDict[tuple[str, str], Reply] = OrderedDict()
        self._lock = Lock()

    def taken(self, channel: str, headers: Mapping[str, str], body: bytes) -> Reply:
        """(status, document) for one request. headers: by lower-case name."""
        settings = self._app.settings.channels.get(channel)
        secret = self._app.secrets.get(settings.secret) if isinstance(settings, WebhookSettings) else None
        if not isinstance(settings, WebhookSettings) or not secret:
            return 404, {"error": f"there is no webhook channel {channel!r} here"}
        try:
            message_id = signing.verified(secret, headers, body, self._app.clock.now())
        except signing.Forged as forged:
            return 401, {"error": str(forged)}
        with self._lock:
            known = self._kept.get((channel, message_id))
            if known is None:
                role = None if settings.role == "none" else Role(settings.role)
                known = self._done(channel, message_id, body, role)
                self._kept[channel, message_id] = known
                while len(self._kept) > KEPT_MAX:
                    self._kept.popitem(last=False)
        return known

    def _done(self, channel: str, message_id: str, body: bytes, role: Role | None) -> Reply:
        try:
            asked = json.loads(body)
        except (ValueError, RecursionError):
            asked = None
        if not isinstance(asked, dict) or not all(isinstance(value, str) for value in asked.values()):
            return 400, {"error": 'send {"question": ..., "reply": ...} or {"say": ...}, all of it text'}
        by = f"{channel}:{asked['by'][:80]}" if asked.get("by") else channel
        key = f"hook:{channel}:{message_id}"[:200]
        if asked.get("say"):
            return 200, {"said": self._chat.said(asked["say"], by=by, role=role, key=key)}
        if not asked.get("question") or not asked.get("reply"):
            return 400, {"error": "`question` and `reply` are both needed, or `say`"}
        if role is None or not role.covers(Role.answer):
            return 403, {
                "error": f"answering takes the role {Role.answer}; this channel's is {role or 'none'}"
            }
        return self._answered(asked["question"], asked["reply"], by=by, key=key)

    def _answered(self, question: str, reply: str, *, by: str, key: str) -> Reply:
        redact = self._app.redactor.text
        try:
            applied = self._app.service.answer(question, reply, by=by, key=key)
        except Unknown as error:
            return 404, {"error": redact(str(error))}
        except Refusal as error:
            return 409, {"error": redact(str(error))}
        return 200, {"run": applied.job.id, "state": str(applied.job.state), "duplicate": applied.duplicate}


def hooks(app: App) -> Starlette:
    """What `serve` mounts at PATH."""
    taker = Hooks(app)

    async def take(request: Request) -> JSONResponse:
        body = b""
        async for piece in request.stream():
            body += piece
            if len(body) > BODY_MAX:
                return JSONResponse({"error": f"more than {BODY_MAX} bytes"}, 413)
        name = request.path_params["channel"]
        status, document = await to_thread.run_sync(taker.taken, name, request.headers, body)
        return JSONResponse(document, status)

    return Starlette(routes=[Route("/{channel}", take, methods=["POST"])])
