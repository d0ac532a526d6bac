"""Pages to test: one over a desk whose clock jumps, one that `wk serve` itself serves; and a real browser.

Never: a stand-in for the server or the browser.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx2
import pytest
from sqlalchemy import insert

from agent.database import JOBS
from agent.people import People, Role
from agent.store import Store, new_row
from agent.web.app import create_app
from agent.web.server import Server
from states.job import Check, Job
from tests.agent.fakes import Desk
from tests.cli.program import WAIT_S, Wk

REQUIRED = os.environ.get("WATCHKEEPER_REQUIRE_ENGINES") == "1"
"""Set where the browser must be there; read at import, since the tests drop such variables."""
PICTURES = os.environ.get("WATCHKEEPER_PICTURES") == "1"
"""Set to write the pictures of the docs anew."""
CHROMIUM = Path(os.environ.get("WATCHKEEPER_CHROMIUM", "/usr/bin/chromium"))
FLAGS = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking"
    " --disable-component-update --disable-sync --disable-dev-shm-usage"
).split()
DOCS = Path(__file__).parents[2] / "docs" / "pictures"


class Page(NamedTuple):
    """A page on this machine. tokens: by role."""

    url: str
    tokens: dict[str, str]

    def ask(self, method: str, path: str, *, role: str = "operate", **options: Any) -> httpx2.Response:
        """One request to its API with the token of a role."""
        headers = {"Authorization": f"Bearer {self.tokens[role]}"} | options.pop("headers", {})
        with httpx2.Client(trust_env=False, timeout=WAIT_S) as client:
            return client.request(method, f"{self.url}/api/v1{path}", headers=headers, **options)


def asks(job: Any, ports: Any) -> Check:
    """A check that asks which image to take."""
    return Check(name="image", level="ask", evidence="no image was given", rule="C5", question="image")


def fill(store: Store, job: Job, count: int) -> None:
    """More runs like this one, in one transaction."""
    rows = [new_row(job.but(id=f"{job.id}-{n}", request_id=f"{job.id}-{n}")) for n in range(count)]
    with store.write() as connection:
        connection.execute(insert(JOBS), rows)


def people_of(folder: Path) -> tuple[People, dict[str, str]]:
    """One person of each role: rita reads, ann answers, olga operates."""
    people = People(folder / "people.json")
    names = {"read": "rita", "answer": "ann", "operate": "olga"}
    return people, {str(role): people.add(names[role], role) for role in Role}


@contextmanager
def page_of(desk: Desk, folder: Path, **options: Any) -> Iterator[Page]:
    """A desk's page, answered by a real server."""
    people, tokens = people_of(folder)
    server = Server(
        create_app(desk.service, people, workspace=desk.workspace, **options), host="127.0.0.1", port=0
    )
    server.start()
    try:
        yield Page(server.url, tokens)
    finally:
        server.close()


class Served:
    """`wk serve` with a home of its own, and its page."""

    def __init__(self, wk: Wk) -> None:
        self.wk = wk
        wk.env["LOGNAME"] = "kim"
        self._process = wk.start("serve", "--port", "0", "--json")
        assert self._process.stdout is not None
        told: dict[str, Any] = {}
        for line in self._process.stdout:
            told = json.loads(line)
            if told["event"] == "page":
                break
        assert told, self._process.stderr and self._process.stderr.read()
        self.login = str(told["login"])
        people = People(wk.home / "config" / "people.json")
        tokens = {"read": people.add("rita", Role.read), "answer": people.add("ann", Role.answer)}
        self.page = Page(str(told["url"]), tokens | {"operate": self.login.partition("#")[2]})

    def close(self) -> str:
        """End it. Returns what it wrote into its log."""
        self._process.send_signal(signal.SIGTERM)
        try:
            return self._process.communicate(timeout=WAIT_S)[1]
        except subprocess.TimeoutExpired:
            self._process.kill()
            raise


def need_a_browser() -> None:
    """Skip where there is none; fail where it is required."""
    if not CHROMIUM.exists():
        why = f"no browser at {CHROMIUM}: apt-get install chromium, or set WATCHKEEPER_CHROMIUM"
        (pytest.fail if REQUIRED else pytest.skip)(why)
