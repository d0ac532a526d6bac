"""The values of named metrics in a piece of log, each at the step it was printed at, for the goals of a request (E8).

A metric is the key as the log writes it (`val_acc: 0.91`, `eval/loss=2.1`). Its step is the last value of the main
counter on the same line or above it.

Never: take another key for the one that was named; keep more than POINTS_MAX values of one.
"""

from __future__ import annotations

from collections.abc import Sequence

from states.logs.facts import facts
from states.reading import Line, Point, Progress

POINTS_MAX = 60
"""Values kept of each metric, the newest."""


def values_of(
    names: Sequence[str], found: Sequence[Line], progress: Progress
) -> dict[str, tuple[Point, ...]]:
    """{metric: its points, oldest first}; metrics that do not occur are left out.

    found: cleaned lines, oldest first. progress: what was measured in them. Values before the first step of the
    piece are left out, since it is not known where they belong; without a main counter every step is 0.
    """
    wanted, main = set(names), progress.main
    points: dict[str, list[Point]] = {}
    step = None if main is not None else 0.0
    for line in found if wanted else ():
        told = facts(line.text)
        if main is not None:
            here = [reading.value for reading in told.readings if reading.name == main.name]
            step = here[-1] if here else step
        for piece in told.pieces:
            if piece.key in wanted and step is not None:
                points.setdefault(piece.key, []).append(Point(step=step, value=piece.value))
    return {name: tuple(kept[-POINTS_MAX:]) for name, kept in points.items()}
