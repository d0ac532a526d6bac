"""`wk` with a home of its own, the jobs it runs, and what it printed.

A command that ends by itself runs within this process, with its own environment, folder and streams: a start costs
most of a second. What stays and what is killed (`start`) is a process.
To wait for something, or to count what the cluster has, the database and the cluster are looked at directly: that is
quick, and no command vouches for itself.

Never: a stand-in for the cluster, or for a resident agent.
"""

from __future__ import annotations

import io
import json
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, chdir, contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

from agent.cli import output, run
from agent.clock import SystemClock
from agent.clusters.local import LocalCluster
from agent.peek import Peek
from agent.resident import Presence, Resident

ROOT = Path(__file__).parent.parent.parent
WAIT_S = 40

QUICK = """
wave_s: 0.1
sweep_s: 1
keyring: off
policy:
  poll_s: 0.2
  queued_poll_s_first: 0.2
  look_s_first: 0.2
  look_s_min: 0.2
  second_look_s: 0.5
  unshown_s: 2
  stop_retry_s: 1
  late_look_s: 5
  late_look_retry_s: 1
"""
"""Looks by the tenth of a second: these jobs last seconds, not nights."""


class Ran(NamedTuple):
    """What a finished command left."""

    code: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        """The one JSON document on stdout."""
        return json.loads(self.out)

    @property
    def lines(self) -> list[Any]:
        """JSON lines of a stream."""
        return [json.loads(line) for line in self.out.splitlines()]


class Wk:
    """The program with the home and the workspace of one test."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.workspace = folder / "workspace"
        self.workspace.mkdir(parents=True)
        (self.home / "config").mkdir(mode=0o700, parents=True)
        (self.home / "config" / "config.yaml").write_text(QUICK, encoding="utf-8")
        self.env = {
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
            "HOME": str(folder),
            "WATCHKEEPER_HOME": str(self.home),
            "PYTHONPATH": str(ROOT),
            "LC_ALL": "C.UTF-8",
        }

    def __call__(self, *words: str, stdin: str = "", env: Mapping[str, str] | None = None) -> Ran:
        """Run one command to its end, as `agent.__main__` does. What it starts to live on is a process."""
        given, out, err = io.TextIOWrapper(io.BytesIO(stdin.encode())), io.StringIO(), io.StringIO()
        with ExitStack() as stack:
            stack.enter_context(patch.dict(os.environ, {**self.env, **(env or {})}, clear=True))
            stack.enter_context(patch.object(sys, "stdin", given))
            stack.enter_context(chdir(self.workspace))
            stack.enter_context(as_it_was())
            stack.enter_context(redirect_stdout(out))
            stack.enter_context(redirect_stderr(err))
            try:
                code = run(words)
            except SystemExit as ended:  # of a completion
                code = int(ended.code or 0)
        return Ran(code, out.getvalue(), err.getvalue())

    def start(self, *words: str) -> subprocess.Popen[str]:
        """Begin a command and leave it running, in a process group of its own (as a terminal would)."""
        return subprocess.Popen(
            [sys.executable, "-m", "agent", *words],
            cwd=self.workspace,
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def resident(self) -> Presence | None:
        """The resident agent of this home."""
        return Resident(self.home / "state", SystemClock()).holder()

    def board(self) -> list[dict[str, Any]]:
        """Every run on the board, newest first."""
        rows = Peek(self.home / "state" / "watchkeeper.db").rows(live=False)
        return [{"id": row.id, "state": row.state, **row.board} for row in rows]

    def cluster(self) -> LocalCluster:
        """The cluster itself."""
        return LocalCluster("local", {"root": str(self.home / "state" / "local")})

    def cluster_jobs(self) -> list[str]:
        """Names of all jobs that the cluster has."""
        return [line.name for line in self.cluster().list()]

    def close(self, eventually: Callable[..., Any]) -> None:
        """End the resident agent, if one is left."""
        present = self.resident()
        if present is not None and present.pid:
            os.kill(present.pid, signal.SIGTERM)
            eventually(lambda: self.resident() is None)


@contextmanager
def as_it_was() -> Iterator[None]:
    """What a command leaves to the end of its process is put back here: its log handlers, its open store."""
    with patch.object(logging.root, "handlers", []), patch.object(logging.root, "level", logging.WARNING):
        try:
            yield
        finally:
            for handler in logging.root.handlers:
                handler.close()
            while output._opened:
                if "store" in vars(opened := output._opened.pop()):
                    opened.store.close()


def finish(process: subprocess.Popen[str]) -> Ran:
    """Wait for a command that was started."""
    out, err = process.communicate(timeout=WAIT_S)
    return Ran(process.returncode, out, err)


def steps(count: int, pause_s: float) -> str:
    """A job that counts, prints its loss, and leaves `out.txt`."""
    return (
        f'for i in $(seq 1 {count}); do echo "step $i/{count} loss 0.$((99 - i))"; sleep {pause_s}; done; '
        "echo done > out.txt"
    )
