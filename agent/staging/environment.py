"""The look at one Python environment, by its files alone: what its interpreter leads to, what it leans on, what can
be imported from it.

Never: run its interpreter or any file of it; list more than a bound of a folder.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

from states.environments import Environment
from states.packages import Staged, installed

ENTRIES_MAX = 20_000
"""Names of one site-packages folder that are read."""

BYTES_MAX = 200_000
LINKS_MAX = 40
SCRIPTS = ("pip", "pip3", "activate", "torchrun", "accelerate", "conda-unpack")
"""Scripts whose first lines say which folder they were made for."""

_HOME = re.compile(
    r"""(?:^#!|VIRTUAL_ENV=["']?|exec ["'])(/[^\s"']+?)(?:/bin/python[\d.]*)?["']?\s*$""", re.MULTILINE
)


def look(where: Path) -> Environment:
    """What the files tell. OSError where the folder itself cannot be read."""
    real = Path(os.path.realpath(where))
    settings = _settings(where / "pyvenv.cfg")
    python = where / "bin" / "python"
    sites = [site for site in _sites(where) if site.is_dir()]
    names = [entry for site in sites for entry in islice(_names(site), ENTRIES_MAX)]
    pth = [line for site in sites for line in _pth_lines(site)]
    modules = {module for name in names for module in _modules(name)}
    for path in pth:
        modules.update(
            module for name in islice(_names(Path(path)), ENTRIES_MAX) for module in _modules(name)
        )
    modules.update(module for site in sites for module in _top_levels(site, names))
    conda = (where / "conda-meta").is_dir()
    end = _end(python) if os.path.lexists(python) else ""
    return Environment(
        path=str(where),
        real=str(real),
        kind="venv" if settings else "conda" if conda else "other",
        python=end,
        runs=python.exists(),
        home=settings.get("home", ""),
        version=_version(where, settings),
        system=settings.get("include-system-site-packages", "").lower() == "true",
        pth=tuple(pth),
        made_for=_made_for(where),
        modules=frozenset(modules),
        site=bool(sites),
        links=dict(_links(where, sites)),
    )


def packages(where: Path) -> Iterator[Staged]:
    """The packages that are installed in it, by their METADATA."""
    for site in _sites(where):
        for name in islice(_names(site), ENTRIES_MAX):
            if name.endswith(".dist-info"):
                found = installed(_text(site / name / "METADATA"))
                if found is not None:
                    yield found


def is_an_unpacked_pack(where: Path) -> bool:
    """Whether it was unpacked from a conda pack: `conda-unpack` has to mend its paths once."""
    return (where / "conda-meta").is_dir() and (where / "bin" / "conda-unpack").is_file()


def _sites(where: Path) -> list[Path]:
    return sorted(
        path / "site-packages"
        for lib in ("lib", "lib64")
        for path in islice((where / lib).glob("python3*"), 8)
        if not (lib == "lib64" and (where / "lib64").is_symlink())
    )


def _settings(path: Path) -> dict[str, str]:
    """`name = value` of a pyvenv.cfg, names in lower case."""
    pairs = (line.partition("=") for line in _text(path).splitlines())
    return {name.strip().lower(): value.strip() for name, sign, value in pairs if sign}


def _version(where: Path, settings: dict[str, str]) -> str:
    """`3.11`: from its settings, else from the name of its library's folder."""
    told = settings.get("version") or settings.get("version_info") or ""
    if not told:
        told = next((path.parent.name.removeprefix("python") for path in _sites(where)), "")
    found = re.match(r"3\.\d+", told)
    return found[0] if found else ""


def _end(path: Path) -> str:
    """Where a chain of links ends, link by link: the end may be absent here."""
    for _ in range(LINKS_MAX):
        if not path.is_symlink():
            break
        path = Path(posixpath.normpath(path.parent / os.readlink(path)))
    return str(path)


def _links(where: Path, sites: Iterable[Path]) -> Iterator[tuple[str, str]]:
    for path in (where / "bin", where / "lib", *sites):
        if path.is_symlink():
            yield str(path.relative_to(where)), os.path.realpath(path)


def _names(folder: Path) -> Iterator[str]:
    try:
        with os.scandir(folder) as entries:
            yield from (entry.name for entry in entries)
    except OSError:
        return


def _modules(name: str) -> Iterator[str]:
    """What an entry of a site-packages folder lets a script import."""
    if name.endswith((".dist-info", ".egg-info", ".pth", ".data")) or name.startswith((".", "~")):
        return
    if name == "__pycache__":
        return
    stem, dot, ending = name.partition(".")
    if not dot or ending == "py" or ending.endswith("so"):
        yield stem


def _top_levels(site: Path, names: Iterable[str]) -> Iterator[str]:
    """What editable installs say they bring."""
    for name in names:
        if name.endswith(".dist-info"):
            yield from _text(site / name / "top_level.txt").split()


def _pth_lines(site: Path) -> Iterator[str]:
    """Folders that .pth files add, absolute. Lines of code are left alone."""
    for name in islice(_names(site), ENTRIES_MAX):
        if name.endswith(".pth"):
            for line in _text(site / name).splitlines():
                text = line.strip()
                if text and not text.startswith(("#", "import ", "import\t")):
                    yield posixpath.normpath(site / text)


def _made_for(where: Path) -> str:
    """The folder that its scripts were written for, "" where none says."""
    for name in SCRIPTS:
        head = _text(where / "bin" / name)[:4000]
        found = _HOME.search(head)
        if (
            found
            and found[1] != "/usr/bin/env"
            and found[1] != "/bin/sh"
            and not found[1].startswith("/bin/")
        ):
            return found[1]
    return ""


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(BYTES_MAX).decode("utf-8", "replace")
    except OSError:
        return ""
