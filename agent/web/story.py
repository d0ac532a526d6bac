"""What a run's page tells of its journal: where it has been, in our words and in the cluster's, and its curves.

Never: a conclusion of its own; everything here stands in the journal or in the run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from agent.database import Record
from agent.web.drawing import Arrow, Curve
from states.job import Job, State
from states.reading import LOSS_POINTS_MAX, Point

BEATS_MAX = 80
CURVES_MAX = 6
LOSS_NAMES = frozenset({"loss", "train_loss", "training_loss"})
"""Metrics that the loss curve shows already."""


class Beat(NamedTuple):
    """A line of the timeline. state: of the machine, where it moved; phase and native: of a look at the cluster."""

    at: datetime
    state: str
    phase: str
    native: str
    said: str


def beats(rows: Sequence[Record]) -> list[Beat]:
    """Every move and every new word of the cluster, oldest first; the newest BEATS_MAX of them."""
    found: list[Beat] = []
    seen: tuple[str, str] = ("", "")
    for row in rows:
        look = row["body"].get("observation", {}) if row["kind"] == "observed" else {}
        words = ", ".join(filter(None, (look.get("native", ""), look.get("reason", ""))))
        phase = str(look.get("phase", ""))
        news = bool(look) and (phase, words) != seen
        moved = row["source"] != row["to"] or not found
        if news:
            seen = (phase, words)
        if moved or news:
            state = row["to"] if moved else ""
            found.append(Beat(row["at"], state, phase if news else "", words if news else "", row["said"]))
    return found[-BEATS_MAX:]


def been(rows: Sequence[Record]) -> tuple[set[State], set[Arrow]]:
    """The states that the run was in, and the ways that it took."""
    states = {State(row[end]) for row in rows for end in ("source", "to")}
    arrows = {(State(row["source"]), State(row["to"])) for row in rows if row["source"] != row["to"]}
    return states, arrows


def curves(job: Job, rows: Sequence[Record]) -> list[Curve]:
    """The loss, then the other figures of its log and the metrics of its goals, by name; not what only counts."""
    found: dict[str, dict[float, float]] = {}
    for row in rows:
        if row["kind"] == "logs_read":
            _take(found, row["body"])
    counters = {name for counter in job.track.counters for name in (counter.name, counter.unit)}
    series = [
        Curve(
            name, [Point(step=step, value=value) for step, value in sorted(points.items())][-LOSS_POINTS_MAX:]
        )
        for name, points in found.items()
        if name not in LOSS_NAMES and name not in counters
    ]
    drawn = [Curve("loss", job.track.losses), *series]
    return [each for each in drawn if len(each.finite) > 1][:CURVES_MAX]


def _take(found: dict[str, dict[float, float]], body: Mapping[str, Any]) -> None:
    progress = body.get("digest", {}).get("progress", {})
    step = (progress.get("main") or {}).get("value")
    if step is not None:
        for name, value in progress.get("metrics", {}).items():
            found.setdefault(name, {})[float(step)] = float(value)
    for name, points in body.get("series", {}).items():
        for point in points:
            found.setdefault(name, {})[float(point["step"])] = float(point["value"])
