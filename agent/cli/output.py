"""What every command shares: exit codes, printing, `--json`, and errors that say what to do next.

With `--json` a command prints one JSON document on stdout (a stream prints one a line), errors included; the words
for people go to stderr. What a log, a cluster or a person wrote cannot move the cursor or change a colour: escape
sequences and control characters are taken out of everything that is printed.

Never: print a value that looks like a credential; import what only some commands need.
"""

from __future__ import annotations

import json
import os
import re
import sys
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from agent.app import App


class Exit(IntEnum):
    """The exit codes of every command."""

    ok = 0
    """Done; for a run that was followed to its end: it succeeded."""
    internal = 1
    """A fault of Watchkeeper itself."""
    usage = 2
    """The command line, the request or a setting is wrong."""
    failed = 3
    """The run failed; for `doctor` and `scenario run`: something is not as it should be."""
    not_done = 4
    """The run was stopped, not submitted, or its outcome cannot be told."""
    refused = 5
    """Understood and not done: it must not be, or not now."""
    not_found = 6
    """There is no such run, question, job or entry."""
    unreachable = 7
    """The cluster could not be asked, or its answer could not be read."""
    interrupted = 130
    """Ctrl-C. A run that was followed goes on, and is watched."""


CODES_IN_WORDS = (
    "Exit codes: 0 done, or the run succeeded. 1 internal error. 2 wrong usage, request or setting. "
    "3 the run failed. 4 the run was stopped, not submitted, or is unknown. 5 refused. 6 not found. "
    "7 cluster unreachable. 130 Ctrl-C."
)

JsonFlag = Annotated[
    bool, typer.Option("--json", help="One JSON document on stdout instead of text (a stream: one a line).")
]
ClusterName = Annotated[
    str, typer.Option("--cluster", help="A configured cluster, if not the default one.", show_default=False)
]

BY_NAME: Mapping[str, Exit] = {
    "agent.yamlfile.UserFileError": Exit.usage,
    "agent.readfile.ReadError": Exit.usage,
    "states.policy.PolicyError": Exit.usage,
    "agent.service.Refusal": Exit.refused,
    "agent.secrets.SecretsError": Exit.refused,
    "agent.people.PeopleError": Exit.refused,
    "agent.web.server.Taken": Exit.refused,
    "agent.background.NotStarted": Exit.internal,
    "agent.store.Unknown": Exit.not_found,
    "agent.store.Compacted": Exit.refused,
    "agent.backup.BackupError": Exit.refused,
    "agent.archive.ArchiveError": Exit.refused,
    "agent.clusters.base.NotThere": Exit.not_found,
    "agent.clusters.base.Refused": Exit.refused,
    "agent.clusters.base.Unreachable": Exit.unreachable,
    "agent.clusters.base.Unclear": Exit.unreachable,
}
"""Errors that are for people, by their full names: looking one up imports nothing."""

BLANK = " "

_ESCAPE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
_UNSAFE = frozenset({"Cc", "Cf", "Cs"})
_UNSEEN = _UNSAFE | {"Zl", "Zp"}


class Fault(Exception):
    """An error of a command itself, with its exit code. The message says what to do next."""

    def __init__(self, code: Exit, message: str) -> None:
        super().__init__(message)
        self.code = code


_opened: list[App] = []
"""The app of the command that runs, once there is one: an error's words may hold what only it knows as secret."""


def opened() -> App:
    """The app of this environment. Raises UserFileError for settings that are wrong."""
    from agent.app import build

    _opened[:] = [build()]
    return _opened[-1]


def safe(text: str) -> str:
    """The text without escape sequences, control, direction and invisible characters; lines and tabs stay (I2)."""
    bare = _ESCAPE.sub("", text)
    if bare.isascii() and bare.replace("\n", "").replace("\t", "").isprintable():
        return bare
    return "".join(s for s in bare if s in "\n\t" or unicodedata.category(s) not in _UNSAFE)


def say(*texts: str, as_it_is: bool = False) -> None:
    """Lines for a person, on stdout. Empty texts are left out; BLANK is a line with nothing on it.

    A terminal that is too narrow gets them broken at spaces, unless a log's lines are to stay as they are.
    """
    lines = [line for text in texts if text for line in safe(text).splitlines()]
    if not as_it_is and sys.stdout.isatty():
        lines = [part for line in lines for part in broken(line, columns())]
    shown = [line.rstrip() for line in lines]
    if shown:
        sys.stdout.write("\n".join(shown) + "\n")
        sys.stdout.flush()


def hint(*lines: str) -> None:
    """Lines for a person that are no result, on stderr. A terminal that is gone is no error."""
    try:
        width = columns() if sys.stderr.isatty() else 0
        shown = [
            part for line in lines if line for part in (broken(safe(line), width) if width else [safe(line)])
        ]
        sys.stderr.write("".join(f"{line}\n" for line in shown))
        sys.stderr.flush()
    except OSError:
        pass


def emit(document: Any) -> None:
    """One JSON document on one line of stdout. What a terminal would not show is spelt out, so that it means the same
    to a program and does nothing to a terminal."""
    text = json.dumps(document, ensure_ascii=False, default=_plain_data)
    if not text.isprintable():
        text = "".join(json.dumps(s)[1:-1] if unicodedata.category(s) in _UNSEEN else s for s in text)
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def show(json_wanted: bool, document: Any, *lines: str) -> None:
    """The result of a command: its document, or its words."""
    if json_wanted:
        emit(document)
    else:
        say(*lines)


def table(head: Sequence[str], rows: Iterable[Sequence[str]], *, right: Iterable[int] = ()) -> list[str]:
    """Columns of text as wide as what is in them; the last one is not padded. right: columns set to the right."""
    cells = [[*head], *([safe(str(cell)).replace("\n", " ") for cell in row] for row in rows)]
    widths = [max(width_of(row[place]) for row in cells) for place in range(len(head))]
    to_right = set(right)
    return ["  ".join(_padded(row, widths, to_right)).rstrip() for row in cells]


def _padded(row: Sequence[str], widths: Sequence[int], to_right: set[int]) -> Iterable[str]:
    for place, cell in enumerate(row):
        gap = " " * (widths[place] - width_of(cell))
        yield gap + cell if place in to_right else cell + gap


def width_of(text: str) -> int:
    """Columns of a terminal: wide characters (Chinese) take two."""
    return sum(2 if unicodedata.east_asian_width(sign) in "WF" else 1 for sign in text)


def broken(line: str, width: int) -> list[str]:
    """The line broken at spaces, what follows set deeper; words longer than the width are left whole."""
    if width_of(line) <= width:
        return [line]
    margin = " " * (len(line) - len(line.lstrip()))
    rows = [margin]
    for word in line.split():
        joined = f"{rows[-1]} {word}" if rows[-1].strip() else rows[-1] + word
        if width_of(joined) <= width or not rows[-1].strip():
            rows[-1] = joined
        else:
            rows.append(f"{margin}  {word}")
    return rows


def columns() -> int:
    """Of the terminal; 80 where there is none."""
    import shutil

    return shutil.get_terminal_size((80, 24)).columns


def ago(seconds: float) -> str:
    """A short age for a column: `8s`, `12m`, `3h05`, `2d`."""
    whole = max(int(seconds), 0)
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m"
    if whole < 86_400:
        return f"{whole // 3600}h{whole % 3600 // 60:02d}"
    return f"{whole // 86_400}d"


# --- errors ------------------------------------------------------------------------------------------------


def report(error: BaseException, json_wanted: bool) -> int:
    """Say what went wrong and what to do next; the exit code."""
    code, message = _told(error)
    message = _hidden(message)
    if not message:  # only help was asked for, and has been printed
        return int(code)
    hint(*(f"wk: {line}" if number == 0 else line for number, line in enumerate(message.splitlines())))
    if json_wanted:
        emit({"error": {"code": code.name, "exit": int(code), "message": message}})
    return int(code)


def _told(error: BaseException) -> tuple[Exit, str]:
    if isinstance(error, Fault):
        return error.code, str(error)
    if isinstance(error, KeyboardInterrupt):
        return Exit.interrupted, "interrupted"
    if hasattr(error, "format_message") and getattr(error, "exit_code", None) == 2:
        words = str(error.format_message()).strip()
        return Exit.usage, f"{words}\n{_try_help(error)}" if words else ""
    for kind in type(error).__mro__:
        code = BY_NAME.get(f"{kind.__module__}.{kind.__qualname__}")
        if code is not None:
            return code, str(error)
    return Exit.internal, _internal(error)


def _try_help(error: Any) -> str:
    context = getattr(error, "ctx", None)
    return f"`{context.command_path} --help` shows how it is used." if context is not None else ""


def _internal(error: BaseException) -> str:
    """The trace without local variables (they may hold anything), and where to go with it."""
    import traceback

    trace = "".join(traceback.format_exception(error)).rstrip()
    return (
        f"an internal error: {type(error).__name__}: {error}\n{trace}\n"
        "Your runs are in the database and are not touched by this. `wk doctor` checks this installation."
    )


def _hidden(message: str) -> str:
    """Whatever is or looks like a credential is taken out; what a person typed wrongly may well be one."""
    from agent.redaction import Redactor

    try:
        redactor = _opened[-1].redactor if _opened else Redactor(())
    except Exception:  # the keys cannot be read, which may be what is being told
        redactor = Redactor(())
    return redactor.text(message)


def _plain_data(value: Any) -> Any:
    """What JSON has no word for: times as ISO 8601, paths and enumerations as text, models as their dump."""
    if isinstance(value, datetime):
        return value.isoformat()
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    if hasattr(value, "_asdict"):
        return value._asdict()
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, (Path, bytes)):
        return os.fsdecode(value)
    if isinstance(value, Iterable):
        return list(value)
    return str(value)
