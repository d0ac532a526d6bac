"""Between replicas on one PostgreSQL: who puts something into the store says so, and the others look at once.

LISTEN/NOTIFY carries no truth: a notice that is lost (a pooler that cuts sessions, a partition, a restart) costs the
time up to the next sweep. On SQLite there is nothing to do; the bell of `agent/resident.py` is heard there.

Never: raise into what was just committed; a notice for each turn of a busy loop (its own workers take what it moved).
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from threading import Event, Thread
from typing import Any

from agent.clock import serial
from agent.database import Database

log = logging.getLogger(__name__)

CHANNEL = "watchkeeper"
LOOK_S = 0.5
"""How long the listening thread waits at a stretch; it ends at most this much late."""
RETRY_S, RETRY_S_MAX = 1.0, 30.0


class Notices:
    """One process's voice and ears. It does not hear itself."""

    def __init__(self, store: Database) -> None:
        self._store = store
        self._me = serial(12)
        self.shared = store.engine.dialect.name == "postgresql"
        """Whether other machines may be on this database."""

    def tell(self) -> None:
        """Something was put into the store. Never raises: the sweep looks all the same."""
        if not self.shared:
            return
        try:
            with self._store.write() as connection:
                connection.exec_driver_sql("SELECT pg_notify(%s, %s)", (CHANNEL, self._me))
        except Exception as error:
            log.warning("the other replicas could not be told (%s); their sweep looks", type(error).__name__)

    def listen(self, heard: Callable[[], None]) -> Listener | None:
        """Call `heard` whenever another process told, from a thread that runs from here on; None on SQLite."""
        if not self.shared:
            return None
        listener = Listener(self._store.engine, self._me, heard)
        listener.start()
        return listener


class Listener:
    """A thread with a connection of its own; it comes back by itself when that is cut."""

    def __init__(self, engine: Any, me: str, heard: Callable[[], None]) -> None:
        self._engine, self._me, self._heard = engine, me, heard
        self._leaving = Event()
        self._thread = Thread(target=self._run, name="notices", daemon=True)
        self.ready = Event()
        """Set while notices are heard."""

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """End the thread; one that hangs in a dead connection is left to end with the process."""
        self._leaving.set()
        self._thread.join(LOOK_S + 1)

    def _run(self) -> None:
        pause_s = RETRY_S
        while not self._leaving.is_set():
            try:
                self._listen()
            except Exception as error:
                pause_s = RETRY_S if self.ready.is_set() else min(2 * pause_s, RETRY_S_MAX)
                self.ready.clear()
                log.warning(
                    "notices are not heard (%s: %s); again in %g s", type(error).__name__, error, pause_s
                )
                self._leaving.wait(pause_s)

    def _listen(self) -> None:
        connection = self._engine.raw_connection()
        driver: Any = connection.driver_connection
        connection.detach()  # it is no one else's, and is closed for good
        try:
            driver.autocommit = True
            driver.execute(f"LISTEN {CHANNEL}")
            self.ready.set()
            self._heard()  # whatever was said while nobody listened
            while not self._leaving.is_set():
                told = [notice.payload for notice in driver.notifies(timeout=LOOK_S, stop_after=1)]
                if any(payload != self._me for payload in told):
                    self._heard()
        finally:
            connection.close()
