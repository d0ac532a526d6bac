"""Words of a shell command out of the parser's nodes: their parts, with quotes and backslashes taken away.

Never: expand anything; raise on any node.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TypeAlias

from states.lint.shell import Part, Quote, Script, Word

if TYPE_CHECKING:
    from tree_sitter import Node as Raw

ReadScript: TypeAlias = "Callable[[list[Raw], int], Script]"

DEEP_MAX = 40
"""Nesting that is followed."""


def text_of(raw: Raw) -> str:
    """The node's source."""
    return (raw.text or b"").decode("utf-8", "replace")


def line_of(raw: Raw) -> int:
    """The line it begins at, from 1."""
    return raw.start_point.row + 1


def word(raw: Raw, script: ReadScript) -> Word:
    """One word. script: reads the statements of a command substitution, nested this deep."""
    return Word(tuple(_parts(raw, "", 0, script)), line_of(raw), text_of(raw))


def _parts(raw: Raw, quote: Quote, depth: int, script: ReadScript) -> Iterator[Part]:
    kind, line, text = raw.type, line_of(raw), text_of(raw)
    if depth > DEEP_MAX:
        yield Part("other", text[:200], line, quote)
    elif kind == "string":
        yield from _string(raw, depth, script)
    elif kind == "raw_string":
        yield Part("text", text[1:-1], line, "'")
    elif kind == "ansi_c_string":
        yield Part("text", text[2:-1].replace("\\n", "\n").replace("\\'", "'"), line, "'")
    elif kind in ("concatenation", "command_name", "translated_string"):
        for child in raw.children:
            if child.type != "$":
                yield from _parts(child, quote, depth + 1, script)
    elif kind == "simple_expansion":
        yield Part("var", text[1:], line, quote)
    elif kind == "expansion":
        yield _expansion(raw, quote, depth, script)
    elif kind == "command_substitution":
        yield Part("command", text, line, quote, script=script(raw.children[1:-1], depth + 20))
    elif kind in ("arithmetic_expansion", "process_substitution"):
        yield Part("other", text, line, quote)
    else:
        yield Part("text", _unescaped(text), line, quote)


def _string(raw: Raw, depth: int, script: ReadScript) -> Iterator[Part]:
    """Between double quotes. Text that the grammar leaves between its own pieces is text too."""
    source, base = raw.text or b"", raw.start_byte
    at, line = 1, line_of(raw)
    empty = True
    for child in raw.children:
        if child.type in ("string_content", '"', "$") or child.is_missing or child.type == "ERROR":
            continue
        gap = source[at : child.start_byte - base].decode("utf-8", "replace")
        if gap:
            yield Part("text", _unescaped(gap, quoted=True), line, '"')
        yield from _parts(child, '"', depth + 1, script)
        at, line, empty = child.end_byte - base, child.end_point.row + 1, False
    closed = len(source) > 1 and source.endswith(b'"')
    gap = source[at : len(source) - 1 if closed else len(source)].decode("utf-8", "replace")
    if gap or empty:
        yield Part("text", _unescaped(gap, quoted=True), line, '"')


def _expansion(raw: Raw, quote: Quote, depth: int, script: ReadScript) -> Part:
    """`${name}`, `${name:-word}`, `${name[@]}`, `${#name}`."""
    name, index, operator = "", "", ""
    operand: list[Part] = []
    for child in raw.named_children:
        if child.type in ("variable_name", "special_variable_name") and not name:
            name = text_of(child)
        elif child.type == "subscript" and not name:
            inner, place = child.child_by_field_name("name"), child.child_by_field_name("index")
            name, index = text_of(inner) if inner else "", text_of(place) if place else ""
        else:
            operand.extend(_parts(child, quote, depth + 1, script))
    for child in raw.children:
        if not child.is_named and child.type not in ("${", "}", "["):
            operator += child.type
    return Part("var", name or text_of(raw)[2:-1], line_of(raw), quote, operator[:8], tuple(operand), index)


def _unescaped(text: str, *, quoted: bool = False) -> str:
    """Backslashes taken away as the shell does. One before a line's end stays: it keeps the lines countable."""
    if "\\" not in text:
        return text
    return re.sub(r'\\(["$`\\])' if quoted else r"\\([^\n])", r"\1", text)
