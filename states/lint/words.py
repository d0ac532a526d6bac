"""Words to values: what a variable holds at a place, as far as the text alone tells it.

A value that only one branch or the caller sets is kept with `known` false: good for recognising a name, not for
holding two figures against each other.

Never: call an unset variable empty; that is for `variables.py` to say.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from states.lint.shell import Part, Word

ARGS_MAX = 400
DEPTH_MAX = 6
TEXT_MAX = 20_000
"""Characters of one value: what doubles itself again and again is cut."""
_PIECE = re.compile(r"\S+")
_ARITHMETIC_NAME = re.compile(r"\$?\{?([A-Za-z_]\w{0,60})\}?", re.ASCII)


class Arg(NamedTuple):
    """One word after expansion. line: where it stands in the file; known: every part of it was known."""

    text: str
    line: int
    known: bool = True
    word: Word | None = None


@dataclass(frozen=True, slots=True)
class Value:
    """What a variable holds. lines: from the words' own lines to lines of the file."""

    words: tuple[Word, ...]
    args: tuple[Arg, ...]
    line: int
    lines: tuple[int, ...]
    array: bool = False
    sure: bool = True
    exported: bool = False

    @property
    def text(self) -> str:
        """The value as one string."""
        return " ".join(arg.text for arg in self.args)


Env = Mapping[str, Value]


def file_line(lines: tuple[int, ...], local: int) -> int:
    """The line of the file for a line of the parsed text."""
    return lines[min(max(local, 1), len(lines)) - 1] if lines else local


def resolve(word: Word, env: Env, lines: tuple[int, ...]) -> list[Arg]:
    """The words that this word becomes: usually one; more for an unquoted list or an array."""
    if len(word.parts) == 1 and word.parts[0].kind == "var":
        spliced = _spliced(word.parts[0], env)
        if spliced is not None:
            return spliced[:ARGS_MAX]
    text, known = "", True
    for part in word.parts:
        piece, sure = _expanded(part, env, 0)
        text, known = (text + piece)[:TEXT_MAX], known and sure
    return [Arg(text.replace("\\\n", ""), file_line(lines, word.line), known, word)]


def _spliced(part: Part, env: Env) -> list[Arg] | None:
    """The pieces of `$LIST` or `"${ARRAY[@]}"`; None when it stays one word."""
    value = env.get(part.text)
    if value is None or part.operator not in ("", ":-", "-", ":="):
        return None
    if value.array and part.index in ("@", "*"):
        return list(value.args)
    text = value.text
    if part.quote or part.index or value.array or not any(c.isspace() for c in text.strip()):
        return None
    if any(mark in text for mark in "'\"`(") and "\\\n" in text:
        return None
    return list(_pieces(value))


def _pieces(value: Value) -> Iterator[Arg]:
    word = value.words[0] if value.words else None
    for arg in value.args:
        for match in _PIECE.finditer(arg.text.replace("\\\n", " ")):
            yield Arg(match[0], value.line + arg.text.count("\n", 0, match.start()), arg.known, word)


def _expanded(part: Part, env: Env, depth: int) -> tuple[str, bool]:
    """The text of one part, and whether it is known."""
    if part.kind == "text":
        return part.text, True
    if part.kind == "command":
        return _substituted(part.text)
    if part.kind == "other":
        figure = arithmetic(part.text, env)
        return (part.text, False) if figure is None else (str(figure), True)
    value = env.get(part.text)
    if part.operator in (":-", "-", ":=", "=") and value is None and depth < DEPTH_MAX:
        pieces = [_expanded(operand, env, depth + 1) for operand in part.operand]
        return "".join(text for text, _ in pieces), all(sure for _, sure in pieces)
    if value is None or part.operator not in ("", ":-", "-", ":=", "=", ":?", "?"):
        return f"${part.text}", False
    if value.array:
        place = int(part.index) if part.index.isdigit() else 0
        if part.index in ("@", "*"):
            return value.text, value.sure
        return (value.args[place].text, value.sure) if place < len(value.args) else (f"${part.text}", False)
    return value.text, value.sure and all(arg.known for arg in value.args)


def _substituted(source: str) -> tuple[str, bool]:
    """`$(pwd)` and the script's own folder are where the job starts; any other command's words are not known."""
    inner = source.strip("$()` \n")
    if re.fullmatch(r"pwd(?: -P)?", inner):
        return "$PWD", False
    return "$(...)", False


def arithmetic(source: str, env: Env) -> int | None:
    """`$((A * 4))` where every name has a known whole number; None otherwise."""
    body = source.removeprefix("$((").removesuffix("))").strip()
    if not body or len(body) > 120:
        return None

    def number(match: re.Match[str]) -> str:
        value = env.get(match[1])
        return value.text if value is not None and value.sure and value.text.isdigit() else "None"

    try:
        tree = ast.parse(_ARITHMETIC_NAME.sub(number, body), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return _counted(tree.body)


def _counted(node: ast.expr) -> int | None:
    if isinstance(node, ast.Constant) and type(node.value) is int and abs(node.value) < 10**9:
        return node.value
    if isinstance(node, ast.BinOp):
        left, right = _counted(node.left), _counted(node.right)
        if left is None or right is None:
            return None
        match node.op:
            case ast.Add():
                return left + right
            case ast.Sub():
                return left - right
            case ast.Mult():
                return left * right if abs(left * right) < 10**12 else None
            case ast.Div() | ast.FloorDiv():
                return left // right if right else None
    return None


def rendered(word: Word, env: Env, lines: tuple[int, ...], depth: int = 0) -> tuple[str, list[int]]:
    """A word as the text of an inner script (`bash -c WORD`), with the line of the file for each of its lines.

    A known variable is put in; an unknown one stays `${NAME}`, for the inner shell to be judged with.
    """
    text = ""
    at: list[int] = []
    for part in word.parts:
        if len(text) > 4 * TEXT_MAX:
            break
        piece, piece_lines = _rendered(part, env, lines, depth)
        if not at:
            at = piece_lines[:1]
        text += piece
        at += piece_lines[1:]
    return text, at or [file_line(lines, word.line)]


def _rendered(part: Part, env: Env, lines: tuple[int, ...], depth: int) -> tuple[str, list[int]]:
    if part.kind == "text":
        return part.text, [file_line(lines, part.line + n) for n in range(part.text.count("\n") + 1)]
    here = [file_line(lines, part.line)]
    if part.kind != "var":
        return part.text, here * (part.text.count("\n") + 1)
    value = env.get(part.text)
    if value is not None and value.words and not part.operator and not part.index and depth < DEPTH_MAX:
        found = [rendered(word, env, value.lines, depth + 1) for word in value.words]
        if any(c.isspace() for text, _ in found for c in text) or all(arg.known for arg in value.args):
            text = " ".join(text for text, _ in found)
            return text, [line for _, at in found for line in at][: text.count("\n") + 1]
    return f"${{{part.text}}}" if not part.operator else (_expanded(part, env, 0)[0]), here
