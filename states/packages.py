"""Whether a staged package set is whole: every requirement, and everything that those require, offline (RULES D2).

No resolver: of each name the newest staged version is taken that fits everything asked so far, and what it requires
is asked in turn, with the markers read for the TARGET (its Python, its platform), not for this machine. A name that
nothing staged satisfies is missing, with who asks for it. What is read is the packaging standards' own data: wheel
names, METADATA, requirement lines, the tables of a uv.lock; the reading of each is the `packaging` library's.

Never: ask an index; take this machine's Python for the target's; call half a set whole.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from packaging.markers import InvalidMarker, Marker
from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.tags import Tag, compatible_tags, cpython_tags
from packaging.utils import InvalidWheelFilename, NormalizedName, canonicalize_name, parse_wheel_filename
from packaging.version import InvalidVersion, Version

from states.assets import PLATFORM

GLIBC_MINORS = range(45, 4, -1)
"""glibc 2.x that manylinux names, newest first; an image's own is not known unless the request states it."""

LEGACY: Mapping[int, str] = {17: "manylinux2014", 12: "manylinux2010", 5: "manylinux1"}
NAMES_MAX = 3000
"""Packages that are followed."""


class Target(NamedTuple):
    """What the set is for. python: `3.11`; platform: `linux_x86_64`, or with the image's glibc
    `manylinux_2_28_x86_64`."""

    python: str
    platform: str = "linux_x86_64"

    @property
    def arch(self) -> str:
        found = PLATFORM.fullmatch(self.platform)
        return found["arch"] if found else "x86_64"

    def environment(self) -> dict[str, str]:
        """The values of markers on the target; nothing of this machine is in it."""
        return {
            "implementation_name": "cpython",
            "implementation_version": f"{self.python}.0",
            "os_name": "posix",
            "platform_machine": self.arch,
            "platform_python_implementation": "CPython",
            "platform_release": "",
            "platform_system": "Linux",
            "platform_version": "",
            "python_full_version": f"{self.python}.0",
            "python_version": self.python,
            "sys_platform": "linux",
            "extra": "",
        }

    def tags(self) -> frozenset[Tag]:
        """Every wheel tag that the target takes."""
        major, minor = (int(part) for part in self.python.split(".")[:2])
        platforms = list(_platforms(self.platform))
        return frozenset(
            (
                *cpython_tags((major, minor), platforms=platforms),
                *compatible_tags((major, minor), f"cp{major}{minor}", platforms),
            )
        )


def _platforms(platform: str) -> Iterator[str]:
    found = PLATFORM.fullmatch(platform)
    arch = found["arch"] if found else platform.removeprefix("linux_")
    if found is not None and found["libc"] == "musllinux":
        yield from (f"musllinux_1_{minor}_{arch}" for minor in range(int(found["minor"]), -1, -1))
    else:
        newest = int(found["minor"]) if found is not None and found["minor"] else max(GLIBC_MINORS)
        for minor in (minor for minor in GLIBC_MINORS if minor <= newest):
            yield f"manylinux_2_{minor}_{arch}"
            if minor in LEGACY:
                yield f"{LEGACY[minor]}_{arch}"
    yield f"linux_{arch}"


class Staged(NamedTuple):
    """One package that is there. tags: of a wheel's file name, None for one that is installed. requires: the lines
    of Requires-Dist. file: what it was read from. sdist: a source archive, which has to be built first."""

    name: NormalizedName
    version: Version
    requires: tuple[str, ...] = ()
    requires_python: str = ""
    tags: frozenset[Tag] | None = None
    file: str = ""
    sdist: bool = False


class Missing(NamedTuple):
    """One requirement that nothing staged satisfies. why: what is staged under its name, and why it does not do."""

    name: str
    asked: str
    by: str
    why: Literal["absent", "version", "platform", "python", "source"]
    there: str = ""

    @property
    def words(self) -> str:
        """As a person reads it: `scipy>=1.9 (for scikit-learn; only 1.7.0 is staged)`."""
        said = {
            "absent": "",
            "version": f"only {self.there} is staged",
            "platform": f"{self.there} is for another platform",
            "python": f"{self.there} is for another Python",
            "source": f"{self.there} is a source archive, which would have to be built",
        }[self.why]
        reasons = "; ".join(part for part in (f"for {self.by}" if self.by else "", said) if part)
        return f"{self.asked} ({reasons})" if reasons else self.asked


class Closure(NamedTuple):
    """complete: nothing is missing and everything was understood. unread: lines that no standard covers."""

    missing: tuple[Missing, ...]
    chosen: Mapping[str, str]
    unread: tuple[str, ...] = ()

    @property
    def complete(self) -> bool:
        return not self.missing and not self.unread


def staged_wheel(file: str, metadata: str) -> Staged | None:
    """A wheel by its file name and the text of its METADATA; None for a name that is no wheel's."""
    try:
        name, version, _, tags = parse_wheel_filename(file.rsplit("/", 1)[-1])
    except (InvalidWheelFilename, InvalidVersion):
        return None
    fields = headers(metadata)
    python = next(iter(fields.get("requires-python", ())), "")
    return Staged(name, version, tuple(fields.get("requires-dist", ())), python, tags, file)


def installed(metadata: str) -> Staged | None:
    """An installed package by the text of its METADATA; None where it has no name and version."""
    fields = headers(metadata)
    try:
        name, version = canonicalize_name(fields["name"][0]), Version(fields["version"][0])
    except (KeyError, InvalidVersion):
        return None
    return Staged(name, version, tuple(fields.get("requires-dist", ())))


def source_archive(file: str) -> Staged | None:
    """An sdist by its name, `name-version.tar.gz`: it is no part of a set that can be installed offline."""
    stem = re.fullmatch(r"(?:.*/)?(?P<name>[\w.-]+?)-(?P<version>\d[\w.!+]*)\.(?:tar\.gz|zip)", file)
    try:
        return stem and Staged(
            canonicalize_name(stem["name"]), Version(stem["version"]), file=file, sdist=True
        )
    except InvalidVersion:
        return None


def headers(metadata: str) -> dict[str, list[str]]:
    """The header fields of METADATA by lower-case name; the description after the blank line is not read."""
    found: dict[str, list[str]] = {}
    for line in metadata.replace("\r\n", "\n").split("\n\n", 1)[0].splitlines():
        name, sign, value = line.partition(":")
        if sign and not line[:1].isspace():
            found.setdefault(name.strip().lower(), []).append(value.strip())
    return found


# --- requirements ----------------------------------------------------------------------------------------------


class Wanted(NamedTuple):
    """Requirement lines, and those that no standard covers (`-e .`, a URL, a file that is read in)."""

    lines: tuple[str, ...]
    unread: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    """Files that it reads in by `-r`, relative to its own folder."""


def requirement_lines(text: str) -> Wanted:
    """The lines of a requirements.txt: comments, hashes and options off, continuation lines joined."""
    lines: list[str] = []
    unread: list[str] = []
    reads: list[str] = []
    for raw in re.sub(r"\\\r?\n", " ", text).splitlines():
        line = re.sub(r"(?:^|\s)#.*", "", raw).strip()
        line = re.sub(r"\s--(?:hash|config-settings|global-option)[= ]\S+", "", line).strip()
        read = re.fullmatch(r"(?:-r|--requirement)[ =]*(\S+)", line)
        if read:
            reads.append(read[1])
        elif line.startswith("--") and not line.startswith("--editable"):
            continue  # where an index is, how to build: no requirement
        elif line.startswith(("-e", "--editable", ".", "/")) or "://" in line.partition(";")[0]:
            unread.append(line)
        elif line and not line.startswith("-"):
            (lines if _requirement(line) else unread).append(line)
    return Wanted(tuple(lines), tuple(unread), tuple(reads))


def locked_lines(text: str) -> Wanted:
    """What a uv.lock pins, as requirement lines: every package that its roots reach, with the markers on the way.

    Raises ValueError for a text that is no uv.lock.
    """
    try:
        tables = tomllib.loads(text).get("package", [])
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"this is no uv.lock: {error}") from None
    roots = [table for table in tables if {"virtual", "editable"} & set(table.get("source", {}))]
    lines: list[str] = []
    done: set[tuple[str, str, str]] = set()
    ahead: list[tuple[dict[str, Any], str, str]] = [(root, "", "") for root in roots]
    while ahead and len(done) < NAMES_MAX:
        table, extra, markers = ahead.pop(0)
        needs = (
            table.get("dependencies", [])
            if not extra
            else table.get("optional-dependencies", {}).get(extra, [])
        )
        for need in needs:
            marker = " and ".join(f"({part})" for part in (markers, need.get("marker", "")) if part)
            for found in _locked(tables, need):
                keys = [(found["name"], one, marker) for one in ("", *need.get("extra", ()))]
                ahead += [
                    (found, one, marker) for _, one, _ in keys if (found["name"], one, marker) not in done
                ]
                if keys[0] not in done:
                    lines.append(f"{found['name']}=={found['version']}" + (f" ; {marker}" if marker else ""))
                done.update(keys)
    if not roots:
        lines = [f"{table['name']}=={table['version']}" for table in tables if "version" in table]
    return Wanted(tuple(dict.fromkeys(lines)))


def _locked(tables: Sequence[Mapping[str, Any]], need: Mapping[str, Any]) -> list[dict[str, Any]]:
    named = [dict(table) for table in tables if table.get("name") == need.get("name") and "version" in table]
    exact = [table for table in named if table["version"] == need.get("version", table["version"])]
    return exact


def _requirement(line: str) -> Requirement | None:
    try:
        return Requirement(line)
    except InvalidRequirement:
        return None


# --- the closure -----------------------------------------------------------------------------------------------


def closure(wanted: Wanted, staged: Iterable[Staged], target: Target) -> Closure:
    """Everything that the lines need, against what is staged. Each missing name is told once, with who asks first."""
    shelf: dict[str, list[Staged]] = {}
    for one in staged:
        shelf.setdefault(one.name, []).append(one)
    return _Walk(shelf, target).of(wanted)


class _Walk:
    """One walk over the requirements, breadth first."""

    def __init__(self, shelf: Mapping[str, Sequence[Staged]], target: Target) -> None:
        self.shelf, self.target = shelf, target
        self.tags, self.environment = target.tags(), target.environment()
        self.asked: dict[str, SpecifierSet] = {}
        self.missing: dict[str, Missing] = {}
        self.chosen: dict[str, Staged] = {}

    def of(self, wanted: Wanted) -> Closure:
        ahead = [(need, "", "") for line in wanted.lines if (need := _requirement(line))]
        done: set[tuple[str, str]] = set()
        unread = list(wanted.unread)
        while ahead and len(done) < NAMES_MAX:
            need, by, extra = ahead.pop(0)
            if not self._applies(need.marker, extra) or need.url:
                unread += [str(need)] if need.url and self._applies(need.marker, extra) else []
                continue
            found = self._take(need, by)
            if found is None:
                continue
            for wish in ("", *need.extras):
                if (key := (f"{found.name}=={found.version}", wish)) not in done:
                    done.add(key)
                    ahead += [
                        (inner, need.name, wish) for line in found.requires if (inner := _requirement(line))
                    ]
        if ahead:
            unread.append(f"more than {NAMES_MAX} packages")
        chosen = {name: str(one.version) for name, one in sorted(self.chosen.items())}
        return Closure(tuple(self.missing.values()), chosen, tuple(unread))

    def _applies(self, marker: Marker | None, extra: str) -> bool:
        if marker is None:
            return not extra
        try:
            plain = marker.evaluate(self.environment)
            return not plain and marker.evaluate({**self.environment, "extra": extra}) if extra else plain
        except (InvalidMarker, ValueError):
            return True

    def _take(self, need: Requirement, by: str) -> Staged | None:
        """The newest staged version that fits all that was asked of its name so far; else it is missing."""
        name = canonicalize_name(need.name)
        self.asked[name] = self.asked.get(name, SpecifierSet()) & need.specifier
        there = self.shelf.get(name, ())
        fitting = [one for one in there if self._fits(one) is None and self._satisfies(one)]
        if fitting:
            self.chosen[name] = max(fitting, key=lambda one: one.version)
            return self.chosen[name]
        self.chosen.pop(name, None)
        if name not in self.missing:
            self.missing[name] = self._lack(need, by, there)
        return None

    def _satisfies(self, one: Staged) -> bool:
        return self.asked[one.name].contains(one.version, prereleases=True)

    def _fits(self, one: Staged) -> Literal["source", "platform", "python"] | None:
        if one.sdist:
            return "source"
        if one.tags is not None and not one.tags & self.tags:
            same = any(tag.platform in {mine.platform for mine in self.tags} for tag in one.tags)
            return "python" if same else "platform"
        try:
            fits = SpecifierSet(one.requires_python).contains(f"{self.target.python}.0", prereleases=True)
        except InvalidSpecifier:
            return None
        return None if fits else "python"

    def _lack(self, need: Requirement, by: str, there: Sequence[Staged]) -> Missing:
        asked = f"{need.name}{self.asked[canonicalize_name(need.name)]}"
        if not there:
            return Missing(need.name, asked, by, "absent")
        right = [one for one in there if self._satisfies(one)]
        if not right:
            return Missing(
                need.name, asked, by, "version", ", ".join(sorted({str(one.version) for one in there}))
            )
        first = max(right, key=lambda one: one.version)
        return Missing(need.name, asked, by, self._fits(first) or "version", first.file.rsplit("/", 1)[-1])
