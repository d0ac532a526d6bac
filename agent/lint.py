"""Lint of one file or text: finds what kind it is, and looks up on the disk the paths that the lint asks for.

Nothing is listed: a workspace may hold millions of files on a slow disk, so single names are looked up, in a few
rounds (a script that starts a script that starts a script). Each file is read to a bound.

Never: run the file, write anything, or read a file that lies outside the folder.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from states.lint.finding import Finding
from states.lint.lint import CHARS_MAX, Source, lint
from states.lint.scene import Report, Scene, Tree

ROUNDS_MAX = 5
"""Rounds of looking up what the lint asks for."""

LOOKS_MAX = 400
"""Paths looked up in one round."""


def source_of(name: str, text: str) -> Source:
    """The text with what it is: by its name, else by how it begins."""
    from agent import yamlparse

    head = text.lstrip("\ufeff \t\r\n")[:2_000]
    if name.endswith(".py"):
        return Source(name, text, "python")
    looks = name.endswith((".yaml", ".yml", ".json")) or ("apiVersion:" in head and "kind:" in head)
    if looks and not head.startswith("#!"):
        return Source(name, text, "manifest", yamlparse.parse(text[:CHARS_MAX]))
    return Source(name, text)


def scene(
    *,
    gpu: int | None = None,
    replicas: int | None = None,
    workspace: Iterable[str] = (),
    image: str = "",
    cluster: str = "",
    tree: Tree | None = None,
    staging: bool = False,
    env: Mapping[str, str] | None = None,
) -> Scene:
    """A scene with the shell parser of this process. Figures and paths as in `states.lint.scene.Scene`."""
    from agent.shellparse import parse

    return Scene(parse, gpu, replicas, tuple(workspace), image, cluster, tree, staging, env or {})


def shell_text(command: tuple[str, ...]) -> str:
    """The command as a shell text: the string of `bash -c`, else its words quoted."""
    if len(command) == 3 and command[0].rsplit("/", 1)[-1] in ("bash", "sh") and command[1] == "-c":
        return command[2]
    return shlex.join(command)


def lint_file(path: Path, about: Scene, folder: Path | None) -> Report:
    """The findings of one file. folder: where the job's files are, None if they cannot be seen. OSError if the
    file itself cannot be read."""
    text = read_text(path)
    return lint_text(source_of(path.name, text), about, folder)


def lint_text(source: Source, about: Scene, folder: Path | None) -> Report:
    """The findings of a text, with the files below `folder` that it starts; without a folder, the scene's tree."""
    if folder is None:
        report = lint(source, about)
        return report._replace(unread=(*report.unread, *_blind(about)))
    return _settled(source, about, folder)[0]


def tree_of(source: Source, about: Scene, folder: Path) -> Tree:
    """What the text starts and asks for below the folder, looked up: the tree for another judgement of it."""
    return _settled(source, about, folder)[1]


def _settled(source: Source, about: Scene, folder: Path) -> tuple[Report, Tree]:
    tree = Tree({}, complete=False, root=str(folder.resolve()))
    report = lint(source, about._replace(tree=tree))
    for _ in range(ROUNDS_MAX):
        wanted = [key for path in report.wanted[:LOOKS_MAX] if (key := tree.place(path)) is not None]
        new = [key for key in wanted if tree.seen(key) == "unknown"]
        if not new:
            break
        tree = looked_up(folder, tree, new)
        report = lint(source, about._replace(tree=tree))
    return report, tree


def _blind(about: Scene) -> list[str]:
    if about.tree is not None:
        return []
    return [
        "the job's files cannot be seen from here: its paths and the scripts that it starts were not checked"
    ]


def looked_up(folder: Path, tree: Tree, keys: Iterable[str]) -> Tree:
    """The tree with these paths settled: text, there, or absent."""
    files, absent = dict(tree.files), set(tree.absent)
    for key in keys:
        path = folder / key
        try:
            if path.is_dir():
                files[key + "/"] = None
            elif path.exists():
                inside = path.is_file() and path.resolve().is_relative_to(folder.resolve())
                files[key] = read_text(path) if inside and path.stat().st_size <= 4 * CHARS_MAX else None
            else:
                absent.add(key)
        except (OSError, ValueError):
            files[key] = None  # it cannot be looked at, so it is not called missing
    return tree._replace(files=files, absent=frozenset(absent))


def read_text(path: Path) -> str:
    """The text of a file to the bound of the lint, and a little more so that a cut is noticed. OSError as `open`."""
    with path.open("rb") as file:
        return file.read(CHARS_MAX + 4).decode("utf-8", "replace")


def as_json(finding: Finding) -> dict[str, Any]:
    """A finding for a program: `{kind, level, line, text, mend}`, with why and the file the line is of."""
    return {
        "kind": finding.kind,
        "level": finding.level,
        "line": finding.line,
        "text": finding.text,
        "mend": finding.mend,
        "why": finding.why,
        "file": finding.file,
    }
