"""Counters that stand under a heading: `Step  Time` on one line, `1200  2.4` on the next (finding 11).

Simulation codes, notebooks and CSV logs print so. One heading is remembered; a row belongs to it while it has
as many cells, all of them numbers.

Never: read a row without a heading, or a heading without a unit of work in it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from states.bars import N, Reading, number
from states.units import UNITS_OF_WORK, unit_of, words

_CELLS_MAX = 64
_ROW_CHARS_MAX = 1_000
_COUNT = re.compile(rf"{N}")
_CELL = re.compile(r"[-+]?[\d.]{1,24}(?:[eE][-+]?\d{1,3})?|[-+]?(?:nan|inf)|-|", re.IGNORECASE)
_SPLITS = (re.compile(r"\s*[|\t,]\s*"), re.compile(r"\s{2,}"), re.compile(r"\s+"))
"""Cell borders, tried in this order: a sign, wide gaps (headings may hold two words), any gap."""


@dataclass
class Table:
    """The heading that rows are read under: which cell counts what, and how cells are told apart."""

    column: int = -1
    cells: int = 0
    name: str = ""
    split: int = 0

    def readings(self, text: str) -> list[Reading]:
        """The counter of a row; a heading gives none and is remembered."""
        if len(text) > _ROW_CHARS_MAX:
            return []
        if any(map(str.isdigit, text)):
            return self._row(text) if self.cells else []
        self._head(text)
        return []

    def _head(self, text: str) -> None:
        for split, pattern in enumerate(_SPLITS):
            cells = _cells(text, pattern)
            if len(cells) < 2:
                continue
            for column, cell in enumerate(cells):
                found = words(cell)
                if len(found) == 1 and unit_of(found[0]) in UNITS_OF_WORK:
                    self.column, self.cells, self.name, self.split = column, len(cells), found[0], split
                    return

    def _row(self, text: str) -> list[Reading]:
        for pattern in dict.fromkeys((_SPLITS[self.split], _SPLITS[2])):
            cells = _cells(text, pattern)
            if len(cells) == self.cells and all(_CELL.fullmatch(cell) for cell in cells):
                cell = cells[self.column]
                if _COUNT.fullmatch(cell):
                    return [Reading(self.name, "unit", number(cell), None, unit_of(self.name))]
        return []


def _cells(text: str, pattern: re.Pattern[str]) -> list[str]:
    return pattern.split(text.strip().strip("|").strip(), _CELLS_MAX)
