"""Pictures that are made here, as SVG without a script or a style: curves, and the states with the present one lit.

Colours come from the page's style sheet by class, so that both follow light and dark.

Never: a second description of the lifecycle; the arrows are read from the table.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import NamedTuple

from markupsafe import Markup, escape

from states.job import TERMINAL, State
from states.reading import Point
from states.table import TABLE
from states.words.wording import number

WIDTH, HEIGHT, EDGE = 640, 180, 8
"""Of a curve, in its own units; the page scales it."""

BOX_W, BOX_H, COLUMN, ROW = 112, 34, 150, 78
PLACES: dict[State, tuple[float, float]] = {
    State.preflight: (0, 1), State.submitting: (1, 1), State.queued: (2, 1), State.running: (3, 1),
    State.collecting: (4, 1), State.blocked: (2.5, 0), State.stopping: (3, 2), State.not_submitted: (0.5, 2),
    State.succeeded: (5, 0), State.failed: (5, 0.67), State.stopped: (5, 1.33), State.unknown: (5, 2),
}  # fmt: skip
"""Column and row of each state."""

Arrow = tuple[State, State]
ARROWS: tuple[Arrow, ...] = tuple(
    dict.fromkeys((source, row.to) for row in TABLE for source in row.source if row.to not in (None, source))
)


class Curve(NamedTuple):
    """A series of numbers by its name."""

    name: str
    points: Sequence[Point]

    @property
    def finite(self) -> list[Point]:
        """What can be drawn."""
        return [point for point in self.points if math.isfinite(point.value) and math.isfinite(point.step)]


def curve(series: Curve) -> Markup:
    """The series as a picture; "" with fewer than two finite points. What is not finite leaves a gap."""
    finite = series.finite
    if len(finite) < 2:
        return Markup("")
    low, high = min(p.value for p in finite), max(p.value for p in finite)
    first, last = min(p.step for p in finite), max(p.step for p in finite)
    lines = "".join(_line(part, (first, last), (low, high)) for part in _unbroken(series.points))
    said = escape(f"{series.name}: {number(finite[0].value)} - {number(finite[-1].value)}")
    return Markup(
        f'<svg class="curve" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{said}">'
        f'<line class="axis" x1="0" y1="{HEIGHT - 1}" x2="{WIDTH}" y2="{HEIGHT - 1}"/>{lines}'
        f'<text x="4" y="14">{escape(number(high))}</text>'
        f'<text x="4" y="{HEIGHT - 8}">{escape(number(low))}</text>'
        f'<text class="end" x="{WIDTH - 4}" y="{HEIGHT - 8}">{escape(number(last))}</text></svg>'
    )


def _unbroken(points: Sequence[Point]) -> list[list[Point]]:
    parts: list[list[Point]] = [[]]
    for point in points:
        if math.isfinite(point.value) and math.isfinite(point.step):
            parts[-1].append(point)
        elif parts[-1]:
            parts.append([])
    return [part for part in parts if part]


def _line(points: Sequence[Point], across: tuple[float, float], up: tuple[float, float]) -> str:
    corners = [
        f"{_at(p.step, across, EDGE, WIDTH - EDGE):.1f},{_at(p.value, up, HEIGHT - 24, 20):.1f}"
        for p in points
    ]
    if len(corners) == 1:
        x, y = corners[0].split(",")
        return f'<circle cx="{x}" cy="{y}" r="2"/>'
    return f'<polyline points="{" ".join(corners)}"/>'


def _at(value: float, of: tuple[float, float], start: float, end: float) -> float:
    """Where a value stands between two places. Halved first, so that the span of the largest floats is finite."""
    span = of[1] / 2 - of[0] / 2
    share = (value / 2 - of[0] / 2) / span if span > 0 else 0.5
    return start + share * (end - start)


# --- the states --------------------------------------------------------------------------------------------


def diagram(
    present: State, been: Collection[State], taken: Collection[Arrow], names: dict[State, str]
) -> Markup:
    """The lifecycle: every state and arrow of the table, where this run has been, and where it is."""
    arrows = sorted(ARROWS, key=lambda arrow: arrow in taken)
    width, height = int(5 * COLUMN + BOX_W + 8), int(2 * ROW + BOX_H + 8)
    inner = "".join([*(_arrow(arrow, arrow in taken) for arrow in arrows)])
    boxes = "".join(_box(state, names[state], state is present, state in been) for state in PLACES)
    heads = "".join(
        f'<marker id="head-{kind}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
        f'orient="auto"><path class="head {kind}" d="M0 0 L8 4 L0 8 z"/></marker>'
        for kind in ("open", "taken")
    )
    return Markup(
        f'<svg class="diagram" viewBox="0 0 {width} {height}" role="img" aria-label="{escape(names[present])}">'
        f"<defs>{heads}</defs>{inner}{boxes}</svg>"
    )


def _corner(state: State) -> tuple[float, float]:
    column, row = PLACES[state]
    return 4 + column * COLUMN, 4 + row * ROW


def _box(state: State, name: str, is_present: bool, was: bool) -> str:
    x, y = _corner(state)
    kind = "present" if is_present else "been" if was else "other"
    ended = " ended" if state in TERMINAL else ""
    lit = ' aria-current="step"' if is_present else ""
    return (
        f'<g class="state {kind}{ended}" data-state="{state}"{lit}>'
        f'<rect x="{x:g}" y="{y:g}" width="{BOX_W}" height="{BOX_H}" rx="8"/>'
        f'<text x="{x + BOX_W / 2:g}" y="{y + BOX_H / 2 + 4:g}">{escape(name)}</text></g>'
    )


def _arrow(arrow: Arrow, taken: bool) -> str:
    """From border to border, bent a little to its left, so that there and back are two."""
    (x1, y1), (x2, y2) = (_middle(state) for state in arrow)
    length = math.hypot(x2 - x1, y2 - y1) or 1.0
    bend = 10 + length / 24
    mid_x, mid_y = (x1 + x2) / 2 + (y2 - y1) / length * bend, (y1 + y2) / 2 - (x2 - x1) / length * bend
    (start_x, start_y), (end_x, end_y) = _border(arrow[0], mid_x, mid_y), _border(arrow[1], mid_x, mid_y)
    kind = "taken" if taken else "open"
    return (
        f'<path class="arrow {kind}" marker-end="url(#head-{kind})" '
        f'd="M{start_x:.1f} {start_y:.1f} Q{mid_x:.1f} {mid_y:.1f} {end_x:.1f} {end_y:.1f}"/>'
    )


def _middle(state: State) -> tuple[float, float]:
    x, y = _corner(state)
    return x + BOX_W / 2, y + BOX_H / 2


def _border(state: State, to_x: float, to_y: float) -> tuple[float, float]:
    """Where the line from the middle of a box to a point leaves it."""
    x, y = _middle(state)
    dx, dy = to_x - x, to_y - y
    scale = min(BOX_W / 2 / abs(dx) if dx else math.inf, BOX_H / 2 / abs(dy) if dy else math.inf, 1.0)
    return x + dx * scale, y + dy * scale
