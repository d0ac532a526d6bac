"""The tools of the page at `/mcp`: the first request for them loads them, since their packages take 30 MB that a
resident agent without chat agents need not hold.

Never: an import of the tools' packages before somebody asks; a request answered without them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from starlette.responses import JSONResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from agent.people import People
from agent.service import Service

if TYPE_CHECKING:
    from starlette.applications import Starlette

    from agent.mcp.http import Tools

log = logging.getLogger(__name__)

PATH = "/mcp"


class Late:
    """An ASGI application that is made when it is first asked, and whose sessions live in one task of the server's
    loop (the task group of the sessions must be left by the task that entered it)."""

    def __init__(self, make: Callable[[], Tools]) -> None:
        self._make = make
        self._app: ASGIApp | None = None
        self._wanted, self._known = asyncio.Event(), asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._wanted.set()
        await self._known.wait()
        if self._app is None:
            said = JSONResponse({"error": "the tools could not be loaded; the log says why"}, 503)
            await said(scope, receive, send)
            return
        await self._app(scope, receive, send)

    async def live(self) -> None:
        """Wait for the first request, load, and hold the sessions open until cancelled. Whatever goes wrong, who asks
        gets an answer."""
        await self._wanted.wait()
        try:
            made = await asyncio.to_thread(self._make)
            async with made.server.session_manager.run():
                self._app = made.app
                self._known.set()
                await asyncio.Event().wait()
        except Exception:
            log.exception("the tools for chat agents could not be loaded")
        finally:
            self._app = None
            self._known.set()


def mount(
    app: Starlette,
    service: Service,
    people: People,
    *,
    workspace: Path,
    hosts: Sequence[str] = (),
    carry: Callable[[str], str] = lambda run: "",
    path: str = PATH,
) -> None:
    """Serve the tools at `path` of this application, in its lifespan. Call it once. Raises ModuleNotFoundError where
    their package is not installed.

    workspace: of a run whose request names none, and what a relative one is meant from. hosts: names under which the
    server is reached beside loopback (`wk.example.org`, `wk.example.org:*`); a request for another one is refused
    with 421. carry: sees to it that somebody carries a run; nothing to do in the resident agent itself.
    """
    if find_spec("mcp") is None:
        raise ModuleNotFoundError("the package `mcp` is not installed", name="mcp")

    def make() -> Tools:
        from agent.mcp.http import tools

        return tools(service, people, workspace=workspace, hosts=hosts, carry=carry, path=path)

    late = Late(make)
    app.router.routes.append(Route(path, endpoint=late, name="mcp"))
    before = app.router.lifespan_context

    @asynccontextmanager
    async def both(host: Any) -> AsyncIterator[Mapping[str, Any]]:
        living = asyncio.create_task(late.live())
        try:
            async with before(host) as state:
                yield dict(state or {})
        finally:
            living.cancel()
            await asyncio.gather(living, return_exceptions=True)

    app.router.lifespan_context = both
