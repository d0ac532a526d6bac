"""The facts that the walk leaves and every concern reads: units of shell text, and the runs they start.

Never: hold a judgement.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from states.lint.launchers import Wrapper, program
from states.lint.shell import Command, Loop, Script
from states.lint.words import Arg, Env, Value, file_line


class Where(NamedTuple):
    """How a command stands. handler: right of `||`; condition: its status is asked; piped: programs after it."""

    loops: tuple[Loop, ...] = ()
    conditional: bool = False
    background: bool = False
    handler: bool = False
    condition: bool = False
    substitution: bool = False
    piped: tuple[str, ...] = ()
    subshell: bool = False


@dataclass(eq=False)
class Unit:
    """One shell text. lines: from its own lines to the file's. via: the wrappers around it. how: where it comes
    from. flags: letters and names the shell was started with. runs: what it starts, in order."""

    file: str
    script: Script
    text: str
    lines: tuple[int, ...]
    how: str
    via: tuple[Wrapper, ...] = ()
    flags: frozenset[str] = frozenset()
    runs: list[Run] = field(default_factory=list)
    env: dict[str, Value] = field(default_factory=dict)

    def at(self, local: int) -> int:
        """The line of the file."""
        return file_line(self.lines, local)


class Run(NamedTuple):
    """One program started. args: its own words from the program on (a script, a module's name, or `-c` code for
    Python). via: all wrappers, outermost first. settings: variables set in front of it. cwd: None if not known."""

    args: tuple[Arg, ...]
    via: tuple[Wrapper, ...]
    settings: Mapping[str, Arg]
    where: Where
    command: Command
    unit: Unit
    env: Env
    cwd: str | None
    python: bool = False
    module: bool = False
    code: bool = False
    outer: bool = False
    """What it starts is a shell text of its own: another unit, where that is known."""

    @property
    def outer_work(self) -> bool:
        """Whether it starts a shell text that is more than a read-in."""
        return self.outer and self.via[-1:] != () and self.via[-1].name not in ("source", "eval")

    @property
    def line(self) -> int:
        """The line at which the command stands in the file; in a manifest, its first word's."""
        if self.unit.how == "manifest" and self.args:
            return self.args[0].line
        return self.unit.at(self.command.line)

    @property
    def name(self) -> str:
        """The program: `python` for anything that Python runs."""
        return "python" if self.python else program(self.args)

    def path(self, text: str) -> str | None:
        """A path as this command sees it, from the folder the job starts in; None if that is not known."""
        if text.startswith("~/") or "$" in text:
            return None
        if text.startswith("/"):
            return text
        return None if self.cwd is None else posixpath.normpath(posixpath.join(self.cwd, text))


class PythonText(NamedTuple):
    """Python that the job runs. offset: lines of the file before its first. run: what starts it."""

    file: str
    text: str
    offset: int
    run: Run | None


class Walked(NamedTuple):
    """Everything that takes part."""

    units: tuple[Unit, ...]
    pythons: tuple[PythonText, ...]
    written: Mapping[str, tuple[str, str, int]]
    wanted: tuple[str, ...]
    cut: bool = False
    """More commands than are read."""

    @property
    def runs(self) -> list[Run]:
        """All runs of all units."""
        return [run for unit in self.units for run in unit.runs]
