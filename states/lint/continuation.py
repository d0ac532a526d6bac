"""Line continuations that break: a blank behind the backslash, a backslash that is missing, a comment in between, one
too many (RULES C11). The command ends early, and its other options are run as commands of their own.

Never: object to a backslash inside a quoted text or a here-document.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from states.lint.facts import Run, Unit, Walked
from states.lint.finding import Finding
from states.lint.shell import Command, all_scripts

_MEND = "End every line of the command but the last with a blank and a backslash, with nothing behind it."
_TRAILING = re.compile(r"(?!\s*#).*\S[ \t]+\\[ \t]+$|\\[ \t]+$")
_GLUED = re.compile(r"[^\s\\]\\$")
_SWALLOWED = re.compile(r"echo|export|wait|exit|source|conda|module|cd|fi|done|mkdir|cp|rm|deactivate|set")
_ARGUMENT = re.compile(r"[A-Za-z_][\w]*(?:[./][\w]+)+=\S*|\+{1,2}[\w./]+=\S*")


def find(walked: Walked) -> Iterator[Finding]:
    """One finding a line, at the line that should have been mended."""
    for unit in walked.units:
        said: set[int] = set()
        for local, why in _unit(unit):
            line = unit.at(local)
            if line not in said:
                said.add(line)
                yield Finding("broken_continuation", "refuse", line, why, _MEND, unit.file)


def _unit(unit: Unit) -> Iterator[tuple[int, str]]:
    lines = unit.text.split("\n")
    starts = {run.command.line: run for run in unit.runs if run.command.words}
    for local, run in starts.items():
        if _is_rest(run):
            yield _before(lines, local), "the command ends here; the next line is run as a command of its own"
    for run in unit.runs:
        yield from _inside(run, lines)
    yield from _lone_settings(unit, lines)


def _is_rest(run: Run) -> bool:
    """A command whose name is an option or an override: the rest of the one before."""
    first = run.command.words[0].shown
    return (first.startswith("-") and len(first) > 1) or _ARGUMENT.fullmatch(first) is not None


def _before(lines: list[str], local: int) -> int:
    """The line that broke it: a comment behind a backslash, a backslash with a blank, else the line before."""
    at = local - 1
    while at > 1 and (not lines[at - 1].strip() or lines[at - 1].lstrip().startswith("#")):
        if lines[at - 1].lstrip().startswith("#") and lines[at - 2].rstrip().endswith("\\"):
            return at
        at -= 1
    return max(at, 1)


def _inside(run: Run, lines: list[str]) -> Iterator[tuple[int, str]]:
    """Breaks that leave one command: glued words, words of the next command, a blank behind the backslash."""
    words, end = run.command.words, run.command.end_line
    last = lines[end - 1] if words and end < len(lines) and "\n" not in words[-1].raw else ""
    if _TRAILING.match(last) and lines[end].strip():
        yield end, "a blank behind the backslash: the line does not go on"
    for n, word in enumerate(words):
        before = words[n - 1] if n else None
        if before is None or word.line <= before.line or word.line > len(lines) or "\n" in before.raw:
            continue
        text = lines[word.line - 1]
        if _GLUED.search(lines[word.line - 2]) and text.startswith("-"):
            yield word.line - 1, "no blank before the backslash: two words become one"
        indent, own = _indent(text), _indent(lines[run.command.line - 1])
        if n >= 2 and _SWALLOWED.fullmatch(word.raw) and indent <= own and text.lstrip().startswith(word.raw):
            yield word.line - 1, f"the backslash makes `{word.raw}` an argument of this command"


def _indent(text: str) -> int:
    return len(text) - len(text.lstrip(" \t"))


def _lone_settings(unit: Unit, lines: list[str]) -> Iterator[tuple[int, str]]:
    """`lr=0.1` on a deeper line right behind a command of several lines: an override that was cut off."""
    for script in all_scripts(unit.script):
        nodes = list(script.nodes)
        for before, node in pairwise(nodes):
            if not (isinstance(node, Command) and isinstance(before, Command)):
                continue
            if node.words or not before.words or before.keyword or before.end_line + 1 != node.line:
                continue
            if node.line <= len(lines) and _indent(lines[node.line - 1]) > _indent(lines[before.line - 1]):
                yield before.end_line, "the command ends here; the next line only sets a variable"
