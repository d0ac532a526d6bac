"""The keys a person gave: kept for their owner only, handed to what needs them by name (RULES B1, B4, B6).

They lie in a file that only its owner can read (0600 in a folder of 0700, replaced whole and synced), or in
the operating system's keyring where a real one works; a variable of the same name in the environment is taken
when nothing is stored. A file that others can read is refused, with the `chmod` that mends it.

Never: print, log or return a value but to who asked for it by name; put one into an error or a `repr`.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import stat
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar

from agent.paths import private
from states.credentials import MalformedGroups, groups, is_secret

KeyringMode = Literal["auto", "on", "off"]
Source = Literal["file", "keyring", "environment"]
Answer = TypeVar("Answer")

SERVICE = "watchkeeper"
KEYRING_WAIT_S = 5.0
"""Seconds that a keyring may take; one that waits for a dialogue nobody sees counts as absent."""
VALUE_LENGTH_MAX = 16_384
NAME = re.compile(r"[A-Z][A-Z0-9_]{0,127}")


class Known(NamedTuple):
    """A key the product itself uses: what it is for and where a person finds it."""

    help: str
    where: str


KNOWN: Mapping[str, Known] = {
    "BRAINPP_ACCESS_KEY_ID": Known(
        "who you are to the Brain++ cluster; nothing is submitted without it",
        "in the file /.auth/accesskey_id on your own development machine",
    ),
    "BRAINPP_SECRET_ACCESS_KEY": Known(
        "proves it is you; goes with BRAINPP_ACCESS_KEY_ID",
        "in the file /.auth/accesskey_secret on your own development machine",
    ),
    "BRAINPP_CHARGED_GROUP": Known(
        "what jobs are billed to: your namespace:group pairs in one value, comma-separated, default first",
        "on the cluster's quota page, or from who runs the group",
    ),
    "ANTHROPIC_API_KEY": Known(
        "lets a model read the logs that the rules cannot settle; everything works without it",
        "in the console of the model's provider",
    ),
}


def advice(name: str) -> str:
    """How to set the key `name`, in one sentence and without a value (RULES B1, B6)."""
    known = KNOWN.get(name)
    found = f" You find it {known.where}." if known else ""
    return f"Run `wk key set {name}` and type the value where it is not shown (or pipe it in).{found}"


class SecretsError(Exception):
    """A key cannot be stored or read. The message says what to do next and holds no value."""


class Secrets:
    """The store. `folder` is its own (made 0700 when the first key is set), `env` a lower-priority source."""

    def __init__(self, folder: Path, *, env: Mapping[str, str], keyring: KeyringMode = "auto") -> None:
        self._folder, self._env, self._mode = folder, env, keyring
        self._file = folder / "keys.json"
        self._ring_seen: dict[str, tuple[int, str]] = {}

    def __repr__(self) -> str:
        return f"Secrets({str(self._folder)!r})"

    def set(self, name: str, value: str) -> Source:
        """Store the value and say where. Raises SecretsError for a bad name or value, or a store that fails.

        Mode `auto` falls back to the file where the keyring fails; mode `on` does not.
        """
        _check(name, value)
        with self._locked():
            stored = self._read()
            ring = _ring(self._mode, self._env)
            try:
                if ring is not None:
                    _in_time(lambda: ring.set_password(SERVICE, name, value), f"store {name}")
            except SecretsError:
                if self._mode == "on":
                    raise
                ring = None
            if ring is None and name in stored.ringed:
                self._drop_from_ring(name)
            stored.values.pop(name, None)
            stored.ringed.discard(name)
            if ring is None:
                stored.values[name] = value
            else:
                stored.ringed.add(name)
            self._write(stored)
        return "file" if ring is None else "keyring"

    def get(self, name: str) -> str | None:
        """The value, or None if it is neither stored nor in the environment. Raises SecretsError."""
        stored = self._read()
        if name in stored.values:
            return stored.values[name]
        if name in stored.ringed:
            return self._from_ring(name, stored.version)
        return self._env.get(name) or None

    def forget(self, name: str) -> bool:
        """Remove the value from the store; False if it was not there. The environment is not touched."""
        with self._locked():
            stored = self._read()
            there = name in stored.values or name in stored.ringed
            if name in stored.ringed:
                self._drop_from_ring(name)
            stored.values.pop(name, None)
            stored.ringed.discard(name)
            if there:
                self._write(stored)
        return there

    def names(self) -> list[str]:
        """Names of what is stored, and of the known keys in the environment; sorted, never a value."""
        stored = self._read()
        return sorted({*stored.values, *stored.ringed, *(n for n in KNOWN if self._env.get(n))})

    def source(self, name: str) -> Source | None:
        """Where `get` would take the value from."""
        stored = self._read()
        if name in stored.values:
            return "file"
        if name in stored.ringed:
            return "keyring"
        return "environment" if self._env.get(name) else None

    def values(self) -> dict[str, str]:
        """Name to value of all that must be redacted: what is stored, and what the environment holds alike.

        For `agent.redaction.Redactor` only. A keyring that cannot be reached is passed over.
        """
        stored = self._read()
        found = {n: v for n, v in self._env.items() if v and (n in KNOWN or is_secret(n, v))}
        for name in stored.ringed:
            with contextlib.suppress(SecretsError):
                found[name] = self._from_ring(name, stored.version)
        return found | stored.values

    # --- the file -----------------------------------------------------------------------------------------

    def _read(self) -> _Stored:
        try:
            descriptor = os.open(self._file, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except FileNotFoundError:
            return _Stored(0, {}, set())
        except OSError as error:
            raise SecretsError(f"{self._file}: {error.strerror}; it must be a plain file of yours") from None
        with open(descriptor, encoding="utf-8") as file:
            _check_private(self._folder, self._folder.stat(), 0o700)
            state = os.fstat(descriptor)
            _check_private(self._file, state, 0o600)
            try:
                data = json.load(file)
                return _Stored(state.st_mtime_ns, dict(data["values"]), set(data["keyring"]))
            except (ValueError, KeyError, TypeError):
                pass
        raise SecretsError(
            f"{self._file} is damaged: move it away and set the keys again with `wk key set NAME`"
        )

    def _write(self, stored: _Stored) -> None:
        """Replace the file whole: a crash leaves the old one or the new one."""
        text = json.dumps({"values": stored.values, "keyring": sorted(stored.ringed)}, indent=1)
        fresh = self._file.with_suffix(".new")  # one writer at a time: the lock is held
        fresh.unlink(missing_ok=True)
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with open(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(descriptor)
        fresh.replace(self._file)
        folder = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """One writer at a time, over all processes of this person."""
        private(self._folder)
        _check_private(self._folder, self._folder.stat(), 0o700)
        descriptor = os.open(self._folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    # --- the keyring --------------------------------------------------------------------------------------

    def _from_ring(self, name: str, version: int) -> str:
        """The value from the keyring, asked once per change of the file (each `set` rewrites it)."""
        seen = self._ring_seen.get(name)
        if seen is not None and seen[0] == version:
            return seen[1]
        value = None
        with contextlib.suppress(SecretsError):
            ring = _ring("on", self._env)
            value = _in_time(lambda: ring.get_password(SERVICE, name), f"read {name}")
        if not isinstance(value, str):
            raise SecretsError(
                f"{name} was put into the keyring, which does not give it now: unlock it, or set `keyring:"
                f" off` in config.yaml and run `wk key set {name}` again"
            )
        self._ring_seen[name] = (version, value)
        return value

    def _drop_from_ring(self, name: str) -> None:
        """Best effort: it may be gone from there already, or the keyring with it."""
        with contextlib.suppress(SecretsError):
            ring = _ring("on", self._env)
            _in_time(lambda: ring.delete_password(SERVICE, name), f"forget {name}")


class _Stored(NamedTuple):
    """What the file holds: values, the names of those in the keyring, and its time of change (ns)."""

    version: int
    values: dict[str, str]
    ringed: set[str]


def _check(name: str, value: str) -> None:
    if not NAME.fullmatch(name):
        raise SecretsError("the name of a key is capitals, digits and _, as in BRAINPP_ACCESS_KEY_ID")
    if not value.strip():
        raise SecretsError(f"the value for {name} is empty: nothing was stored. {advice(name)}")
    if not value.isprintable():
        raise SecretsError(
            f"the value for {name} has a line break or another control character in it: one line only"
        )
    if len(value) > VALUE_LENGTH_MAX:
        raise SecretsError(
            f"the value for {name} is longer than {VALUE_LENGTH_MAX} characters: that is not a key"
        )
    if name == "BRAINPP_CHARGED_GROUP":
        try:
            groups(value)
        except MalformedGroups as error:
            raise SecretsError(str(error)) from None


def _check_private(path: Path, state: os.stat_result, mode: int) -> None:
    if state.st_uid != os.geteuid():
        raise SecretsError(f"{path} belongs to another user: keys are read from files of your own only")
    if stat.S_IMODE(state.st_mode) & 0o077:
        raise SecretsError(
            f"{path} can be read by others: run `chmod {mode:o} {path}`, and consider new keys"
        )


def _ring(mode: KeyringMode, env: Mapping[str, str]) -> Any:
    """A keyring backend that really works, or None. Mode `on` raises SecretsError instead of None.

    `auto` tries only where a desktop can answer: a session bus AND a display (or macOS), since a bus without
    a desktop would wait for a dialogue that nobody sees.
    """
    desktop = env.get("DBUS_SESSION_BUS_ADDRESS") and (env.get("DISPLAY") or env.get("WAYLAND_DISPLAY"))
    if mode == "off" or (mode == "auto" and not desktop and sys.platform != "darwin"):
        return None
    try:
        return _in_time(_working, "answer")
    except SecretsError:
        if mode == "auto":
            return None
        raise


def _working() -> Any:
    """The backend, if it is neither the failing, the empty nor a plain-text one, and answers a probe.

    Raises whatever is wrong. Looking for a backend may already wait for the bus, so all of it runs in time.
    """
    import keyring  # 0.1 s, and not always installed: only where it is used

    backend = keyring.get_keyring()
    refused = ("keyring.backends.fail", "keyring.backends.null", "keyring.backends.chainer", "keyrings.alt")
    candidates = [backend, *getattr(backend, "backends", ())]
    real = next(b for b in candidates if not type(b).__module__.startswith(refused))
    real.get_password(SERVICE, "probe")
    return real


def _in_time(call: Callable[[], Answer], what: str) -> Answer:
    """The answer of a keyring, or SecretsError when it fails or takes longer than KEYRING_WAIT_S."""
    answers: list[Answer] = []

    def run() -> None:
        with contextlib.suppress(Exception):  # its text may hold the value; what failed is said without it
            answers.append(call())

    thread = threading.Thread(target=run, name="keyring", daemon=True)
    thread.start()
    thread.join(KEYRING_WAIT_S)
    if not answers:
        raise SecretsError(
            f"the keyring could not {what}: install the package `keyring` and unlock it, or set"
            " `keyring: off` in config.yaml to keep keys in a file of your own"
        )
    return answers[0]
