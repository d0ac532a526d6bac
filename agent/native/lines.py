"""The one submit line of a shell file: `rjob submit`, `ray job submit` or `sbatch`, as the words it stands for.

A file is read, never run: variables that the file itself sets to plain text before the line are put in, and a word
that only the running shell could know is a fault that says where it stands. Two lines, or one in a loop, are several
runs and therefore refused.

Never: run anything; take a variable of this process for one of the file's.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from agent.native.converted import Kind
from agent.shellparse import parse
from agent.yamlfile import UserFileError
from states.lint.shell import (
    AndOr,
    Command,
    Function,
    Group,
    If,
    Loop,
    Node,
    Not,
    Pipeline,
    Script,
)
from states.lint.words import Value, resolve

MAY_HOLD_ONE = re.compile(r"\b(?:rjob\s+submit|ray\s+job\s+submit|sbatch)\b")
BEFORE_A_LINE = (("uv", "run"), ("exec",), ("command",), ("time",))
"""Words that may stand in front of a submit and change nothing about it."""
HOW = "write it out, or give the line after `wk run --`, where your shell fills it in"


class Line(NamedTuple):
    """words: from the program on. line: where it begins. notes: what stands beside it and is not carried out."""

    kind: Kind
    words: tuple[str, ...]
    line: int
    notes: tuple[str, ...] = ()


class _Place(NamedTuple):
    command: Command
    several: bool


def kind_of(words: Sequence[str]) -> Kind | None:
    """What these words submit; None if they do something else."""
    words = the_words(words)
    program = posixpath.basename(words[0]) if words else ""
    if program == "rjob" and words[1:2] == ("submit",):
        return "rjob"
    if program == "ray" and words[1:3] == ("job", "submit"):
        return "ray"
    return "sbatch" if program == "sbatch" else None


def the_words(words: Sequence[str]) -> tuple[str, ...]:
    """The words without what may stand in front of them."""
    for before in BEFORE_A_LINE:
        if tuple(words[: len(before)]) == before:
            return tuple(words[len(before) :])
    return tuple(words)


def kind_in(text: str) -> Kind | None:
    """What the first submit line of a shell file submits; None where there is none."""
    if not MAY_HOLD_ONE.search(text):
        return None
    return next((kind for place in _submits(parse(text)) if (kind := _kind(place.command))), None)


def the_line(text: str, *, where: str) -> Line:
    """The one submit line. Raises UserFileError where there are several, or a word of it is not known."""
    script = parse(text)
    places = list(_submits(script))
    if len(places) > 1:
        lines = ", ".join(str(place.command.line) for place in places)
        said = f"{where}: it submits at lines {lines}, and one run is one job; give one of them after `wk run --`"
        raise UserFileError(said)
    if not places:
        raise UserFileError(f"{where}: there is no submit line in it")
    command, several = places[0]
    if several:
        said = "the submit stands in a loop: one run each; give the line after `wk run --` for each"
        raise UserFileError(f"{where}:{command.line}: {said}")
    kind = _kind(command)
    assert kind is not None
    words = the_words(_known(command, _settings(script, command.line), where))
    return Line(kind, words, command.line, tuple(_beside(script, command)))


def _kind(command: Command) -> Kind | None:
    return kind_of([word.literal or "" for word in command.words[:6]])


def _known(command: Command, settings: Mapping[str, Value], where: str) -> list[str]:
    words, faults = [], []
    for word in command.words:
        for arg in resolve(word, settings, ()):
            words.append(arg.text)
            if not arg.known:
                raw = " ".join(word.raw.split())
                shown = raw if len(raw) <= 60 else raw[:57] + "..."
                faults.append(
                    f"{where}:{arg.line}: {shown}: only the shell that runs the file knows it; {HOW}"
                )
    if command.redirects and any(redirect.body for redirect in command.redirects):
        faults.append(f"{where}:{command.line}: the script comes by `<<`; write it to a file, and give that")
    if faults:
        raise UserFileError(*faults)
    return words


def _settings(script: Script, before: int) -> dict[str, Value]:
    """What the file sets at its top, above the line."""
    found: dict[str, Value] = {}
    for node in script.nodes:
        if not isinstance(node, Command) or node.line >= before or (node.words and not node.keyword):
            continue
        for given in node.assignments:
            if given.adds or given.array or not given.words:
                found.pop(given.name, None)
                continue
            args = tuple(arg for word in given.words for arg in resolve(word, found, ()))
            found[given.name] = Value(given.words, args, given.line, ())
    return found


def _beside(script: Script, command: Command) -> Iterator[str]:
    """What else the file does, which is not part of the run."""
    if command.redirects:
        yield "where the line's own output goes is left out: what it prints is no log"
    others = {one.name for one, _ in _commands(script.nodes, False) if one.name and one is not command}
    if others := others - {"set", "export", "cd", "source", ".", "echo"}:
        yield f"only line {command.line} is taken: what else the file does ({', '.join(sorted(others))}) is not done"


def _submits(script: Script) -> Iterator[_Place]:
    return (place for place in _commands(script.nodes, False) if _kind(place.command) is not None)


def _commands(nodes: Iterator[Node] | Sequence[Node], several: bool) -> Iterator[_Place]:
    """Every simple command, functions' bodies included. several: it is inside a loop."""
    for node in nodes:
        match node:
            case Command():
                yield _Place(node, several)
            case Pipeline():
                yield from _commands(node.parts, several)
            case AndOr():
                yield from _commands((node.left, node.right), several)
            case Not():
                yield from _commands((node.node,), several)
            case Loop():
                yield from _commands(node.body.nodes, True)
            case Group() | Function():
                yield from _commands(node.body.nodes, several)
            case If():
                for _, body in node.branches:
                    yield from _commands(body.nodes, several)
            case _:
                pass
