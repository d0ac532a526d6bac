"""Who carries the runs of this state folder: the presence of a resident agent, and the bell that wakes it.

Presence is a lock on a file, held for as long as the process lives: one that was killed is gone at once, and no
process id is ever trusted on its own. The bell is a file whose time of change moves when something was put into the
store; whoever carries runs looks then, and not only at the next sweep. Another machine's agent has its sweep.

Never: a truth about a run; a lock that outlives its process.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from agent.clock import Clock
from agent.paths import private

CLAIM_TRIES = 10
CLAIM_PAUSE_S = 0.05
"""Somebody who only asks who is there holds the lock for an instant; a claim outwaits that."""


class Presence(NamedTuple):
    """The resident agent: its process id (0 for the instant before it is written), its start (ISO 8601), and whether
    runs are carried already."""

    pid: int
    started_at: str
    ready: bool


class Resident:
    """The one place of a state folder for an agent that carries every run."""

    def __init__(self, folder: Path, clock: Clock) -> None:
        self._file = folder / "resident.lock"
        self._clock = clock
        self._held: int | None = None

    def claim(self) -> bool:
        """Take the place; False when somebody else has it. Held until `release` or the end of the process.

        Whoever waits for a resident agent waits until it has also said that it is `ready`.
        """
        private(self._file.parent)
        descriptor = os.open(self._file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        for _ in range(CLAIM_TRIES):
            if _locked(descriptor, fcntl.LOCK_EX):
                self._held = descriptor
                self._tell(ready=False)
                return True
            self._clock.sleep(CLAIM_PAUSE_S)
        os.close(descriptor)
        return False

    def ready(self) -> None:
        """Say that runs are carried from here on. Only after `claim`."""
        self._tell(ready=True)

    def release(self) -> None:
        """Give the place back, if it is ours."""
        if self._held is not None:
            os.ftruncate(self._held, 0)
            os.close(self._held)
            self._held = None

    def holder(self) -> Presence | None:
        """Who has the place now; None when nobody has."""
        try:
            descriptor = os.open(self._file, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            if _locked(descriptor, fcntl.LOCK_SH):
                return None
            return _presence(os.pread(descriptor, 4096, 0))
        finally:
            os.close(descriptor)

    def _tell(self, *, ready: bool) -> None:
        assert self._held is not None
        told = Presence(os.getpid(), self._clock.now().isoformat(timespec="seconds"), ready)
        os.ftruncate(self._held, 0)
        os.pwrite(self._held, json.dumps(told._asdict()).encode(), 0)


class Watchers:
    """Every process that carries runs now, resident or not: each shares one lock for as long as it lives."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "watchers.lock"
        self._held: int | None = None

    def enter(self, alone: Callable[[], None]) -> None:
        """Be one of them. `alone` is called first if nobody else is; whoever comes now waits until it returned."""
        private(self._file.parent)
        self._held = os.open(self._file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        if _locked(self._held, fcntl.LOCK_EX):
            alone()
        fcntl.flock(self._held, fcntl.LOCK_SH)

    def leave(self) -> None:
        if self._held is not None:
            os.close(self._held)
            self._held = None

    def anyone(self) -> bool:
        """Whether somebody carries runs now, this process included."""
        try:
            descriptor = os.open(self._file, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            return not _locked(descriptor, fcntl.LOCK_EX)
        finally:
            os.close(descriptor)


class Bell:
    """Rung when something was put into the store by a process that does not carry runs itself."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "bell"
        self._heard = self._rung_at()

    def ring(self) -> None:
        """Whoever carries runs looks now. Never raises: the sweep looks all the same."""
        try:
            private(self._file.parent)
            descriptor = os.open(self._file, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                os.utime(descriptor)
            finally:
                os.close(descriptor)
        except OSError:
            pass

    def heard(self) -> bool:
        """Whether it was rung since this was last asked."""
        rung_at = self._rung_at()
        changed, self._heard = rung_at != self._heard, rung_at
        return changed

    def _rung_at(self) -> int:
        try:
            return self._file.stat().st_mtime_ns
        except OSError:
            return 0


def _locked(descriptor: int, how: int) -> bool:
    try:
        fcntl.flock(descriptor, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _presence(text: bytes) -> Presence:
    try:
        told = json.loads(text)
        return Presence(int(told["pid"]), str(told["started_at"]), bool(told["ready"]))
    except (ValueError, KeyError, TypeError):
        return Presence(0, "", False)
