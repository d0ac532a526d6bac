"""The look at a staged package set: the requirements, and the wheels with what each says that it needs.

Never: build, unpack or install a package; read a requirements file that lies outside the workspace.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from states.packages import Staged, Wanted, locked_lines, requirement_lines, source_archive, staged_wheel

FILES_MAX = 20_000
BYTES_MAX = 4_000_000
READS_MAX = 8
"""Requirements files that read each other in."""

FOLDERS = ("wheels", "wheelhouse")
"""Where staged wheels lie by convention, beside the requirements."""

REQUIREMENTS = ("requirements.txt", "uv.lock")


class Shelf(NamedTuple):
    """What is staged. unread: files that say they are wheels and could not be read."""

    staged: tuple[Staged, ...]
    unread: tuple[str, ...] = ()

    def python(self) -> str:
        """The Python that the wheels are for, as `3.11`; "" where they do not agree or say."""
        said = {
            tag.interpreter.removeprefix("cp3")
            for one in self.staged
            for tag in one.tags or ()
            if tag.interpreter.startswith("cp3") and tag.abi != "abi3"
        }
        return f"3.{said.pop()}" if len(said) == 1 else ""


def shelf(folder: Path) -> Shelf:
    """Every wheel and source archive of a folder. OSError where it cannot be listed."""
    staged: list[Staged] = []
    unread: list[str] = []
    for path in sorted(islice(folder.iterdir(), FILES_MAX)):
        if path.suffix == ".whl":
            found = _wheel(path)
            if found is None:
                unread.append(path.name)
            else:
                staged.append(found)
        elif path.name.endswith((".tar.gz", ".zip")) and (archive := source_archive(path.name)) is not None:
            staged.append(archive)
    return Shelf(tuple(staged), tuple(unread))


def _wheel(path: Path) -> Staged | None:
    """One wheel; None where it is no whole archive (a download that broke off) or has no METADATA."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = [name for name in archive.namelist() if name.count("/") == 1]
            inside = next(name for name in names if name.endswith(".dist-info/METADATA"))
            with archive.open(inside) as file:
                return staged_wheel(path.name, file.read(BYTES_MAX).decode("utf-8", "replace"))
    except (zipfile.BadZipFile, StopIteration, OSError, NotImplementedError):
        return None


def wanted(workspace: Path, name: str) -> Wanted:
    """The requirements of a file below the workspace, those that it reads in included. OSError where it cannot be
    read, ValueError for a uv.lock that is none."""
    if name.endswith(".lock"):
        return locked_lines(_text(workspace, name))
    lines: list[str] = []
    unread: list[str] = []
    ahead, done = [name], set[str]()
    while ahead:
        path = ahead.pop(0)
        if path in done:
            continue
        done.add(path)
        if len(done) > READS_MAX:
            unread.append(f"-r {path}")
            continue
        found = requirement_lines(_text(workspace, path))
        lines += found.lines
        unread += found.unread
        ahead += [str(Path(path).parent / inner) for inner in found.reads]
    return Wanted(tuple(lines), tuple(unread))


def _text(workspace: Path, name: str) -> str:
    path = (workspace / name).resolve()
    if not path.is_relative_to(workspace.resolve()):
        raise FileNotFoundError(f"{name} lies outside the workspace")
    with path.open("rb") as file:
        return file.read(BYTES_MAX).decode("utf-8", "replace")


def by_convention(workspace: Path) -> Iterator[tuple[str, str]]:
    """(requirements, wheels) that lie in the workspace under their usual names."""
    for requirements in REQUIREMENTS:
        if (workspace / requirements).is_file():
            for folder in FOLDERS:
                if (workspace / folder).is_dir():
                    yield requirements, folder
