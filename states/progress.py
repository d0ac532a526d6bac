"""How far the work is: one piece of a log into a `Progress` (finding 8: any counter that moves is progress).

Every line gives readings (`counters`), readings become series (`series`), one series stands for the run
(`main_counter`). `advance` (in `track`) folds what one look shows into what all looks have taught.

Never: a clock of its own; a number that counts attempts or waiting; memory beyond `LINES_MAX` lines.
"""

from __future__ import annotations

import bisect
import math
import statistics
from collections import Counter as Tally
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from states.logs.facts import Facts, facts
from states.logs.losses import LossBook, nan_run, thinned
from states.logs.main_counter import choose
from states.logs.phrases_of_progress import OPENING, phase, template
from states.logs.pulse import NO_PULSE, Pulse
from states.logs.series import Series, is_real, share_totals, totals, with_total
from states.logs.stamps import Stamp, clock
from states.logs.tables import Table
from states.logs.track import advance
from states.logs.units import unit_of
from states.reading import Line, Point, Progress, Quote

__all__ = ["advance", "measure"]

LINES_MAX = 20_000
"""Lines of a piece that are measured, counted from its end."""

REQUESTS_MIN = 3
"""Requests that succeeded, in a piece without a counter, before it is read as the log of a service or its client."""

CLOSED_RISES = 2
OPENINGS_MIN = 3
"""Phases of starting up behind the last step that make a new start; one or two may belong to an evaluation."""

TRANSFERS = ("byte", "KiB")
QUOTE_CHARS = 400
COUNTERS_MAX = 24
_RECENT_MOVES = 40
_THROUGHPUTS_MAX = 50


@dataclass
class _Piece:
    """What one pass over the lines leaves behind; indexes count the lines of the piece."""

    series: dict[str, Series] = field(default_factory=dict)
    losses: LossBook = field(default_factory=LossBook)
    pulses: dict[int, Pulse] = field(default_factory=dict)
    stamps: dict[int, Stamp] = field(default_factory=dict)
    at: dict[int, list[str]] = field(default_factory=dict)
    overflows: list[float] = field(default_factory=list)
    served: int = -1
    requests: int = 0
    sped: int = -1
    phase: tuple[str, int] = ("", 0)
    openings: dict[str, int] = field(default_factory=dict)
    ends: list[int] = field(default_factory=list)
    closings: list[int] = field(default_factory=list)
    throughputs: list[float] = field(default_factory=list)
    table: Table = field(default_factory=Table)


def measure(lines: Sequence[Line]) -> Progress:
    """What a piece of a log says about how far the work is.

    lines: from `text.lines`, oldest first, refreshes included; only the last LINES_MAX count.
    """
    lines = lines[-LINES_MAX:]
    piece = _Piece()
    for index, line in enumerate(lines):
        if line.text:
            _take(piece, index, line)
    real = [one for one in piece.series.values() if is_real(one)]
    goals = totals(piece.series.values())
    for one in real:
        with_total(one, goals)
    share_totals(real)
    main = choose(real, piece.at, goals)
    quiet = main is None or (main.kind in ("word", "bare") and not main.unit)
    anew = main is not None and _started_anew(piece, main, real)
    service = quiet and any(value > 0 for value in piece.throughputs)
    service = service or (main is None and piece.requests >= REQUESTS_MIN)
    read = _progress(piece, lines, real, None if service else main, service)
    return read.model_copy(update={"main": None, "anew": True}) if anew else read


def _take(piece: _Piece, index: int, line: Line) -> None:
    text = line.text
    told = facts(text)
    names = []
    for reading in [*told.readings, *piece.table.readings(text)]:
        name = reading.name
        if reading.context == "eval" and reading.kind != "bar":
            name = f"eval:{name}"
        one = piece.series.get(name)
        if one is None:
            one = piece.series[name] = Series(name, reading.kind, reading.unit)
        one.add(reading, index, line.number, line.rank)
        if reading.kind != "quota" or one.rises:
            names.append(name)
    if names:
        piece.at[index] = names
    if told.pulse != NO_PULSE:
        piece.pulses[index] = told.pulse
    if told.stamp is not None:
        piece.stamps[index] = told.stamp
    piece.losses.add(told.pieces, index, told.losses)
    _sentences(piece, index, text, told)


def _sentences(piece: _Piece, index: int, text: str, told: Facts) -> None:
    said = told.said
    if said.overflowed:
        # Glued behind a bar it tells of the step after the one that the bar shows.
        glued = index in piece.at and "it]" in text.partition("verflow")[0].partition("VERFLOW")[0]
        piece.overflows.append(index + 0.5 * glued)
    if said.finished:
        piece.ends.append(index)
    elif said.closes and index not in piece.at:
        piece.closings.append(index)
    if told.served:
        piece.served = index
        piece.requests += 1
    if named := said.phase:
        piece.phase = (named, index)
        if named in OPENING:
            piece.openings[named] = index
    if (figure := said.throughput) is not None:
        piece.throughputs.append(figure)
        piece.sped = index if figure > 0 else piece.sped
        del piece.throughputs[:-_THROUGHPUTS_MAX]


def _progress(
    piece: _Piece, lines: Sequence[Line], real: Sequence[Series], main: Series | None, service: bool
) -> Progress:
    points = piece.losses.points.get(piece.losses.chosen(), [])
    values = [value for _, value in points]
    live = sorted(real, key=lambda one: (one is main, one.last_index), reverse=True)[:COUNTERS_MAX]
    moved = max((one.moved_index for one in real), default=-1)
    again, quote = _repeats(piece, lines, max(moved, piece.sped, piece.served) if service else moved)
    rate, cadence = _speed(piece, main, clock([piece.stamps.get(index) for index in range(len(lines))]))
    named, where = _phase(piece, main)
    return Progress(
        main=main.counter() if main else None,
        counters=tuple(one.counter() for one in live),
        losses=_curve(main, points),
        loss=values[-1] if values else None,
        loss_nan_run=nan_run(values),
        loss_missing_steps=_missing(main, points),
        overflow_run=_overflow_run(piece, main),
        metrics={name: value for name, value in piece.losses.metrics.items() if math.isfinite(value)},
        rate_per_s=rate,
        log_eta_s=_log_eta(piece, main),
        cadence_s=cadence,
        stride=_stride(main),
        segments=main.segments if main else 0,
        phase=named,
        phase_line=lines[where].number if named else 0,
        finished=_finished(piece, lines, moved),
        throughput_only=service,
        from_zero=_from_zero(main, real),
        repeats=again,
        repeated=quote,
    )


def _started_anew(piece: _Piece, main: Series, real: Sequence[Series]) -> bool:
    """Whether the program started again behind its last step: several ways of starting up were named since."""
    moved = max(one.moved_index for one in real if one is main or one.context != "load")
    opened = {name for name, index in piece.openings.items() if index > moved}
    return len(opened) >= OPENINGS_MIN and bool(opened & {"initializing", "resuming"})


def _from_zero(main: Series | None, real: Sequence[Series]) -> int:
    """How often a transfer began again from nothing while nothing else moved."""
    if main is None or not main.anew_at:
        return 0
    of_file = main.name.startswith("bar:") and "." in main.name
    if not (of_file or main.context == "load" or main.unit in TRANSFERS):
        return 0
    others = max((one.moved_index for one in real if one is not main), default=-1)
    return sum(1 for index in main.anew_at if index > others)


def _curve(main: Series | None, points: Sequence[tuple[int, float]]) -> tuple[Point, ...]:
    """The losses at the main counter's values when they were printed; numbered without a counter."""
    if main is None:
        return thinned([Point(step=order, value=value) for order, (_, value) in enumerate(points, 1)])
    ats = [at for _, at in main.moves]
    steps = [main.first, *(value for value, _ in main.moves)]
    return thinned(
        [Point(step=steps[bisect.bisect_right(ats, index)], value=value) for index, value in points]
    )


def _log_eta(piece: _Piece, main: Series | None) -> float | None:
    """The ETA that stands with the main counter; if none ever does, the last one not of a side bar."""
    written = [(index, beat.eta_s) for index, beat in piece.pulses.items() if beat.eta_s is not None]
    beside = [eta for index, eta in written if main is not None and main.name in piece.at.get(index, ())]
    if beside or not written:
        return beside[-1] if beside else None
    index, eta = written[-1]
    others = [piece.series[name] for name in piece.at.get(index, ())]
    aside = bool(others) and all(one.context == "load" or one.value == one.total for one in others)
    return None if main is not None and aside else eta


def _speed(
    piece: _Piece, main: Series | None, times: Sequence[float | None]
) -> tuple[float | None, float | None]:
    """(main units per second, seconds between moves), by the log's elapsed times, stamps, or own figure."""
    if main is None:
        return None, None
    moves = _segment(main)[-_RECENT_MOVES:]
    beats = [piece.pulses.get(index, NO_PULSE) for _, index in moves]
    for shown in ([beat.elapsed_s for beat in beats], [times[index] for _, index in moves]):
        timed = [(value, at) for (value, _), at in zip(moves, shown, strict=True) if at is not None]
        if len(timed) >= 2 and timed[-1][1] > timed[0][1]:
            return _slope(timed)
    own = [beat.rate_per_s for beat in beats[-5:] if beat.rate_per_s and _is_rate_of(main, beat)]
    if not own:
        return None, None
    rate = statistics.median(own)
    gains = [after - before for (before, _), (after, _) in pairwise(moves)]
    return rate, (statistics.median(gains) if gains else 1.0) / rate


def _stride(main: Series | None) -> float | None:
    """How far the main counter goes from one print to the next."""
    if main is None:
        return None
    gains = [after - before for (before, _), (after, _) in pairwise(_segment(main)[-_RECENT_MOVES:])]
    return statistics.median(gains) if gains else None


def _is_rate_of(main: Series, beat: Pulse) -> bool:
    """Whether a rate on the counter's line is the counter's own: samples per second are not steps."""
    if main.kind == "bar":
        return True
    return beat.rate_of in ("it", "iter") if main.unit in ("step", "") else unit_of(beat.rate_of) == main.unit


def _segment(main: Series) -> list[tuple[float, int]]:
    """The moves since the counter last started again."""
    start = main.falls_at[-1] if main.falls_at else 0
    return [(value, index) for value, index in main.moves if index >= start]


def _slope(timed: Sequence[tuple[float, float]]) -> tuple[float | None, float | None]:
    """(rate, cadence) over (value, seconds); where many moves share a stamp the cadence is an average."""
    span = timed[-1][1] - timed[0][1]
    gained = timed[-1][0] - timed[0][0]
    gaps = [after - before for (_, before), (_, after) in pairwise(timed) if after > before]
    dense = len(gaps) < (len(timed) - 1) / 2
    cadence = span / (len(timed) - 1) if dense else statistics.median(gaps)
    return (gained / span if gained > 0 else None), cadence


def _missing(main: Series | None, points: Sequence[tuple[int, float]]) -> int:
    """Main moves since the loss was last finite, if most of the moves before carried one (finding 9)."""
    finite = [index for index, value in points if math.isfinite(value)]
    if main is None or not finite:
        return 0
    moves = [index for _, index in _segment(main)]
    after = [index for index in moves if index > finite[-1]]
    before = [index for index in moves if index <= finite[-1]]
    if not after or not before:
        return 0
    beside = len(set(finite).intersection(moves))
    if len(after) == 1 and 2 * beside < len(finite):
        return 0  # the step is printed ahead of its loss, which may be on its way
    usual = max(1.0, len(before) / max(1, sum(1 for index in finite if index >= before[0])))
    return len(after) if len(after) >= 2 * usual or usual <= 1.5 else 0


def _overflow_run(piece: _Piece, main: Series | None) -> int:
    """Steps at the end of the piece that were skipped for an overflow without a good step between."""
    if main is None:
        last = max((points[-1][0] for points in piece.losses.points.values()), default=-1)
        return sum(1 for index in piece.overflows if index > last)
    moves = list(main.moves)
    run = sum(1 for index in piece.overflows if index > moves[-1][1])
    for (before, since), (value, until) in reversed(list(pairwise(moves))):
        skipped = sum(1 for index in piece.overflows if since < index <= until)
        if not skipped or skipped < value - before:
            break
        run += 1
    return run


def _phase(piece: _Piece, main: Series | None) -> tuple[str, int]:
    """(phase, line index): the last sentence, unless the run's own counter went on after it.

    A counter that loads or fetches is itself a phase and ends none.
    """
    named, where = piece.phase
    if main is None:
        return named, where
    if main.context == "load":
        own = phase(main.name) or named or "loading data"
        return (named, where) if named and where > main.first_index else (own, main.last_index)
    return (named, where) if where >= main.moved_index else ("", 0)


def _finished(piece: _Piece, lines: Sequence[Line], moved: int) -> Quote | None:
    """The last sentence that says the work is complete, unless counters went on after it.

    One that only tells the time is believed once, after a counter that had been running: others tell it per epoch.
    """
    ends = piece.ends
    if len(piece.closings) == 1 and any(one.rises >= CLOSED_RISES for one in piece.series.values()):
        ends = sorted([*ends, *piece.closings])
    index = ends[-1] if ends else -1
    return _quote(lines[index]) if index >= 0 and index >= moved - 1 else None


def _repeats(piece: _Piece, lines: Sequence[Line], moved: int) -> tuple[int, Quote | None]:
    """How often the commonest message came again since anything moved, and where it stands last."""
    changed = max([moved, piece.served, *map(_last_change, piece.losses.points.values())])
    seen: Tally[str] = Tally()
    where: dict[str, Line] = {}
    for line in lines[changed + 1 :]:
        shape = template(line.text)
        if any(map(str.isalpha, shape)):
            seen[shape] += 1
            where[shape] = line
    if not seen:
        return 0, None
    shape, times = seen.most_common(1)[0]
    return (times - 1, _quote(where[shape])) if times > 1 else (0, None)


def _last_change(points: Sequence[tuple[int, float]]) -> int:
    """The line index at which a figure last took another value."""
    for (_, before), (index, value) in reversed(list(pairwise(points))):
        if value != before and not (math.isnan(value) and math.isnan(before)):
            return index
    return points[0][0]


def _quote(line: Line) -> Quote:
    return Quote(line=line.number, text=line.text[:QUOTE_CHARS])
