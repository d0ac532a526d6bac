"""A real PostgreSQL for the tests, if its programs are on this machine: in a folder of its own, on a Unix socket.

The server refuses to run as the superuser, so under that user it is started as an ordinary one.

Never: a network port, a database of the person's own, a server that outlives the tests.
"""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

FAST = (
    "fsync=off", "synchronous_commit=off", "full_page_writes=off", "shared_buffers=16MB", "max_connections=60",
    "listen_addresses=",
)  # fmt: skip
"""It is thrown away after the tests; nothing of it needs to survive a power cut."""


def programs() -> Path | None:
    """The folder with `initdb` and `postgres`; None: there is none."""
    packaged = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    found = [*([shutil.which("initdb")] if shutil.which("initdb") else []), *packaged]
    folders = (Path(str(one)).resolve().parent for one in found)
    return next(
        (one for one in folders if {"postgres", "pg_isready"} <= {p.name for p in one.iterdir()}), None
    )


def missing() -> str:
    """Why there can be no server here, or ""."""
    if programs() is None:
        return "PostgreSQL's programs are not on this machine"
    try:
        import psycopg  # noqa: F401
    except ImportError:
        return "psycopg is not installed (the `postgres` extra)"
    return "" if _as_whom() is not None else "there is no ordinary user to run PostgreSQL as"


@contextmanager
def server() -> Iterator[str]:
    """A running server: its URL without a database name. Ends with the block."""
    where, user = programs(), _as_whom()
    assert where is not None
    assert user is not None
    folder = Path(tempfile.mkdtemp(prefix="wk-pg-"))
    if user:
        shutil.chown(folder, user["user"], user["group"])
    try:
        init = [
            where / "initdb",
            "-D",
            folder / "data",
            "-U",
            "watch",
            "-A",
            "trust",
            "-E",
            "UTF8",
            "--no-sync",
        ]
        subprocess.run(init, check=True, capture_output=True, cwd=folder, **user)
        settings = [option for setting in FAST for option in ("-c", setting)]
        command = [where / "postgres", "-D", folder / "data", "-k", folder, *settings]
        with subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=folder, **user
        ) as process:
            try:
                ready = [where / "pg_isready", "-h", folder, "-U", "watch", "-t", "1", "-q"]
                for _ in range(400):
                    if subprocess.run(ready, check=False).returncode == 0:
                        break
                yield f"postgresql+psycopg://watch@/postgres?host={folder}"
            finally:
                process.terminate()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _as_whom() -> dict[str, Any] | None:
    """Arguments of subprocess for an ordinary user; {}: this one is; None: there is none."""
    if os.geteuid() != 0:
        return {}
    for name in ("postgres", "nobody"):
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return {"user": name, "group": entry.pw_gid, "extra_groups": []}
    return None
