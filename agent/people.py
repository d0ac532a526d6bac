"""Who may do what on the page and over the API: named people, each with a role and one token, in an owner-only file.

A token is 256 random bits, shown once and kept as its SHA-256 (a slow hash is for words that can be guessed). The
same file holds the key that signs the sessions, so that deleting it ends them all. Who is removed, or given another
token, is out at once: a session names the token it was opened with.

Never: keep, log or show a token a second time; trust a file that others can read.
"""

from __future__ import annotations

import fcntl
import hashlib
import hmac
import json
import os
import re
import secrets
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple

from agent.paths import config_dir, private

FILE = "people.json"
PREFIX = "wk_"
"""How a token begins, so that one that went astray is known for what it is."""
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")
STAMP_CHARS = 16


class Role(StrEnum):
    """What somebody may do; each role may do what stands before it too."""

    read = "read"
    answer = "answer"
    operate = "operate"
    """Delegate, stop, delete."""

    def covers(self, wanted: Role) -> bool:
        """Whether this role may do what that one may."""
        order = list(Role)
        return order.index(self) >= order.index(wanted)


class Person(NamedTuple):
    """Somebody who may come in. stamp: which token they have, told by the beginning of its hash."""

    name: str
    role: Role
    stamp: str


class PeopleError(Exception):
    """The people cannot be read or changed; the message says what to do."""


class People:
    """The people of one Watchkeeper. Each change is a file replaced whole; readers notice it by themselves."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._seen: tuple[int, ...] = ()
        self._kept: Mapping[str, Any] = {}

    @classmethod
    def of(cls, env: Mapping[str, str] | None = None) -> People:
        """Those of this environment: `people.json` in the folder of the settings."""
        return cls(config_dir(env) / FILE)

    def list(self) -> list[Person]:
        """Everybody, by name. Raises PeopleError."""
        found = self._read()["people"]
        return [_person(name, found[name]) for name in sorted(found)]

    def add(self, name: str, role: Role) -> str:
        """Let somebody in, or give them a new token (the old one is void at once). Returns the token, once.

        Raises PeopleError for a name that is none.
        """
        if not NAME.fullmatch(name):
            raise PeopleError(f"{name!r} is no name: letters, digits and . _ @ - only, 64 at most")
        token = PREFIX + secrets.token_urlsafe(32)
        with self._changing() as data:
            data["people"][name] = {"role": str(role), "digest": _digest(token)}
        return token

    def remove(self, name: str) -> bool:
        """Let somebody in no longer, their open sessions included; False when there is nobody of that name."""
        with self._changing() as data:
            return data["people"].pop(name, None) is not None

    def of_token(self, token: str) -> Person | None:
        """Whose token it is."""
        digest = _digest(token)
        for name, entry in self._read()["people"].items():
            if hmac.compare_digest(digest, str(entry["digest"])):
                return _person(name, entry)
        return None

    def of_stamp(self, name: str, stamp: str) -> Person | None:
        """The person of a session, if they still have the token that it was opened with."""
        entry = self._read()["people"].get(name)
        person = _person(name, entry) if entry else None
        return person if person and hmac.compare_digest(person.stamp, stamp) else None

    def signing_key(self) -> str:
        """What sessions are signed with; made with the first person."""
        return str(self._read()["key"])

    # --- the file -----------------------------------------------------------------------------------------

    def _read(self) -> Mapping[str, Any]:
        """The file's content, read again only when it changed."""
        try:
            descriptor = os.open(self._file, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except FileNotFoundError:
            return {"key": "", "people": {}}
        except OSError as error:
            raise PeopleError(f"{self._file}: {error.strerror}; it must be a plain file of yours") from None
        with open(descriptor, encoding="utf-8") as file:
            told = os.fstat(descriptor)
            if told.st_uid != os.geteuid() or stat.S_IMODE(told.st_mode) & 0o077:
                raise PeopleError(
                    f"{self._file} can be read by others: run `chmod 600 {self._file}`, and give new tokens"
                )
            seen = (told.st_ino, told.st_mtime_ns, told.st_size)
            if seen != self._seen:
                self._kept, self._seen = _parsed(file.read(), self._file), seen
        return self._kept

    @contextmanager
    def _changing(self) -> Iterator[dict[str, Any]]:
        """The content, to be changed in place; written whole, one writer at a time."""
        folder = private(self._file.parent)
        lock = os.open(folder / f"{self._file.name}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            before = self._read()
            data = {"key": before["key"] or secrets.token_hex(32), "people": dict(before["people"])}
            yield data
            fresh = self._file.with_suffix(".new")
            fresh.unlink(missing_ok=True)
            descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            with open(descriptor, "w", encoding="utf-8") as file:
                json.dump(data, file, indent=1)
                file.flush()
                os.fsync(descriptor)
            fresh.replace(self._file)
        finally:
            os.close(lock)


def _parsed(text: str, file: Path) -> Mapping[str, Any]:
    try:
        data = json.loads(text)
        for name, entry in data["people"].items():
            _person(name, entry)
        return {"key": str(data["key"]), "people": dict(data["people"])}
    except (ValueError, KeyError, TypeError, AttributeError):
        raise PeopleError(
            f"{file} is damaged: move it away and let people in again: wk people add NAME"
        ) from None


def _person(name: str, entry: Mapping[str, str]) -> Person:
    return Person(name, Role(entry["role"]), entry["digest"][:STAMP_CHARS])


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()
