"""A PostgreSQL of its own, a person who delegates, and replicas of `wk serve` to kill, stop and cut off.

Never: a replica that outlives its test.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import make_url

from agent.app import App, build
from agent.store import Store
from tests.agent.conftest import opened, postgres_url
from tests.cli.program import QUICK, ROOT
from tests.replicas.wire import Wire

__all__ = ["postgres_url"]

QUICK_QUESTIONS = "  answer_s_no_submit: 4\n"


@pytest.fixture
def shared(postgres_url: str) -> Iterator[Store]:
    """An empty database that several replicas share."""
    yield from opened(postgres_url)


class Replica:
    """One `wk serve` with a home of its own. log: what it says."""

    def __init__(
        self, folder: Path, env: dict[str, str], wire: Wire | None, prefix: tuple[str, ...] = ()
    ) -> None:
        self.log, self.wire, self._env, self._folder = folder / "log", wire, env, folder
        self._prefix = prefix
        self.process = self._start()

    def _start(self) -> subprocess.Popen[bytes]:
        with self.log.open("ab") as out:
            return subprocess.Popen(
                [*self._prefix, sys.executable, "-m", "tests.replicas.hasty", "serve", "--no-web"],
                cwd=self._folder,
                env=self._env,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
            )

    def is_ready(self) -> bool:
        assert self.process.poll() is None, self.log.read_text()
        return "resident; live runs" in self.log.read_text()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def again(self) -> None:
        """The same replica once more, after a kill."""
        self.process = self._start()

    def stop(self) -> None:
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    def close(self) -> None:
        if self.process.poll() is None:
            self.go_on()
            self.kill()
        if self.wire is not None:
            self.wire.close()


class Lab:
    """One database, one cluster (this machine), any number of replicas, and the person's own process (`app`)."""

    def __init__(self, folder: Path, url: str) -> None:
        self._folder, self._url = folder, url
        self.replicas: list[Replica] = []
        self._places: list[Path] = []
        self.workspace = folder / "workspace"
        self.workspace.mkdir()
        self.cluster_folder = folder / "cluster"
        self.app: App = build(self._env("person", url))

    def _env(self, name: str, url: str) -> dict[str, str]:
        home = self._folder / name
        (home / "config").mkdir(mode=0o700, parents=True)
        cluster = (
            f"clusters:\n  local:\n    root: {self.cluster_folder}\n    cpu: 400\n    memory_mib: 400000\n"
        )
        (home / "config" / "config.yaml").write_text(QUICK + QUICK_QUESTIONS + cluster, encoding="utf-8")
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "WATCHKEEPER_HOME": str(home),
            "WATCHKEEPER_DATABASE_URL": url,
            "PYTHONPATH": str(ROOT),
            "LC_ALL": "C.UTF-8",
        }

    def replica(self, *, wired: bool = False, **settings: str) -> Replica:
        """One more `wk serve`; wired: its way to the database can be cut. settings: WATCHKEEPER_* of its own."""
        url, wire = self._url, None
        if wired:
            place = Path(tempfile.mkdtemp(prefix="wk-wire-"))  # a socket's path must be short
            self._places.append(place)
            wire = Wire(place, Path(str(make_url(url).query["host"])))
            url = make_url(url).update_query_dict({"host": str(place)}).render_as_string()
        name = f"replica-{len(self.replicas) + 1}"
        made = Replica(self._folder / name, self._env(name, url) | settings, wire)
        self.replicas.append(made)
        return made

    def replica_in(self, space: str, address: str) -> Replica:
        """One more, in a network namespace from which the database is reached at an address of this machine."""
        url = make_url(self._url)
        wire = Wire(address, Path(str(url.query["host"])))
        reached = url.difference_update_query(["host"]).set(host=address, port=wire.port).render_as_string()
        name = f"replica-{len(self.replicas) + 1}"
        prefix = ("ip", "netns", "exec", space)
        made = Replica(self._folder / name, self._env(name, reached), wire, prefix)
        self.replicas.append(made)
        return made

    def close(self) -> None:
        for replica in self.replicas:
            replica.close()
        for place in self._places:
            shutil.rmtree(place, ignore_errors=True)
        self.app.store.close()


@pytest.fixture
def lab(shared: Store, postgres_url: str, tmp_path: Path) -> Iterator[Lab]:
    made = Lab(tmp_path, postgres_url)
    yield made
    made.close()


Eventually = Callable[..., Any]
