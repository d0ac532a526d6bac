"""The one runner of other programs: argument lists, a time-out for the whole group, a scrubbed environment.

    RunError
      NotStarted     the system would not start it
        NotInstalled   there is no such program; says what to install
      TimedOut       it and all it started were killed; what it had said by then is kept

A program that ended with a non-zero status is not an error here: the driver reads `Ran.rc`.

Never: start a shell line; pass the agent's own environment on; hold more than a bounded part of the output.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from typing import IO, NamedTuple

from agent.clusters.local_time import monotonic_s

KEPT_BYTES = 2 << 20
"""Kept of the beginning of each stream, and as much of its end: the states of ten thousand jobs in one answer."""
AFTER_EXIT_S = 0.5
"""How long output is still taken once the program ended, while something it left behind holds the pipe."""
BLOCK_BYTES = 64 << 10
PASSED = frozenset({"PATH", "HOME", "USER", "LOGNAME", "LANG", "LANGUAGE", "TZ", "TMPDIR"})


class RunError(Exception):
    """A program gave no answer at all. `str(error)` is redacted and says what to do."""


class NotStarted(RunError):
    """The system refused to start it (permission, too long an argument list, no such working folder)."""


class NotInstalled(NotStarted):
    """No such program on the PATH."""


class TimedOut(RunError):
    """Its time was over; it and its group are dead. stdout, stderr: what it had said."""

    def __init__(self, reason: str, *, stdout: str = "", stderr: str = "") -> None:
        super().__init__(reason)
        self.stdout = stdout
        self.stderr = stderr


class Ran(NamedTuple):
    """What a program did. rc: exit status, negative when a signal ended it. Texts redacted and bounded."""

    rc: int
    stdout: str
    stderr: str
    seconds: float


def clean_environment(
    given: Mapping[str, str] | None = None,
    *,
    drop: Sequence[str] = (),
    source: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """The variables on the allow-list (PATH, HOME, language, user, time zone, TMPDIR), then the given ones.

    drop: names that are left out even so. source: where from, the agent's environment when not given.
    Proxies, tokens and whatever else the agent was started with never pass by themselves.
    """
    source = os.environ if source is None else source
    kept = {name: text for name, text in source.items() if name in PASSED or name.startswith("LC_")}
    kept.setdefault("PATH", os.defpath)
    return {name: text for name, text in {**kept, **(given or {})}.items() if name not in drop}


def run(
    argv: Sequence[str],
    *,
    timeout_s: float,
    env: Mapping[str, str] | None = None,
    drop: Sequence[str] = (),
    stdin: str | None = None,
    redact: Callable[[str], str] = str,
    install: str = "",
    cwd: str | os.PathLike[str] | None = None,
) -> Ran:
    """Run one program to its end and return what it said.

    timeout_s: seconds for everything; then the program's process group is killed at once, so that a call
    that timed out can no longer land. env: added to `clean_environment`; drop: names left out of it.
    install: what to install, for the message of NotInstalled. Output is decoded with bad bytes replaced;
    of a long one the beginning and the end are kept. Raises NotInstalled, NotStarted, TimedOut.
    """
    began = monotonic_s()
    try:
        process = subprocess.Popen(
            list(argv),
            env=clean_environment(env, drop=drop),
            cwd=cwd,
            stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        raise _not_started(argv, error, redact, install, cwd) from None
    try:
        out, err = _Kept(), _Kept()
        in_time = _converse(process, (stdin or "").encode(), out, err, began + timeout_s)
    finally:
        # Also when this thread is interrupted: nothing of ours stays behind unwatched.
        if process.poll() is None:
            _kill(process)
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
    stdout, stderr = redact(out.text()), redact(err.text())
    if not in_time:
        reason = f"{redact(argv[0])} did not answer within {timeout_s:g} s and was stopped"
        raise TimedOut(reason, stdout=stdout, stderr=stderr)
    return Ran(process.returncode, stdout, stderr, monotonic_s() - began)


class _Kept:
    """A stream's beginning and end, each bounded."""

    def __init__(self) -> None:
        self.head = b""
        self.tail = b""
        self.left_out = 0

    def add(self, data: bytes) -> None:
        room = KEPT_BYTES - len(self.head)
        self.head += data[:room]
        tail = self.tail + data[room:]
        self.tail = tail[-KEPT_BYTES:]
        self.left_out += len(tail) - len(self.tail)

    def text(self) -> str:
        middle = f"\n[... {self.left_out} bytes left out ...]\n".encode() if self.left_out else b""
        return (self.head + middle + self.tail).decode(errors="replace")


def _converse(process: subprocess.Popen[bytes], data: bytes, out: _Kept, err: _Kept, until: float) -> bool:
    """Feed and read until the streams close or the program ended; False when the time was over first."""
    with selectors.DefaultSelector() as selector:
        for pipe, kept in ((process.stdout, out), (process.stderr, err)):
            if pipe is not None:
                selector.register(pipe, selectors.EVENT_READ, kept)
        if process.stdin is not None:
            os.set_blocking(process.stdin.fileno(), False)
            selector.register(process.stdin, selectors.EVENT_WRITE)
        ended_at: float | None = None
        while selector.get_map():
            now_s = monotonic_s()
            if ended_at is None and process.poll() is not None:
                ended_at = now_s
            last = until if ended_at is None else min(until, ended_at + AFTER_EXIT_S)
            if now_s >= last:
                return ended_at is not None
            for key, _ in selector.select(min(last - now_s, 0.1)):
                if process.stdin is not None and key.data is None:
                    data = _feed(selector, process.stdin, data)
                elif chunk := os.read(key.fd, BLOCK_BYTES):
                    key.data.add(chunk)
                else:
                    selector.unregister(key.fileobj)
    return _ends(process, until)


def _feed(selector: selectors.BaseSelector, pipe: IO[bytes], data: bytes) -> bytes:
    """Write what the pipe takes; close it at the end, or when nobody reads."""
    try:
        data = data[os.write(pipe.fileno(), data[:BLOCK_BYTES]) :]
    except BlockingIOError:
        return data
    except BrokenPipeError:
        data = b""
    if not data:
        selector.unregister(pipe)
        with contextlib.suppress(OSError):
            pipe.close()
    return data


def _ends(process: subprocess.Popen[bytes], until: float) -> bool:
    try:
        process.wait(max(0.0, until - monotonic_s()))
    except subprocess.TimeoutExpired:
        return False
    return True


def _kill(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _not_started(
    argv: Sequence[str], error: Exception, redact: Callable[[str], str], install: str, cwd: object
) -> NotStarted:
    program = redact(argv[0]) if argv else "(no program)"
    if isinstance(error, FileNotFoundError) and (cwd is None or os.path.isdir(str(cwd))):
        hint = f"install {install}" if install else "install it, or put its folder on the PATH"
        return NotInstalled(f"{program} is not installed here: {hint}")
    return NotStarted(f"{program} could not be started: {redact(str(error))}")
