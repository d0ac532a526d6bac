"""The wire between a replica and the database: a socket that passes everything on, until it is cut.

What is sent while it is cut waits, as in a network that lost a route: both sides keep their connection.

Never: a byte changed or lost within a connection that lives on.
"""

from __future__ import annotations

import socket
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread

NAME = ".s.PGSQL.5432"


class Wire:
    """Listens at `place` (a folder, or an address of this machine) for what is meant for the server in `server`."""

    def __init__(self, place: Path | str, server: Path) -> None:
        self._server = server
        self._open = Event()
        self._open.set()
        if isinstance(place, Path):
            self._socket = socket.socket(socket.AF_UNIX)
            self._socket.bind(str(place / NAME))
        else:
            self._socket = socket.socket(socket.AF_INET)
            self._socket.bind((place, 0))
        self.port = 0 if isinstance(place, Path) else self._socket.getsockname()[1]
        self._socket.listen(64)
        self._ends: list[socket.socket] = [self._socket]
        Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        self._open.clear()

    def heal(self) -> None:
        self._open.set()

    def close(self) -> None:
        self._open.set()
        for end in self._ends:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._socket.accept()
                far = socket.socket(socket.AF_UNIX)
                far.connect(str(self._server / NAME))
            except OSError:
                return
            self._ends += [near, far]
            for pair in ((near, far), (far, near)):
                Thread(target=self._pass, args=pair, daemon=True).start()

    def _pass(self, source: socket.socket, to: socket.socket) -> None:
        with suppress(OSError):
            while piece := source.recv(65_536):
                self._open.wait()
                to.sendall(piece)
        for end in (source, to):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
