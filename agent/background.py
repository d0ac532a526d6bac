"""Starts a resident agent of its own session, detached from the terminal, that ends when nothing is left to watch.

It is this same program with the same environment (`serve --until-idle`); what it says goes to `resident.log` in the
state folder. Starting returns when the new agent is ready, so that whoever leaves knows that somebody watches.

Never: two residents (the place is a lock); an argument or a variable that carries a key.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from threading import Thread
from typing import BinaryIO

from agent.clock import Clock
from agent.paths import private
from agent.resident import Presence, Resident

START_WAIT_S = 30.0
PAUSE_S = 0.05
LOG_BYTES_MAX = 1 << 20


class NotStarted(Exception):
    """The resident agent did not come up; the message says where its log is and what to do."""


def ensure(env: Mapping[str, str], folder: Path, clock: Clock) -> tuple[Presence, bool]:
    """The resident agent of this state folder, started if there is none. The flag: it was started now.

    Raises NotStarted.
    """
    resident = Resident(folder, clock)
    present = resident.holder()
    if present is not None and present.ready:
        return present, False
    return _started(env, folder, resident, clock), True


def _started(env: Mapping[str, str], folder: Path, resident: Resident, clock: Clock) -> Presence:
    log = private(folder) / "resident.log"
    began = clock.now()
    process = _spawn(env, log)
    while (clock.now() - began).total_seconds() < START_WAIT_S:
        present = resident.holder()
        if present is not None and present.ready:
            # Whoever started it may live longer than it (a chat agent's server), and reaps it then.
            Thread(target=process.wait, name="reap-resident", daemon=True).start()
            return present
        if process.poll() is not None and process.returncode != 0:
            break
        clock.sleep(PAUSE_S)
    raise NotStarted(
        f"the agent that was to watch in the background did not start: {_last_line(log)} "
        f"(its log: {log}). Run `wk serve` to watch, or `wk doctor` to see what is wrong."
    )


def _spawn(env: Mapping[str, str], log: Path) -> subprocess.Popen[bytes]:
    """This program again, in a session of its own. `-P`: a folder `agent` where the person stands is not it."""
    home = str(Path(__file__).resolve().parent.parent)
    path = os.pathsep.join([home, *filter(None, [env.get("PYTHONPATH")])])
    with _appending(log) as out, open(os.devnull, "rb") as nothing:
        return subprocess.Popen(
            [sys.executable, "-P", "-m", "agent", "serve", "--until-idle"],
            env={**env, "PYTHONPATH": path},
            stdin=nothing,
            stdout=out,
            stderr=out,
            start_new_session=True,
        )


def _appending(log: Path) -> BinaryIO:
    """The log, for its owner only; begun anew when it has grown large."""
    large = log.exists() and log.stat().st_size > LOG_BYTES_MAX
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | (os.O_TRUNC if large else 0)
    return os.fdopen(os.open(log, flags, 0o600), "ab")


def _last_line(log: Path) -> str:
    try:
        lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    except OSError:
        return "it said nothing"
    return lines[-1][:300] if lines else "it said nothing"
