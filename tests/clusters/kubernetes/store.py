"""The emulator's objects: one counter of versions for all, what changed since each, and the end of that memory.

Never: hand out an object that is still being written.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, NamedTuple

from agent.clusters.local_time import now

Object = dict[str, Any]


class Change(NamedTuple):
    """One entry of the history: ADDED, MODIFIED or DELETED, with the object as it then was."""

    version: int
    kind: str
    what: str
    item: Object


def copy(item: Any) -> Any:
    return json.loads(json.dumps(item))


def stamp(at: datetime | None = None) -> str:
    """A time as the API writes it: UTC, whole seconds."""
    return (at or now()).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def micro(at: datetime | None = None) -> str:
    return (at or now()).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


class Store:
    """All objects by kind, namespace and name. `lock` is taken by whoever reads and writes in one step."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.version = 100
        self.oldest = 0
        self._serial = 0
        self._objects: dict[str, dict[tuple[str, str], Object]] = {}
        self._history: list[Change] = []

    def uid(self) -> str:
        self._serial += 1
        return f"00000000-0000-4000-8000-{self._serial:012x}"

    def letters(self) -> str:
        """Five letters that no other object of this store has."""
        self._serial += 1
        alphabet = "bcdfghjklmnpqrstvwxz2456789"
        value, made = self._serial * 7919, ""
        for _ in range(5):
            value, rest = divmod(value, len(alphabet))
            made += alphabet[rest]
        return made

    def create(self, kind: str, item: Object, namespace: str = "") -> Object:
        """Raises KeyError when the name is taken."""
        with self.lock:
            metadata = item.setdefault("metadata", {})
            key = (namespace, metadata["name"])
            if key in self._objects.setdefault(kind, {}):
                raise KeyError(metadata["name"])
            metadata["uid"] = metadata.get("uid") or self.uid()
            metadata["creationTimestamp"] = metadata.get("creationTimestamp") or stamp()
            metadata.setdefault("generation", 1)
            if namespace:
                metadata["namespace"] = namespace
            self._objects[kind][key] = item
            return self._changed(kind, "ADDED", item)

    def get(self, kind: str, name: str, namespace: str = "") -> Object | None:
        return self._objects.get(kind, {}).get((namespace, name))

    def all(self, kind: str, namespace: str | None = None) -> list[Object]:
        """Of one namespace or of all, by name."""
        with self.lock:
            found = self._objects.get(kind, {})
            return [found[key] for key in sorted(found) if namespace is None or key[0] == namespace]

    def changed(self, kind: str, item: Object) -> Object:
        """The object was written to."""
        with self.lock:
            return self._changed(kind, "MODIFIED", item)

    def remove(self, kind: str, item: Object) -> None:
        with self.lock:
            key = (item["metadata"].get("namespace", ""), item["metadata"]["name"])
            if self._objects.get(kind, {}).pop(key, None) is not None:
                self._changed(kind, "DELETED", item)

    def since(self, kind: str, version: int) -> Iterator[Change]:
        """Changes after a version. Raises LookupError when they are forgotten."""
        with self.lock:
            if version < self.oldest:
                raise LookupError(f"too old resource version: {version} ({self.oldest})")
            return iter(
                [change for change in self._history if change.version > version and change.kind == kind]
            )

    def compact(self) -> None:
        """Forget the history, as etcd does every five minutes."""
        with self.lock:
            self.oldest = self.version
            self._history.clear()

    def _changed(self, kind: str, what: str, item: Object) -> Object:
        self.version += 1
        item["metadata"]["resourceVersion"] = str(self.version)
        self._history.append(Change(self.version, kind, what, copy(item)))
        return item
