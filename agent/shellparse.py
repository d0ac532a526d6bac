"""Shell text into the neutral tree of `states/lint/shell.py`, by the tree-sitter grammar for bash.

The grammar goes on after an error, so a script with one bad quote is still judged elsewhere. Input is cut at
`CHARS_MAX`, nesting at `DEEP_MAX`; what is deeper stands as `Broken`.

Never: run anything; raise on any text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

from agent.shellwords import DEEP_MAX, line_of, text_of, word
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

STATEMENTS_MAX = 4_000
"""Statements of one list that are read."""

WORDS_MAX = 1_000
"""Words of one command that are read."""

PIPES_MAX = 2_000
"""Bars of one text that are read."""

NODES_MAX = 2_000
"""Nodes that are looked through for faults."""

PARTS_MAX = 40
"""Commands of one pipe that are read."""

_NO_STATEMENTS = frozenset({"comment", "heredoc_body", "heredoc_end", "file_descriptor"})
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
    source = _cut(text).encode("utf-8", "replace")
    root = _parser().parse(source).root_node
    script = _script(root.children, 0)
    return replace(script, broken=tuple(_faults(root))) if root.has_error else script


def _cut(text: str) -> str:
    """The text that is read: to CHARS_MAX, and to PIPES_MAX bars, whose square the grammar's work grows with."""
    text = text[:CHARS_MAX]
    if text.count("|") <= PIPES_MAX:
        return text
    return "|".join(text.split("|", PIPES_MAX)[:PIPES_MAX])


def _faults(root: Raw) -> Iterator[Broken]:
    """The places that the parser could not make sense of, the first ones, wherever they are nested."""
    waiting, looked = [root], 0
    while waiting and looked < NODES_MAX:
        raw = waiting.pop()
        looked += 1
        if raw.is_missing:
            yield Broken(f"missing {raw.type}", line_of(raw))
        elif raw.type == "ERROR":
            yield Broken(text_of(raw)[:2000], line_of(raw))
        elif raw.has_error:
            waiting.extend(reversed(raw.children))


def _script(raws: list[Raw], depth: int) -> Script:
    """Statements in a row; `&` marks the one before it."""
    items: list[Item] = []
    for raw in raws[:STATEMENTS_MAX]:
        if raw.type == "&":
            if items:
                items[-1] = Item(items[-1].node, background=True)
        elif raw.type == "ERROR":
            items.extend(_script(raw.children, depth + 1).items if depth < DEEP_MAX else ())
        elif raw.is_named and not raw.is_missing and raw.type not in _NO_STATEMENTS:
            node = _node(raw, depth)
            if node is not None:
                items.append(Item(node))
    return Script(tuple(items))


def _node(raw: Raw, depth: int) -> Node | None:
    if depth > DEEP_MAX:
        return Broken(text_of(raw)[:200], line_of(raw))
    kind, line = raw.type, line_of(raw)
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
    kind, line = raw.type, line_of(raw)
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
        return Function(text_of(name), _script(children, depth + 1), line)
    return None


def _nodes(raw: Raw, depth: int) -> Iterator[Node]:
    for child in raw.named_children[:PARTS_MAX]:
        node = _node(child, depth + 1)
        if node is not None:
            yield node


def _list(raw: Raw, depth: int) -> Node | None:
    """`a && b || c`; the grammar nests to the left, so the left side is walked down without recursion."""
    steps: list[tuple[str, Raw]] = []
    while raw.type == "list" and raw.named_child_count >= 2 and depth + len(steps) < DEEP_MAX:
        named = raw.named_children
        operator = next((c.type for c in raw.children if c.type in ("&&", "||")), "&&")
        steps.append((operator, named[-1]))
        raw = named[0]
    if raw.type == "list":
        return Group(_script(_flat(raw), DEEP_MAX), False, line_of(raw))
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
    source = text_of(raw)
    names = tuple(dict.fromkeys(_names_below(raw)))
    return Test(source[:2000], line_of(raw), names)


def _names_below(raw: Raw) -> Iterator[str]:
    waiting = [raw]
    while waiting:
        node = waiting.pop()
        if node.type == "variable_name":
            yield text_of(node)
        waiting.extend(node.children)


def _loop(raw: Raw, depth: int) -> Loop:
    body_raw = raw.child_by_field_name("body")
    body = _script(body_raw.children[1:], depth + 1) if body_raw else Script(())
    if raw.type == "while_statement":
        kind = "until" if raw.children[0].type == "until" else "while"
        condition = _script(raw.children_by_field_name("condition"), depth + 1)
        return Loop("until" if kind == "until" else "while", "", (), condition, body, line_of(raw))
    name = raw.child_by_field_name("variable")
    if raw.type == "c_style_for_statement":
        start = raw.child_by_field_name("initializer")
        name = next((c for c in (start.named_children if start else ()) if c.type == "variable_name"), None)
    values = tuple(_word(value) for value in raw.children_by_field_name("value"))
    return Loop("for", text_of(name) if name else "", values, None, body, line_of(raw))


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
    return If(tuple(branches), line_of(raw), has_else)


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
    return Command(tuple(words), tuple(assignments), tuple(redirects), line_of(raw), _last_line(raw))


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
    head = Word((Part("text", keyword, line_of(raw)),), line_of(raw), keyword)
    return Command((head, *words), tuple(assignments), (), line_of(raw), _last_line(raw), keyword)


def _assignment(raw: Raw) -> Assignment:
    name = raw.child_by_field_name("name")
    value = raw.child_by_field_name("value")
    label = _NAME.match(text_of(name)) if name else None
    adds = any(child.type == "+=" for child in raw.children)
    if value is not None and value.type == "array":
        words = tuple(
            _word(c) for c in value.named_children[:WORDS_MAX] if c.type not in ("comment", "ERROR")
        )
        return Assignment(label[0] if label else "", words, line_of(raw), True, adds)
    words = (_word(value),) if value is not None else ()
    return Assignment(label[0] if label else "", words, line_of(raw), False, adds)


def _redirected(raw: Raw, depth: int) -> Node | None:
    body_raw = raw.child_by_field_name("body")
    raws = raw.children_by_field_name("redirect")
    redirects = tuple(r for child in raws for r in _redirect(child))
    body = _node(body_raw, depth + 1) if body_raw is not None else None
    if body is None:
        return Command((), (), redirects, line_of(raw), _last_line(raw))
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
    descriptor = next((text_of(c) for c in raw.children if c.type == "file_descriptor"), "")
    line = line_of(raw)
    if raw.type == "heredoc_redirect":
        start = next((text_of(c) for c in raw.children if c.type == "heredoc_start"), "")
        body = next((c for c in raw.children if c.type == "heredoc_body"), None)
        operator = next((c.type for c in raw.children if c.type.startswith("<<")), "<<")
        expands = not any(mark in start for mark in "'\"\\")
        text, at = (text_of(body), line_of(body)) if body is not None else ("", line)
        yield Redirect(operator, None, line, descriptor, text, at, expands)
        for child in raw.children:
            if child.type == "file_redirect":
                yield from _redirect(child)
        return
    operator = next((c.type for c in raw.children if not c.is_named), ">")
    targets = raw.children_by_field_name("destination") or raw.named_children[-1:]
    yield Redirect(operator, _word(targets[0]) if targets else None, line, descriptor)


def _word(raw: Raw) -> Word:
    return word(raw, _script)
