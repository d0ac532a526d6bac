"""A Kubernetes manifest as plain tables, rows and texts with their lines, as the caller's YAML parser leaves them.

Never: a parser; look-ups only.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple, TypeAlias


class Text(NamedTuple):
    """A scalar as written. line: of its first character of content; block: `|` or `>` text, one line each."""

    value: str
    line: int
    kind: Literal["str", "int", "float", "bool", "null"] = "str"
    block: bool = False


class Row(NamedTuple):
    """A sequence."""

    items: tuple[Yaml, ...]
    line: int


class Table(NamedTuple):
    """A mapping in its order; a key may stand twice."""

    entries: tuple[tuple[Text, Yaml], ...]
    line: int

    def get(self, key: str) -> Yaml | None:
        """The value under a key."""
        return next((value for name, value in self.entries if name.value == key), None)

    def key(self, key: str) -> Text | None:
        """The key itself, for its line."""
        return next((name for name, _ in self.entries if name.value == key), None)

    def table(self, *keys: str) -> Table | None:
        """The table at the end of a path of keys."""
        at: Yaml | None = self
        for key in keys:
            at = at.get(key) if isinstance(at, Table) else None
        return at if isinstance(at, Table) else None

    def row(self, key: str) -> tuple[Yaml, ...]:
        """The items under a key, none where there is no row."""
        found = self.get(key)
        return found.items if isinstance(found, Row) else ()

    def text(self, key: str) -> str:
        """The text under a key, "" where there is none."""
        found = self.get(key)
        return found.value if isinstance(found, Text) and found.kind != "null" else ""


Yaml: TypeAlias = Text | Row | Table


class Manifest(NamedTuple):
    """documents of the file, and the lines that are no YAML with the parser's words (the rest was read without
    them)."""

    documents: tuple[Yaml, ...]
    faults: tuple[tuple[int, str], ...] = ()


def tables(node: Yaml) -> Iterator[Table]:
    """Every table at or below the node."""
    waiting: list[Yaml] = [node]
    while waiting:
        at = waiting.pop(0)
        if isinstance(at, Table):
            yield at
            waiting.extend(value for _, value in at.entries)
        elif isinstance(at, Row):
            waiting.extend(at.items)
