"""Shell text into the neutral tree of `states/lint/shell.py`, by the tree-sitter grammar for bash.

The grammar goes on after an error, so a script with one bad quote is still judged elsewhere. Input is cut at
`CHARS_MAX`, nesting at `DEPTH_MAX`; what is deeper stands as `Broken`.

Never: run anything; raise on any text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

from states.lint.shell import (
    AndOr,
    Assignment,
    Broken,
    Command,
    Function,
    Group,
    If,
    Item,
    Loop,
    Node,
    Not,
    Part,
    Pipeline,
    Quote,
    Redirect,
    Script,
    Test,
    Word,
)

if TYPE_CHECKING:
    from tree_sitter import Node as Raw
    from tree_sitter import Parser

CHARS_MAX = 131_072
"""Characters of one script that are read; people write kilobytes."""

DEPTH_MAX = 40
"""Nesting that is followed."""

STATEMENTS_MAX = 4_000
"""Statements of one list that are read."""

WORDS_MAX = 1_000
"""Words of one command that are read."""

PARTS_MAX = 40
"""Commands of one pipe that are read."""

_KEYWORDS = frozenset({"export", "declare", "local", "readonly", "typeset"})
_TESTS = frozenset({"test_command", "arithmetic_expansion"})
_REDIRECTS = frozenset({"file_redirect", "heredoc_redirect", "herestring_redirect"})
_NAME = re.compile(r"[A-Za-z_]\w{0,80}", re.ASCII)


@cache
def _parser() -> Parser:
    import tree_sitter_bash
    from tree_sitter import Language, Parser

    return Parser(Language(tree_sitter_bash.language()))


def parse(text: str) -> Script:
    """The script as a tree. Lines count from 1. Raises nothing."""
    source = text[:CHARS_MAX].encode("utf-8", "replace")
    return _script(_parser().parse(source).root_node.children, 0)


def _text(raw: Raw) -> str:
    return (raw.text or b"").decode("utf-8", "replace")


def _line(raw: Raw) -> int:
    return raw.start_point.row + 1


def _script(raws: list[Raw], depth: int) -> Script:
    """Statements in a row; `&` marks the one before it."""
    items: list[Item] = []
    broken: list[Broken] = []
    for raw in raws[:STATEMENTS_MAX]:
        if raw.type == "&":
            if items:
                items[-1] = Item(items[-1].node, background=True)
        elif raw.is_missing:
            broken.append(Broken(f"missing {raw.type}", _line(raw)))
        elif raw.type == "ERROR":
            broken.append(Broken(_text(raw), _line(raw)))
            inner = _script(raw.children, depth + 1) if depth < DEPTH_MAX else Script(())
            items.extend(inner.items)
        elif raw.is_named and raw.type not in ("comment", "heredoc_body", "heredoc_end", "file_descriptor"):
            node = _node(raw, depth)
            if node is not None:
                items.append(Item(node))
    return Script(tuple(items), tuple(broken))


def _node(raw: Raw, depth: int) -> Node | None:
    if depth > DEPTH_MAX:
        return Broken(_text(raw)[:200], _line(raw))
    kind, line = raw.type, _line(raw)
    if kind == "command" or kind == "variable_assignment" or kind == "variable_assignments":
        return _command(raw)
    if kind in ("declaration_command", "unset_command"):
        return _declaration(raw)
    if kind == "redirected_statement":
        return _redirected(raw, depth)
    if kind == "pipeline":
        return Pipeline(tuple(_nodes(raw, depth)), line)
    if kind == "list":
        return _list(raw, depth)
    if kind == "negated_command":
        inner = next(_nodes(raw, depth), None)
        return Not(inner, line) if inner else None
    if kind in _TESTS or (kind == "compound_statement" and raw.children and raw.children[0].type == "(("):
        return _test(raw)
    if kind in ("subshell", "compound_statement"):
        return Group(_script(raw.children[1:], depth + 1), kind == "subshell", line)
    return _compound(raw, depth)


def _compound(raw: Raw, depth: int) -> Node | None:
    kind, line = raw.type, _line(raw)
    if kind in ("for_statement", "c_style_for_statement", "while_statement"):
        return _loop(raw, depth)
    if kind == "if_statement":
        return _if(raw, depth)
    if kind == "case_statement":
        cases = [item for item in raw.named_children if item.type == "case_item"]
        branches = [(None, _script(_split_at(item.children, ")")[1], depth + 1)) for item in cases]
        return If(tuple(branches), line, has_else=True)
    if kind == "function_definition":
        name, body = raw.child_by_field_name("name"), raw.child_by_field_name("body")
        if name is None or body is None:
            return None
        children = body.children[1:] if body.type in ("compound_statement", "subshell") else [body]
        return Function(_text(name), _script(children, depth + 1), line)
    return None


def _nodes(raw: Raw, depth: int) -> Iterator[Node]:
    for child in raw.named_children[:PARTS_MAX]:
        node = _node(child, depth + 1)
        if node is not None:
            yield node


def _list(raw: Raw, depth: int) -> Node | None:
    """`a && b || c`; the grammar nests to the left, so the left side is walked down without recursion."""
    steps: list[tuple[str, Raw]] = []
    while raw.type == "list" and raw.named_child_count >= 2 and depth + len(steps) < DEPTH_MAX:
        named = raw.named_children
        operator = next((c.type for c in raw.children if c.type in ("&&", "||")), "&&")
        steps.append((operator, named[-1]))
        raw = named[0]
    if raw.type == "list":
        return Group(_script(_flat(raw), DEPTH_MAX), False, _line(raw))
    node = _node(raw, depth + len(steps) + 1)
    for operator, right_raw in reversed(steps):
        right = _node(right_raw, depth + 1)
        if node is None or right is None:
            node = node or right
            continue
        node = AndOr(node, "||" if operator == "||" else "&&", right, node.line)
    return node


def _flat(raw: Raw) -> list[Raw]:
    """The commands of a list with more links than are followed, as a plain row."""
    found: list[Raw] = []
    while raw.type == "list" and raw.named_child_count >= 2:
        found.append(raw.named_children[-1])
        raw = raw.named_children[0]
    return [raw, *reversed(found)]


def _test(raw: Raw) -> Test:
    source = _text(raw)
    names = tuple(dict.fromkeys(_names_below(raw)))
    return Test(source[:2000], _line(raw), names)


def _names_below(raw: Raw) -> Iterator[str]:
    waiting = [raw]
    while waiting:
        node = waiting.pop()
        if node.type == "variable_name":
            yield _text(node)
        waiting.extend(node.children)


def _loop(raw: Raw, depth: int) -> Loop:
    body_raw = raw.child_by_field_name("body")
    body = _script(body_raw.children[1:], depth + 1) if body_raw else Script(())
    if raw.type == "while_statement":
        kind = "until" if raw.children[0].type == "until" else "while"
        condition = _script(raw.children_by_field_name("condition"), depth + 1)
        return Loop("until" if kind == "until" else "while", "", (), condition, body, _line(raw))
    name = raw.child_by_field_name("variable")
    if raw.type == "c_style_for_statement":
        start = raw.child_by_field_name("initializer")
        name = next((c for c in (start.named_children if start else ()) if c.type == "variable_name"), None)
    values = tuple(_word(value) for value in raw.children_by_field_name("value"))
    return Loop("for", _text(name) if name else "", values, None, body, _line(raw))


def _if(raw: Raw, depth: int) -> If:
    branches: list[tuple[Script | None, Script]] = []
    has_else = False
    before, after = _split_at(raw.children, "then")
    own = [c for c in after if c.type not in ("elif_clause", "else_clause", "fi")]
    branches.append((_script(before[1:], depth + 1), _script(own, depth + 1)))
    for clause in after:
        if clause.type == "elif_clause":
            before, inner = _split_at(clause.children, "then")
            branches.append((_script(before[1:], depth + 1), _script(inner, depth + 1)))
        elif clause.type == "else_clause":
            has_else = True
            branches.append((None, _script(clause.children[1:], depth + 1)))
    return If(tuple(branches), _line(raw), has_else)


def _split_at(raws: list[Raw], mark: str) -> tuple[list[Raw], list[Raw]]:
    place = next((i for i, raw in enumerate(raws) if raw.type == mark), len(raws))
    return raws[:place], raws[place + 1 :]


# --- commands ------------------------------------------------------------------------------------------------


def _command(raw: Raw) -> Command:
    words: list[Word] = []
    assignments: list[Assignment] = []
    redirects: list[Redirect] = []
    for child in raw.named_children[:WORDS_MAX] if raw.type != "variable_assignment" else [raw]:
        if child.type == "variable_assignment":
            assignments.append(_assignment(child))
        elif child.type == "command_name":
            words.extend(_word(part) for part in child.named_children[:1] or [child])
        elif child.type in _REDIRECTS:
            redirects.extend(_redirect(child))
        elif child.type not in ("comment", "ERROR"):
            words.append(_word(child))
    return Command(tuple(words), tuple(assignments), tuple(redirects), _line(raw), _last_line(raw))


def _last_line(raw: Raw) -> int:
    return raw.end_point.row + 1 - (1 if raw.end_point.column == 0 and raw.end_point.row else 0)


def _declaration(raw: Raw) -> Command:
    keyword = raw.children[0].type
    words: list[Word] = []
    assignments: list[Assignment] = []
    for child in raw.named_children:
        if child.type == "variable_assignment":
            assignments.append(_assignment(child))
        elif child.type not in ("comment", "ERROR"):
            words.append(_word(child))
    head = Word((Part("text", keyword, _line(raw)),), _line(raw), keyword)
    return Command((head, *words), tuple(assignments), (), _line(raw), _last_line(raw), keyword)


def _assignment(raw: Raw) -> Assignment:
    name = raw.child_by_field_name("name")
    value = raw.child_by_field_name("value")
    label = _NAME.match(_text(name)) if name else None
    adds = any(child.type == "+=" for child in raw.children)
    if value is not None and value.type == "array":
        words = tuple(
            _word(c) for c in value.named_children[:WORDS_MAX] if c.type not in ("comment", "ERROR")
        )
        return Assignment(label[0] if label else "", words, _line(raw), True, adds)
    words = (_word(value),) if value is not None else ()
    return Assignment(label[0] if label else "", words, _line(raw), False, adds)


def _redirected(raw: Raw, depth: int) -> Node | None:
    body_raw = raw.child_by_field_name("body")
    raws = raw.children_by_field_name("redirect")
    redirects = tuple(r for child in raws for r in _redirect(child))
    body = _node(body_raw, depth + 1) if body_raw is not None else None
    if body is None:
        return Command((), (), redirects, _line(raw), _last_line(raw))
    node = _with_redirects(body, redirects)
    # `cat <<EOF | tee log`: the grammar keeps the rest of the line inside the here-document's redirect.
    for child in raws:
        for rest in child.named_children if child.type == "heredoc_redirect" else ():
            if rest.type == "pipeline":
                node = Pipeline((node, *_nodes(rest, depth + 1)), node.line)
            elif rest.type in ("list", "command", "redirected_statement"):
                right = _node(rest, depth + 1)
                operator = next((c.type for c in child.children if c.type in ("&&", "||")), "&&")
                if right is not None:
                    node = AndOr(node, "||" if operator == "||" else "&&", right, node.line)
    return node


def _with_redirects(node: Node, redirects: tuple[Redirect, ...]) -> Node:
    """The node with these redirects; of a list or a pipeline it is the last part that gets them."""
    if isinstance(node, (Command, Loop, Group)):
        return replace(node, redirects=(*node.redirects, *redirects))
    if isinstance(node, Pipeline) and node.parts:
        return replace(node, parts=(*node.parts[:-1], _with_redirects(node.parts[-1], redirects)))
    if isinstance(node, AndOr):
        return replace(node, right=_with_redirects(node.right, redirects))
    if isinstance(node, Not):
        return replace(node, node=_with_redirects(node.node, redirects))
    return node


def _redirect(raw: Raw) -> Iterator[Redirect]:
    descriptor = next((_text(c) for c in raw.children if c.type == "file_descriptor"), "")
    line = _line(raw)
    if raw.type == "heredoc_redirect":
        start = next((_text(c) for c in raw.children if c.type == "heredoc_start"), "")
        body = next((c for c in raw.children if c.type == "heredoc_body"), None)
        operator = next((c.type for c in raw.children if c.type.startswith("<<")), "<<")
        expands = not any(mark in start for mark in "'\"\\")
        text, at = (_text(body), _line(body)) if body is not None else ("", line)
        yield Redirect(operator, None, line, descriptor, text, at, expands)
        for child in raw.children:
            if child.type == "file_redirect":
                yield from _redirect(child)
        return
    operator = next((c.type for c in raw.children if not c.is_named), ">")
    targets = raw.children_by_field_name("destination") or raw.named_children[-1:]
    yield Redirect(operator, _word(targets[0]) if targets else None, line, descriptor)


# --- words ---------------------------------------------------------------------------------------------------


def _word(raw: Raw) -> Word:
    return Word(tuple(_parts(raw, "", 0)), _line(raw), _text(raw))


def _parts(raw: Raw, quote: Quote, depth: int) -> Iterator[Part]:
    kind, line, text = raw.type, _line(raw), _text(raw)
    if depth > DEPTH_MAX:
        yield Part("other", text[:200], line, quote)
    elif kind == "string":
        yield from _string(raw, depth)
    elif kind == "raw_string":
        yield Part("text", text[1:-1], line, "'")
    elif kind == "ansi_c_string":
        yield Part("text", text[2:-1].replace("\\n", "\n").replace("\\'", "'"), line, "'")
    elif kind in ("concatenation", "command_name", "translated_string"):
        for child in raw.children:
            if child.type != "$":
                yield from _parts(child, quote, depth + 1)
    elif kind == "simple_expansion":
        yield Part("var", text[1:], line, quote)
    elif kind == "expansion":
        yield _expansion(raw, quote, depth)
    elif kind == "command_substitution":
        yield Part("command", text, line, quote, script=_script(raw.children[1:-1], depth + 20))
    elif kind in ("arithmetic_expansion", "process_substitution"):
        yield Part("other", text, line, quote)
    else:
        yield Part("text", _unescaped(text), line, quote)


def _string(raw: Raw, depth: int) -> Iterator[Part]:
    """Between double quotes. Text that the grammar leaves between its own pieces is text too."""
    source, base = raw.text or b"", raw.start_byte
    at, line = 1, _line(raw)
    empty = True
    for child in raw.children:
        if child.type in ("string_content", '"', "$") or child.is_missing or child.type == "ERROR":
            continue
        gap = source[at : child.start_byte - base].decode("utf-8", "replace")
        if gap:
            yield Part("text", _unescaped(gap, quoted=True), line, '"')
        yield from _parts(child, '"', depth + 1)
        at, line, empty = child.end_byte - base, child.end_point.row + 1, False
    closed = len(source) > 1 and source.endswith(b'"')
    gap = source[at : len(source) - 1 if closed else len(source)].decode("utf-8", "replace")
    if gap or empty:
        yield Part("text", _unescaped(gap, quoted=True), line, '"')


def _expansion(raw: Raw, quote: Quote, depth: int) -> Part:
    """`${name}`, `${name:-word}`, `${name[@]}`, `${#name}`."""
    name, index, operator = "", "", ""
    operand: list[Part] = []
    for child in raw.named_children:
        if child.type in ("variable_name", "special_variable_name") and not name:
            name = _text(child)
        elif child.type == "subscript" and not name:
            inner, place = child.child_by_field_name("name"), child.child_by_field_name("index")
            name, index = _text(inner) if inner else "", _text(place) if place else ""
        else:
            operand.extend(_parts(child, quote, depth + 1))
    for child in raw.children:
        if not child.is_named and child.type not in ("${", "}", "["):
            operator += child.type
    return Part("var", name or _text(raw)[2:-1], _line(raw), quote, operator[:8], tuple(operand), index)


def _unescaped(text: str, *, quoted: bool = False) -> str:
    """Backslashes taken away as the shell does. One before a line's end stays: it keeps the lines countable."""
    if "\\" not in text:
        return text
    return re.sub(r'\\(["$`\\])' if quoted else r"\\([^\n])", r"\1", text)
