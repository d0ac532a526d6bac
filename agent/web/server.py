"""The page's server in a thread of `wk serve`: its own socket, so that a port that is taken is said before anything.

Never: hold up the end of the process for an open stream.
"""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import uvicorn
from fastapi import FastAPI

if TYPE_CHECKING:
    from agent.app import App

END_S = 2
"""Seconds that requests under way get when the process ends."""


TICK_S = 1.0
"""The date that answers carry is a second old at most."""


class Taken(Exception):
    """The address cannot be listened on; the message says what to do."""


class Server:
    """One page on one address. `url` is where it is."""

    def __init__(self, app: FastAPI, *, host: str, port: int) -> None:
        """Raises Taken. port: 0 takes a free one."""
        self._app = app
        self._socket = _listening(host, port)
        shown = f"[{host}]" if ":" in host else host
        self.url = f"http://{shown}:{self._socket.getsockname()[1]}{app.state.here.prefix}"
        config = uvicorn.Config(
            app, log_config=None, access_log=False, server_header=False, timeout_graceful_shutdown=END_S
        )
        self._server = Calm(config)
        self._thread = Thread(target=self._server.run, args=([self._socket],), name="web", daemon=True)

    def start(self) -> None:
        """Answer from here on."""
        self._thread.start()

    def close(self) -> None:
        """End: streams at once, requests under way within END_S."""
        self._app.state.here.leaving.set()
        self._server.leave()
        self._thread.join(END_S + 5)
        self._socket.close()


class Calm(uvicorn.Server):
    """Wakes once a second while nobody asks, where its base does ten times; told to leave, it does so at once."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._left = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None

    async def main_loop(self) -> None:
        self._loop = asyncio.get_running_loop()
        while not await self.on_tick(0):
            with suppress(TimeoutError):
                await asyncio.wait_for(self._left.wait(), TICK_S)

    def leave(self) -> None:
        """End. From any thread, at any time."""
        self.should_exit = True
        if self._loop is not None:
            with suppress(RuntimeError):  # it has ended by itself
                self._loop.call_soon_threadsafe(self._left.set)


def serve(app: App, *, host: str, port: int, prefix: str) -> Server:
    """The page of an app (and the tools for chat agents, where their package is there), started. Raises Taken."""
    from agent.channels.mount import add_channels
    from agent.people import People
    from agent.web.app import create_app

    people, workspace = People.of(app.env), app.settings.workspace or Path.cwd()
    web = create_app(app.service, people, workspace=workspace, prefix=prefix)
    with suppress(ModuleNotFoundError):
        from agent.mcp.mount import mount

        public = urlsplit(app.settings.public_url).netloc
        hosts = (host, f"{host}:*", *([public] if public else []))
        mount(web, app.service, people, workspace=workspace, hosts=hosts)
    add_channels(web, app)
    server = Server(web, host=host, port=port)
    server.start()
    return server


def _listening(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # With its protocol named, else asyncio leaves Nagle's algorithm on, and every answer takes 40 ms more.
    made = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((host, port))
        made.listen(128)
    except OSError as error:
        made.close()
        raise Taken(
            f"the page cannot be served at {host}:{port} ({(error.strerror or 'no').lower()}); choose another by "
            "--port, or leave it out by --no-web"
        ) from None
    return made
