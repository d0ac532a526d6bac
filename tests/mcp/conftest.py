"""A server on HTTP in this process for these tests, with a loop that carries; a home for each test of stdio."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx2
import pytest
import uvicorn
from fastapi import FastAPI
from mcp import Client

from agent.app import App, build
from agent.mcp.mount import mount
from agent.people import People, Role
from tests.cli.conftest import wk
from tests.cli.program import QUICK
from tests.mcp.chat import Era, http

__all__ = ["wk"]


class Served(NamedTuple):
    """A real server: its address, its people's tokens, the folder that runs work in, the app behind it."""

    url: str
    tokens: dict[str, str]
    workspace: Path
    app: App
    people: People

    @asynccontextmanager
    async def client(self, era: Era = "modern", who: str = "ann", **how: Any) -> AsyncIterator[Client]:
        """The official client with somebody's token."""
        headers = {"Authorization": f"Bearer {self.tokens[who]}"}
        async with (
            httpx2.AsyncClient(headers=headers) as carrying,
            http(self.url, carrying, era, **how) as client,
        ):
            yield client

    def cluster_jobs(self) -> list[str]:
        """Names of all jobs that the cluster has."""
        return [line.name for line in self.app.clusters["local"].list()]


@pytest.fixture(scope="package")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("served")
    workspace = folder / "workspace"
    workspace.mkdir()
    config = folder / "home" / "config"
    config.mkdir(mode=0o700, parents=True)
    (config / "config.yaml").write_text(QUICK, encoding="utf-8")
    env = {"PATH": os.environ["PATH"], "HOME": str(folder), "WATCHKEEPER_HOME": str(folder / "home")}
    app = build(env)
    people = People.of(env)
    tokens = {name: people.add(name, role) for name, role in (("ann", Role.operate), ("ben", Role.answer))}
    tokens["cat"] = people.add("cat", Role.read)
    wakes = app.wakes()
    web = FastAPI()
    mount(web, app.service, people, workspace=workspace, carry=lambda run: wakes.nudge() or "")
    wakes.start()
    with listening(web) as url:
        yield Served(f"{url}/mcp", tokens, workspace, app, people)
    wakes.close()


@contextmanager
def listening(web: FastAPI) -> Iterator[str]:
    """uvicorn on a free port, in a thread; where it is."""
    with socket.create_server(("127.0.0.1", 0)) as bound:
        config = uvicorn.Config(web, log_config=None, ws="none", timeout_graceful_shutdown=1)
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, args=([bound],), daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{bound.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(10)
