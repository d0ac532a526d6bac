"""Counters that stand under a heading: `Step  Time` on one line, `1200  2.4` on the next (finding 11).

Simulation codes, notebooks, detectors and CSV logs print so. One heading is remembered; a row belongs to it
while it has as many cells, all of them numbers, or begins with a `3/100` under a unit of work.

Never: read a row without a heading, or a heading without a unit of work in it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from states.logs.bars import N, Reading, number
from states.logs.shapes import has_digit, per_shape
from states.logs.units import UNITS_OF_WORK, unit_of, words

_CELLS_MAX = 64
_ROW_CHARS_MAX = 1_000
_COUNT = re.compile(rf"(?P<n>{N})(?:/(?P<N>{N}))?")
_CELL = re.compile(r"[-+]?[\d.]{1,24}(?:[eE][-+]?\d{1,3})?|[-+]?(?:nan|inf)|-|", re.IGNORECASE)
_SPLITS = (re.compile(r"\s*[|\t,]\s*"), re.compile(r"\s{2,}"), re.compile(r"\s+"))
"""Cell borders, tried in this order: a sign, wide gaps (headings may hold two words), any gap."""


@dataclass
class Table:
    """The heading that rows are read under: which cells count what, and how cells are told apart."""

    columns: dict[int, str] = field(default_factory=dict)
    cells: int = 0
    split: int = 0
    ruled: bool = False
    """It stands between vertical lines, so that cells of words do not blur which is which."""

    def readings(self, text: str) -> list[Reading]:
        """The counters of a row; a heading gives none and is remembered."""
        if len(text) > _ROW_CHARS_MAX:
            return []
        if has_digit(text):
            return self._row(text) if self.columns else []
        self._head(text)
        return []

    def _head(self, text: str) -> None:
        if (found := _heading(text)) is not None:
            self.columns, self.cells, self.split = found
            self.ruled = text.lstrip()[:1] == "|"

    def _row(self, text: str) -> list[Reading]:
        for pattern in dict.fromkeys((_SPLITS[self.split], _SPLITS[2])):
            cells = _cells(text, pattern)
            whole = len(cells) == self.cells and (
                all(_CELL.fullmatch(cell) for cell in cells) or (self.ruled and text.lstrip()[:1] == "|")
            )
            of_total = 0 in self.columns and len(cells) >= self.cells and "/" in cells[0]
            if whole or of_total:
                return [*self._counts(cells if whole else cells[:1])]
        return []

    def _counts(self, cells: list[str]) -> list[Reading]:
        found = []
        for column, name in self.columns.items():
            if column < len(cells) and (count := _COUNT.fullmatch(cells[column])):
                total = number(count["N"]) if count["N"] else None
                found.append(Reading(name, "unit", number(count["n"]), total, unit_of(name)))
        return found


@per_shape
def _heading(text: str) -> tuple[dict[int, str], int, int] | None:
    """(columns that count, number of cells, how they are split) of a line without digits; None for no heading."""
    for split, pattern in enumerate(_SPLITS):
        cells = _cells(text, pattern)
        names = {column: _unit_name(cell) for column, cell in enumerate(cells)}
        columns = {column: name for column, name in names.items() if name}
        if len(cells) >= 2 and columns:
            return columns, len(cells), split
    return None


def _unit_name(cell: str) -> str:
    """The word of a heading cell that is a unit of work and nothing else; else ""."""
    found = words(cell)
    return found[0] if len(found) == 1 and unit_of(found[0]) in UNITS_OF_WORK else ""


def _cells(text: str, pattern: re.Pattern[str]) -> list[str]:
    return pattern.split(text.strip().strip("|").strip(), _CELLS_MAX)
