"""Processes of the local cluster: told apart by more than their id, signalled as groups, started detached.

A process id is used again sooner or later. `Process` therefore also says when it was born, in the kernel's
own ticks and boot where /proc has them (no clock step moves those), else psutil's creation time.

Never: take a recycled id for the job; count a zombie as alive; look after what left its process group.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import NamedTuple

PROC = Path("/proc")
BORN_S = 3.0
"""Records tell whole seconds, and the kernel's idea of when it booted wanders by about one."""


class Process(NamedTuple):
    """One process for ever: its id and the moment of its birth, as an opaque text."""

    pid: int
    born: str


def identify(pid: int) -> Process | None:
    """The process that has this id now; None when there is none, or only its remains (a zombie)."""
    if not _has_proc():
        return _identify_by_psutil(pid)
    stat = _stat(pid)
    return None if stat is None or stat.state in "ZX" else Process(pid, f"{_boot()}:{stat.ticks}")


def born_about(pid: int, at: datetime) -> Process | None:
    """The process with this id if it was born about `at`, which is when it said that it started."""
    import psutil  # here only: the launcher stays small without it

    try:
        born = psutil.Process(pid).create_time()
    except psutil.NoSuchProcess:
        return None
    return identify(pid) if abs(born - at.timestamp()) <= BORN_S else None


def alive(process: Process | None) -> bool:
    """True while this very process lives."""
    return process is not None and identify(process.pid) == process


def group_alive(leader: Process) -> bool:
    """True while the group that `leader` founded has a living member, be it the leader or not."""
    now = identify(leader.pid)
    if now is not None:
        return now == leader
    try:
        os.killpg(leader.pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    # Somebody answers to the group, perhaps only zombies that nobody reaps.
    return not _has_proc() or any(stat.group == leader.pid and stat.state not in "ZX" for stat in _everyone())


def signal_group(leader: Process, number: signal.Signals) -> None:
    """Send a signal to every member of the group that `leader` founded; nothing when it is gone."""
    if identify(leader.pid) in (None, leader):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(leader.pid, number)


def nudge(process: Process | None) -> bool:
    """Wake a launcher up (SIGUSR1): its job's record has changed. False when it is gone."""
    if process is None or not alive(process):
        return False
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(process.pid, signal.SIGUSR1)
        return True
    return False


def detach(argv: Sequence[str], *, env: Mapping[str, str], log: Path) -> None:
    """Start a process that belongs to nobody here: own session, no parent to reap it, output appended to
    `log`.

    The shell is a constant one-liner and only the cheapest way to fork twice from a program with threads.
    """
    with log.open("ab") as sink:
        subprocess.run(
            ["sh", "-c", '"$@" &', "sh", *argv],
            env=dict(env),
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=sink,
            start_new_session=True,
            check=False,
        )


class _Stat(NamedTuple):
    state: str
    group: int
    ticks: str


def _stat(pid: int) -> _Stat | None:
    try:
        text = (PROC / str(pid) / "stat").read_bytes()
    except OSError:
        return None
    # The second field is the program's name in brackets and may hold anything, brackets too.
    fields = text[text.rindex(b")") + 2 :].split()
    return _Stat(fields[0].decode(), int(fields[2]), fields[19].decode())


def _everyone() -> list[_Stat]:
    stats = (_stat(int(entry)) for entry in os.listdir(PROC) if entry.isdigit())
    return [stat for stat in stats if stat is not None]


@cache
def _has_proc() -> bool:
    return (PROC / "self" / "stat").exists()


@cache
def _boot() -> str:
    return (PROC / "sys/kernel/random/boot_id").read_text().strip()[:8]


def _identify_by_psutil(pid: int) -> Process | None:
    import psutil

    try:
        process = psutil.Process(pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            return None
        return Process(pid, f"{process.create_time():.2f}")
    except psutil.NoSuchProcess:
        return None
