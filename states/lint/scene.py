"""What the lint is told: the text to judge, the files that are known, and the figures of the spec.

Never: read a file. A path that the tree does not settle is returned in `Report.wanted`, for the caller to look up.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Mapping
from typing import Literal, NamedTuple

from states.lint.finding import Finding
from states.lint.shell import Script

Parse = Callable[[str], Script]
Seen = Literal["there", "absent", "unknown"]

_NODE_PLACES = "tmp var/tmp dev/shm root local localscratch ssd nvme raid"
PLACES_OF_A_NODE = tuple(f"/{name}" for name in _NODE_PLACES.split())
"""Folders that live and die with one machine, as sites name them."""


class Tree(NamedTuple):
    """Files that are known. files: path relative to the folder the job starts in -> text, or None where only the
    name is known; a folder may stand as `name/`. complete: what is not listed is absent. root: that folder's own
    absolute path, "" when it is not known.
    """

    files: Mapping[str, str | None]
    complete: bool = True
    root: str = ""
    absent: frozenset[str] = frozenset()

    def place(self, path: str) -> str | None:
        """The path as a key of `files`; None where it lies outside."""
        if path.startswith("/"):
            root = self.root.rstrip("/")
            if not root or not (path == root or path.startswith(root + "/")):
                return None
            path = path[len(root) :].lstrip("/")
        path = posixpath.normpath(path or ".")
        return None if path.startswith("..") else path

    def seen(self, path: str) -> Seen:
        """Whether the path is there, a file or a folder."""
        key = self.place(path)
        if key is None:
            return "unknown"
        if key == "." or key in self.files or key + "/" in self.files:
            return "there"
        if any(name.startswith(key + "/") for name in self.files):
            return "there"
        return "absent" if self.complete or key in self.absent else "unknown"

    def text(self, path: str) -> str | None:
        """The file's text where it is known."""
        key = self.place(path)
        return None if key is None else self.files.get(key)


class Scene(NamedTuple):
    """Everything around the text. gpu: GPUs of one replica; replicas: machines (None: not known for either).

    workspace: prefixes that outlive the job. tree: None when the job's files cannot be seen from here.
    parse: the shell parser. staging: the job installs on purpose (a preparation run). env: what the job's
    environment has. asked: collects paths that nothing settles, for `Report.wanted`.
    """

    parse: Parse
    gpu: int | None = None
    replicas: int | None = None
    workspace: tuple[str, ...] = ()
    image: str = ""
    cluster: str = ""
    tree: Tree | None = None
    staging: bool = False
    env: Mapping[str, str] = {}
    asked: set[str] = set()

    def seen(self, path: str | None) -> Seen:
        """Whether a path of the job is there; without a tree nothing is known."""
        if self.tree is None or path is None:
            return "unknown"
        found = self.tree.seen(path)
        if found == "unknown" and self.tree.place(path) is not None:
            self.asked.add(path)
        return found

    def keeps(self, path: str) -> bool:
        """Whether what is written there outlives the job: below a workspace prefix, or relative to the start."""
        if not path.startswith("/") and not path.startswith("$"):
            return True
        return any(_below(path, prefix) for prefix in self.workspace)


class Report(NamedTuple):
    """findings in the order of the files and lines. wanted: paths that were asked for and not known. unread: what
    could not be judged, in words ("could not check", never "fine")."""

    findings: tuple[Finding, ...]
    wanted: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()


def _below(path: str, prefix: str) -> bool:
    """Whether the path lies below the prefix, a variable standing for any one name on either side."""
    have, want = _names(path), _names(prefix)
    if prefix in (".", ""):
        return not path.startswith("/")
    return len(have) >= len(want) and all(
        a == b or (a.startswith("$") and n > 0) or (b.startswith("$") and n > 0)
        for n, (a, b) in enumerate(zip(have, want, strict=False))
    )


def _names(path: str) -> list[str]:
    names = [name for name in path.replace("${", "$").replace("}", "").split("/") if name not in ("", ".")]
    return ["$HOME", *names[1:]] if names[:1] == ["~"] else names
