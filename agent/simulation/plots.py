"""Bars as SVG: two small pictures of a lab's figures for the documentation, in no library's style.

Never: a script, a font or a colour scheme from elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

WIDTH, ROW, LEFT = 640, 22, 150
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
    shown = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" '
        f'font-size="12"><title>{escape(title)}</title>',
        f'<text x="4" y="16" font-weight="bold">{escape(title)}</text>',
    ]
    for number, (name, parts) in enumerate(rows.items()):
        shown += _bar(name, parts, 28 + ROW * number)
    shown += _key({part for parts in rows.values() for part in parts}, height - 6)
    return "\n".join([*shown, "</svg>", ""])


def _bar(name: str, parts: Mapping[str, int], y: int) -> list[str]:
    total = sum(parts.values())
    shown = [f'<text x="4" y="{y + 13}">{escape(name)} ({total})</text>']
    x = float(LEFT)
    for part, count in sorted(parts.items()):
        width = (WIDTH - LEFT - 8) * count / total
        colour = COLOURS.get(part, "#5b7fa6")
        shown.append(
            f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="{ROW - 6}" fill="{colour}">'
            f"<title>{escape(part)}: {count}</title></rect>"
        )
        x += width
    return shown


def _key(parts: set[str], y: int) -> list[str]:
    shown, x = [], LEFT
    for part in sorted(parts):
        colour = COLOURS.get(part, "#5b7fa6")
        shown.append(f'<rect x="{x}" y="{y - 9}" width="10" height="10" fill="{colour}"/>')
        shown.append(f'<text x="{x + 14}" y="{y}">{escape(part)}</text>')
        x += 24 + 8 * len(part)
    return shown
