"""Quotes that do not do what they seem to: typographic marks, quotes never closed, `$` and `~` kept from expanding.

Never: object to marks in comments, in what is printed, or in a text for an inner shell.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from states.lint.facts import Run, Unit, Walked
from states.lint.finding import Finding, Level
from states.lint.work import is_work

_MARKS = re.compile("[“”„‟‘’‚‛«»]")
_DASH = re.compile("[–—―]{1,2}[A-Za-z]")
_SPACES = "\u00a0\u2002\u2003\u2009\u200b\u3000\ufeff"
_MEND = "Type plain quotes and hyphens; text copied from a document or a chat brings others."
_MEND_EXPAND = "Use double quotes, or $HOME in place of ~."


def find(walked: Walked) -> Iterator[Finding]:
    """One finding a line."""
    for unit in walked.units:
        said: set[int] = set()
        for line, level, why, mend in (*_unclosed(unit), *(f for run in unit.runs for f in _run(run))):
            if line not in said:
                said.add(line)
                yield Finding("quoting", level, line, why, mend, unit.file)


def _unclosed(unit: Unit) -> Iterator[tuple[int, Level, str, str]]:
    for broken in unit.script.broken[:3]:
        marks = broken.source.replace('\\"', "")
        for mark in "\"'":
            if broken.source == f"missing {mark}" or marks.count(mark) % 2:
                yield unit.at(broken.line), "warn", "a quote is never closed", f"Close it with {mark}."
                return


def _run(run: Run) -> Iterator[tuple[int, Level, str, str]]:
    if run.name in ("echo", "printf") or run.code:
        return
    words = list(run.args)
    values = list(run.settings.values())
    for arg in (*words, *values):
        raw = arg.word.raw if arg.word is not None else arg.text
        if run.outer and "\n" in raw:
            continue
        if _MARKS.search(raw) and not _quoted_prose(raw):
            yield arg.line, "warn", "typographic quotes are ordinary characters to the shell", _MEND
        elif _DASH.match(raw):
            yield arg.line, "warn", "a typographic dash begins no option", _MEND
        elif any(c in raw for c in _SPACES) and raw[:1] not in "\"'":
            yield arg.line, "warn", "a blank that is no plain blank is part of the word", _MEND
    if not is_work(run):
        return
    for arg in run.args[1:]:
        for part in arg.word.parts if arg.word is not None else ():
            if part.kind != "text" or "\n" in part.text:
                continue
            if part.quote == "'" and re.fullmatch(r"\$\{?[A-Za-z_]\w*\}?(?:/[\w./-]*)?", part.text):
                yield arg.line, "note", "single quotes keep the variable from expanding", _MEND_EXPAND
            elif part.quote and part.text.startswith("~/"):
                yield arg.line, "note", "quotes keep `~` from expanding", _MEND_EXPAND


def _quoted_prose(raw: str) -> bool:
    """A sentence inside plain quotes may hold any mark."""
    return raw[:1] in "\"'" and " " in raw
