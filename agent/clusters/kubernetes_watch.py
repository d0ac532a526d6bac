"""One collection of objects kept at hand: read whole the first time, and afterwards what changed since.

With few objects a list is as cheap as anything. From `watch_from` of them on a look reads the changes since the last
resourceVersion (a watch that the server ends after a second); 410 Gone, an ERROR, or age begin anew with a list.
What a watch had not yet told comes at the next look: a copy may be late, it is never wrong.

Never: outlive its process as a truth; grow by what was deleted; be read by two threads at once.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from agent.clusters.kubernetes_api import Api, Said
from agent.clusters.kubernetes_objects import Object, field, items, text
from agent.clusters.local_time import monotonic_s

RELIST_S = 600.0
"""A copy that is older than this is read anew, whatever the watches said."""


class Mirror:
    """The objects of one path and selector, as of the last `read`."""

    def __init__(self, api: Api, path: str, *, watch_from: int, **query: Any) -> None:
        self._api, self._path, self._query = api, path, query
        self._watch_from = watch_from
        self._lock = threading.Lock()
        self._found: dict[str, Object] = {}
        self._version = ""
        self._listed_s = 0.0

    def read(self) -> Sequence[Object]:
        """All objects, up to date. Raises what `Api` raises; the copy is then as it was."""
        with self._lock:
            fresh = bool(self._version) and monotonic_s() - self._listed_s < RELIST_S
            if not (fresh and len(self._found) >= self._watch_from and self._follow()):
                self._list()
            return list(self._found.values())

    def _list(self) -> None:
        pages = self._pages()
        self._found = {_key(item): _slim(item) for page in pages for item in items(page, "items")}
        self._version = text(pages[-1], "metadata", "resourceVersion")
        self._listed_s = monotonic_s()

    def _pages(self) -> list[dict[str, Any]]:
        try:
            return list(self._api.pages(self._path, **self._query))
        except Said as error:
            if error.code != 410:
                raise
            return [self._api.get(self._path, **self._query)]  # the snapshot expired on the way: in one piece

    def _follow(self) -> bool:
        """Take in the changes; False when the server no longer knows them (410) and a list is due."""
        try:
            for change in self._api.watch(self._path, self._version, **self._query):
                kind, item = change.get("type"), change.get("object")
                if kind == "ERROR" or not isinstance(item, dict):
                    return False
                if kind == "DELETED":
                    self._found.pop(_key(item), None)
                elif kind in ("ADDED", "MODIFIED"):
                    self._found[_key(item)] = _slim(item)
                self._version = text(item, "metadata", "resourceVersion") or self._version
        except Said as error:
            if error.code != 410:
                raise
            return False
        return True


def _key(item: Object) -> str:
    return f"{text(item, 'metadata', 'namespace')}/{text(item, 'metadata', 'name')}"


def _slim(item: Object) -> Object:
    """Without the bookkeeping of who set which field, which is the larger half of an object."""
    metadata = field(item, "metadata")
    if isinstance(metadata, dict):
        metadata.pop("managedFields", None)
    return item
