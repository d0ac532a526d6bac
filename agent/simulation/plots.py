"""Bars and columns as SVG: small pictures of a lab's figures for the documentation, in no library's style.

Never: a script, a font or a colour scheme from elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

WIDTH, ROW, LEFT = 640, 22, 150
TALL, AXIS, DAYS_TOLD = 160, 48, 5
OTHER = "#5b7fa6"
COLOURS = {
    "succeeded": "#3b8f5a",
    "failed": "#b5533c",
    "stopped": "#c9923a",
    "unknown": "#7d6fa8",
    "not_submitted": "#888888",
}


def bars(title: str, counted: Mapping[str, Mapping[str, int]]) -> str:
    """One bar for each row, in parts; the parts of a row are shares of it. Rows without anything are left out."""
    rows = {name: parts for name, parts in counted.items() if sum(parts.values())}
    height = 34 + ROW * len(rows) + 20
    shown = _head(title, height)
    for number, (name, parts) in enumerate(rows.items()):
        shown += _bar(name, parts, 28 + ROW * number)
    shown += _key({part for parts in rows.values() for part in parts}, height - 6)
    return "\n".join([*shown, "</svg>", ""])


def columns(title: str, counted: Sequence[Mapping[str, int]]) -> str:
    """One column for each day, in parts, all of one scale; the largest is told at the top."""
    most = max((sum(parts.values()) for parts in counted), default=0) or 1
    height, floor = 34 + TALL + 40, 34 + TALL
    shown = [
        *_head(title, height),
        f'<text x="4" y="44">{most:,}</text>',
        f'<text x="4" y="{floor}">0</text>',
    ]
    wide = (WIDTH - AXIS - 8) / max(1, len(counted))
    for number, parts in enumerate(counted):
        x, y = AXIS + wide * number, float(floor)
        for part, count in sorted(parts.items()):
            tall = TALL * count / most
            y -= tall
            shown.append(_part(x, y, max(1.0, wide - 2), tall, part, f"day {number + 1}, {part}: {count:,}"))
        if number % DAYS_TOLD == DAYS_TOLD - 1 or not number:
            shown.append(f'<text x="{x:.1f}" y="{floor + 14}">{number + 1}</text>')
    shown += _key({part for parts in counted for part in parts}, height - 6)
    return "\n".join([*shown, "</svg>", ""])


def _head(title: str, height: int) -> list[str]:
    return [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" '
        f'font-size="12"><title>{escape(title)}</title>',
        f'<text x="4" y="16" font-weight="bold">{escape(title)}</text>',
    ]


def _part(x: float, y: float, width: float, height: float, part: str, told: str) -> str:
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" '
        f'fill="{COLOURS.get(part, OTHER)}"><title>{escape(told)}</title></rect>'
    )


def _bar(name: str, parts: Mapping[str, int], y: int) -> list[str]:
    total = sum(parts.values())
    shown = [f'<text x="4" y="{y + 13}">{escape(name)} ({total:,})</text>']
    x = float(LEFT)
    for part, count in sorted(parts.items()):
        width = (WIDTH - LEFT - 8) * count / total
        shown.append(_part(x, y, width, ROW - 6, part, f"{part}: {count:,}"))
        x += width
    return shown


def _key(parts: set[str], y: int) -> list[str]:
    shown, x = [], LEFT
    for part in sorted(parts):
        colour = COLOURS.get(part, OTHER)
        shown.append(f'<rect x="{x}" y="{y - 9}" width="10" height="10" fill="{colour}"/>')
        shown.append(f'<text x="{x + 14}" y="{y}">{escape(part)}</text>')
        x += 24 + 8 * len(part)
    return shown
