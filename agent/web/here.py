"""What the routes of one page work with: the service, the door, where relative paths are meant from.

Never: logic; a second service.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any

from anyio import CapacityLimiter
from fastapi import Request
from fastapi.encoders import jsonable_encoder
from fastapi.responses import JSONResponse

from agent.service import Service
from agent.web.door import Door

if TYPE_CHECKING:
    from agent.web.pages import Pages

WAITERS_MAX = 100
"""Waits have threads of their own, so that many of them do not keep anybody else from being answered."""


@dataclass(frozen=True)
class Here:
    """One page. workspace: where a run reads and writes whose request names no folder. prefix: what a reverse proxy
    puts before every path (`/wk`), "" for none. leaving: set when the process ends, so that streams end too."""

    service: Service
    door: Door
    workspace: Path
    pages: Pages
    prefix: str = ""
    leaving: Event = field(default_factory=Event)
    waiters: CapacityLimiter = field(default_factory=lambda: CapacityLimiter(WAITERS_MAX))

    def redacted(self, data: Any) -> Any:
        """JSON-able data with every text in it redacted."""
        if isinstance(data, str):
            return self.service.ports.redact(data)
        if isinstance(data, dict):
            return {key: self.redacted(value) for key, value in data.items()}
        if isinstance(data, (list, tuple)):
            return [self.redacted(value) for value in data]
        return data


def here(request: Request) -> Here:
    """What this request's app works with."""
    found: Here = request.app.state.here
    return found


def answer(request: Request, data: Any, *, status: int = 200) -> JSONResponse:
    """The data as a redacted JSON document."""
    return JSONResponse(here(request).redacted(jsonable_encoder(data)), status)
