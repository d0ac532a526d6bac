"""What a regular expression needs and what it could cost, found by reading its parse tree.

A signature must be cheap on hostile text. `needles` gives the literals of which one must stand in any
matching text, so that whole lines can be passed over without running an expression; `hazard` says why an
expression is refused (it could take more than linear time, or needs nothing that can be looked for first).

Never: run an expression; look at a log.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterable, Sequence
from typing import Any

NEEDLE_MIN = 3
"""Shortest literal, in characters, that is worth looking for; two are enough in scripts of many characters."""

WIDE_REPEAT_MAX = 400
"""Most characters that a repeat over `.` or a negated class may span."""

WIDE_REPEATS = 3
"""Most repeats over `.` or a negated class in one expression; the cost per start grows with each."""

_parser: Any = importlib.import_module("re._parser")
_Tree = Sequence[tuple[Any, Any]]


def _name(op: object) -> str:
    return str(op)


def _tree(pattern: str) -> _Tree:
    tree: _Tree = list(_parser.parse(pattern))
    return tree


def _branches(op: str, arg: Any) -> list[_Tree]:
    """The sub-trees under one node, whatever its kind."""
    if op == "BRANCH":
        return [list(one) for one in arg[1]]
    if op == "SUBPATTERN":
        return [list(arg[3])]
    if op in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
        return [list(arg[2])]
    if op in ("ASSERT", "ASSERT_NOT"):
        return [list(arg[1])]
    if op == "ATOMIC_GROUP":
        return [list(arg)]
    return []


COMMON = frozenset(
    "model loss node nodes checkpoint heckpoint output check device error kernel return able ailed nable ould annot "
    "status expected received eceived exit fault file data connection completion http https path value failed "
    "warning step rank worker workers memory server timeout update ERROR WARNING INFO HTTP NCCL Node Error".split()
)
"""Words that stand in healthy logs all the time: looking for them first would let nearly every line through."""


def _worth(literal: str) -> int:
    """How telling a literal is: its length, a character beyond Latin counting for two; common words the least."""
    if literal.strip(" :=,.[(") in COMMON:
        return NEEDLE_MIN
    return sum(2 if letter > "\u2e7f" else 1 for letter in literal)


def _better(one: frozenset[str], other: frozenset[str]) -> frozenset[str]:
    """The set whose weakest literal is longer: it sends fewer lines to the expression."""
    if not one or not other:
        return one or other
    return one if min(map(_worth, one)) >= min(map(_worth, other)) else other


def _required(tree: _Tree) -> frozenset[str]:
    """Literals of which at least one is in every match of `tree`; empty if that cannot be said."""
    best: frozenset[str] = frozenset()
    run = ""
    for op, arg in [*tree, (None, None)]:
        kind = _name(op)
        if kind == "LITERAL":
            run += chr(arg)
            continue
        if _worth(run) >= NEEDLE_MIN:
            best = _better(best, frozenset((run,)))
        run = ""
        if kind == "BRANCH":
            parts = [_required(branch) for branch in _branches(kind, arg)]
            if all(parts):
                best = _better(best, frozenset().union(*parts))
        elif (kind == "SUBPATTERN" and not arg[1] & re.IGNORECASE) or kind == "ATOMIC_GROUP":
            best = _better(best, _required(_branches(kind, arg)[0]))
        elif kind.endswith("_REPEAT") and arg[0] >= 1:
            best = _better(best, _required(list(arg[2])))
    return best


def needles(pattern: str) -> frozenset[str]:
    """The literals (case as written) of which one must stand in any text that `pattern` matches.

    Empty when nothing can be promised, for instance under `(?i)`. Raises re.error on a bad expression.
    """
    if re.compile(pattern).flags & re.IGNORECASE:
        return frozenset()
    return _required(_tree(pattern))


def _wide(tree: _Tree) -> bool:
    """Does this single position accept almost any character?"""
    if len(tree) != 1:
        return False
    op, arg = tree[0]
    kind = _name(op)
    if kind == "IN":
        return any(_name(sub) == "NEGATE" for sub, _ in arg) or any(
            _name(sub) == "CATEGORY" and "NOT" in _name(what) for sub, what in arg
        )
    return kind in ("ANY", "NOT_LITERAL")


def _walk(tree: _Tree, repeated: bool) -> Iterable[str]:
    for op, arg in tree:
        kind = _name(op)
        if kind in ("GROUPREF", "GROUPREF_EXISTS"):
            yield "a back-reference cannot be matched in linear time"
        deeper = repeated
        if kind in ("MAX_REPEAT", "MIN_REPEAT"):
            low, high, body = arg
            varies = int(high) > 1 and low != high
            if varies and repeated:
                yield "a repeat inside a repeat can take exponential time"
            if _wide(list(body)) and int(high) > WIDE_REPEAT_MAX:
                yield f"a repeat over any character must be bounded: write .{{0,{WIDE_REPEAT_MAX // 2}}}"
            deeper = repeated or varies
        for branch in _branches(kind, arg):
            yield from _walk(branch, deeper)


def _count_wide(tree: _Tree) -> int:
    count = 0
    for op, arg in tree:
        kind = _name(op)
        if kind.endswith("_REPEAT") and int(arg[1]) > 1 and _wide(list(arg[2])):
            count += 1
        counts = [_count_wide(branch) for branch in _branches(kind, arg)]
        count += max(counts, default=0)
    return count


def hazard(pattern: str) -> str:
    """Why this expression must not be run on untrusted text, or "" if it is safe."""
    try:
        tree = _tree(pattern)
        if not needles(pattern):
            return (
                f"it needs a literal of at least {NEEDLE_MIN} characters in every alternative (and no (?i))"
            )
    except (re.error, OverflowError, RecursionError) as error:
        return f"not a regular expression: {error}"
    for reason in _walk(tree, repeated=False):
        return reason
    if _count_wide(tree) > WIDE_REPEATS:
        return f"more than {WIDE_REPEATS} repeats over any character"
    return ""


def trie(words: Iterable[str]) -> str:
    """One expression that matches any of the words, with shared beginnings merged (fast to reject a text)."""
    root: dict[str, Any] = {}
    for word in sorted(set(words)):
        node = root
        for letter in word:
            if "" in node:
                break
            node = node.setdefault(letter, {})
        else:
            node.clear()
            node[""] = {}
    return _render(root)


def _render(node: dict[str, Any]) -> str:
    """Iterative over chains of single letters, so that depth stays below the number of forks."""
    text = ""
    while len(node) == 1:
        ((letter, below),) = node.items()
        if letter == "":
            return text
        text += re.escape(letter)
        node = below
    if not node:
        return text
    return text + "(?:" + "|".join(re.escape(letter) + _render(below) for letter, below in node.items()) + ")"
