"""The imports of a job's command, with the files that it starts and imports looked up below the workspace.

Never: list a folder (single names are looked up, each file to a bound); run anything.
"""

from __future__ import annotations

from pathlib import Path

from agent.lint import LOOKS_MAX, looked_up, scene
from states.imports import Imports, imports_of
from states.lint.scene import Tree

ROUNDS_MAX = 12
"""Rounds of looking up: a chain of files that import each other may be this long."""


def imports(text: str, folder: Path) -> Imports:
    """What the Python that a shell text starts imports; folder: the one the job starts in."""
    tree = Tree({}, complete=False, root=str(folder.resolve()))
    about = scene(tree=tree)
    for _ in range(ROUNDS_MAX):
        found = imports_of(text, about._replace(tree=tree))
        wanted = [key for path in found.wanted[:LOOKS_MAX] if (key := tree.place(path)) is not None]
        new = [key for key in wanted if tree.seen(key) == "unknown"]
        if not new:
            break
        tree = looked_up(folder, tree, new)
    return found
