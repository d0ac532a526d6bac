"""A shell script as a small neutral tree: what a parser leaves and every concern of the lint reads.

The parser itself is the caller's (`agent/shellparse.py`); this file knows no grammar. Lines count from 1 in the
text that was parsed. Text that is no shell at all stands as `Broken`, so that the rest can still be judged.

Never: expand, run or guess anything; that is `words.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

PartKind = Literal["text", "var", "command", "other"]
Quote = Literal["", "'", '"']


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a word. text: the literal text after its quotes are gone, a variable's name, or the source.

    operator and operand: of `${name:-operand}`; index: `@`, `*` or the subscript of an array element.
    """

    kind: PartKind
    text: str
    line: int
    quote: Quote = ""
    operator: str = ""
    operand: tuple[Part, ...] = ()
    index: str = ""
    script: Script | None = None


@dataclass(frozen=True, slots=True)
class Word:
    """One word of a command as it stands: `--x="$Y"/z` has three parts. raw: the source, quotes and all."""

    parts: tuple[Part, ...]
    line: int
    raw: str

    @property
    def literal(self) -> str | None:
        """The word's value where no expansion takes part, else None."""
        if any(part.kind != "text" for part in self.parts):
            return None
        return "".join(part.text for part in self.parts).replace("\\\n", "")

    @property
    def shown(self) -> str:
        """The value with every expansion left as it is written."""
        return "".join(p.text if p.kind != "var" else f"${{{p.text}}}" for p in self.parts).replace(
            "\\\n", ""
        )


@dataclass(frozen=True, slots=True)
class Assignment:
    """`NAME=word`, or `NAME=(words)` with array set."""

    name: str
    words: tuple[Word, ...]
    line: int
    array: bool = False
    adds: bool = False


@dataclass(frozen=True, slots=True)
class Redirect:
    """`2>&1`, `> file`, `<<EOF`. body: the text of a here-document, with the line it starts at."""

    operator: str
    target: Word | None
    line: int
    descriptor: str = ""
    body: str = ""
    body_line: int = 0
    expands: bool = False


@dataclass(frozen=True, slots=True)
class Command:
    """A simple command. word_0 may be missing: then the assignments are for the shell itself.

    keyword: `export`, `declare`, `local`, `readonly`, `typeset`, `unset` where it is one of these.
    """

    words: tuple[Word, ...]
    assignments: tuple[Assignment, ...]
    redirects: tuple[Redirect, ...]
    line: int
    end_line: int
    keyword: str = ""

    @property
    def name(self) -> str:
        """The literal first word without its folder, "" when there is none or it is an expansion."""
        literal = self.words[0].literal if self.words else None
        return literal.rsplit("/", 1)[-1] if literal else ""


@dataclass(frozen=True, slots=True)
class Test:
    """`[[ ... ]]`, `[ ... ]` or `(( ... ))`: a question, no work."""

    source: str
    line: int
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Pipeline:
    """`a | b | c`; its status is the last one's unless pipefail is set."""

    parts: tuple[Node, ...]
    line: int


@dataclass(frozen=True, slots=True)
class AndOr:
    """`left && right` or `left || right`."""

    left: Node
    operator: Literal["&&", "||"]
    right: Node
    line: int


@dataclass(frozen=True, slots=True)
class Not:
    """`! node`."""

    node: Node
    line: int


@dataclass(frozen=True, slots=True)
class Loop:
    """`for`, `while`, `until`. values: what a `for` goes through; condition: of the others."""

    kind: Literal["for", "while", "until"]
    name: str
    values: tuple[Word, ...]
    condition: Script | None
    body: Script
    line: int
    redirects: tuple[Redirect, ...] = ()


@dataclass(frozen=True, slots=True)
class If:
    """Branches with their conditions; the last condition is None for `else`. A `case` has no conditions."""

    branches: tuple[tuple[Script | None, Script], ...]
    line: int
    has_else: bool


@dataclass(frozen=True, slots=True)
class Group:
    """`{ ... }` or, with subshell set, `( ... )`."""

    body: Script
    subshell: bool
    line: int
    redirects: tuple[Redirect, ...] = ()


@dataclass(frozen=True, slots=True)
class Function:
    """A definition; nothing runs until it is called."""

    name: str
    body: Script
    line: int


@dataclass(frozen=True, slots=True)
class Broken:
    """Text that the parser could not place."""

    source: str
    line: int


Node: TypeAlias = Command | Test | Pipeline | AndOr | Not | Loop | If | Group | Function | Broken


@dataclass(frozen=True, slots=True)
class Item:
    """One statement of a list; background when it ends with `&`."""

    node: Node
    background: bool = False


@dataclass(frozen=True, slots=True)
class Script:
    """Statements in order."""

    items: tuple[Item, ...]
    broken: tuple[Broken, ...] = ()

    @property
    def nodes(self) -> Iterator[Node]:
        for item in self.items:
            yield item.node


def children(node: Node) -> Iterator[Node]:
    """The nodes directly below this one, in the order of the text; a function's body is not among them."""
    match node:
        case Pipeline():
            yield from node.parts
        case AndOr():
            yield node.left
            yield node.right
        case Not():
            yield node.node
        case Loop():
            yield from node.condition.nodes if node.condition else ()
            yield from node.body.nodes
        case If():
            for condition, body in node.branches:
                yield from condition.nodes if condition else ()
                yield from body.nodes
        case Group():
            yield from node.body.nodes
        case _:
            return


def commands(node: Node) -> Iterator[Command]:
    """Every simple command at or below the node, in the order of the text."""
    if isinstance(node, Command):
        yield node
    for child in children(node):
        yield from commands(child)


def all_scripts(script: Script) -> Iterator[Script]:
    """This list of statements and every list inside it: loops, branches, groups, functions."""
    yield script
    waiting: list[Node] = list(script.nodes)
    while waiting:
        node = waiting.pop()
        for inner in _bodies(node):
            yield from all_scripts(inner)
        if isinstance(node, (Pipeline, AndOr, Not)):
            waiting.extend(children(node))


def _bodies(node: Node) -> Iterator[Script]:
    match node:
        case Loop() | Group() | Function():
            if isinstance(node, Loop) and node.condition:
                yield node.condition
            yield node.body
        case If():
            for condition, body in node.branches:
                if condition:
                    yield condition
                yield body
        case _:
            return
