"""How far the work is: one piece of a log into a `Progress` (finding 8: any counter that moves is progress).

Every line gives readings (`counters`), readings become series (`series`), one series stands for the run: a
training step, iteration or epoch before inner bars, evaluation and loading. `advance` (in `track`) folds the looks.

Never: a clock of its own; a number that counts attempts or waiting; memory beyond `LINES_MAX` lines.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter as Tally
from collections.abc import Sequence
from dataclasses import dataclass, field

from states.counters import Keyed, Pulse, Reading, keyed, pulse, readings
from states.losses import LossBook, nan_run, thinned
from states.phrases_of_progress import finished, overflowed, phase, served, template, throughput
from states.reading import Counter, Line, Point, Progress, Quote
from states.series import Series, is_real, share_totals, totals, with_total
from states.stamps import clock
from states.track import advance

__all__ = ["advance", "measure"]

LINES_MAX = 20_000
"""Lines of a piece that are measured, counted from its end."""

QUOTE_CHARS = 400
COUNTERS_MAX = 24
_RECENT_MOVES = 40
_UNIT_SCORES = {"step": 100.0, "episode": 92.0, "epoch": 90.0, "batch": 50.0}
_KIND_SCORES = {"bar": 58.0, "pair": 46.0, "percent": 44.0, "bytes": 40.0, "countdown": 30.0, "word": 20.0, "bare": 15.0}


@dataclass
class _Piece:
    """What one pass over the lines leaves behind; indexes count the lines of the piece."""

    series: dict[str, Series] = field(default_factory=dict)
    losses: LossBook = field(default_factory=LossBook)
    pulses: dict[int, Pulse] = field(default_factory=dict)
    at: dict[int, list[str]] = field(default_factory=dict)
    overflows: list[int] = field(default_factory=list)
    moved: int = -1
    served: int = -1
    phase: tuple[str, int] = ("", 0)
    ends: list[int] = field(default_factory=list)
    throughputs: list[float] = field(default_factory=list)


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
    main = _main(real, piece, goals)
    times = clock([line.text for line in lines])
    quiet = main is None or (main.kind in ("word", "bare") and not main.unit)
    service = quiet and any(value > 0 for value in piece.throughputs)
    if service:
        main = None
    return _progress(piece, lines, real, main, times, service)


def _take(piece: _Piece, index: int, line: Line) -> None:
    text = line.text
    pieces = keyed(text)
    found = readings(text, pieces)
    names = []
    for reading in found:
        name = f"eval:{reading.name}" if reading.context == "eval" and reading.kind != "bar" else reading.name
        one = piece.series.get(name)
        if one is None:
            one = piece.series[name] = Series(name, reading.kind, reading.unit)
        one.add(reading, index, line.number, line.rank)
        if reading.kind != "quota" or one.rises:
            names.append(name)
    if names:
        piece.at[index] = names
        beat = pulse(text)
    else:
        beat = pulse(text) if "ta" in text or "TA" in text or "/s" in text or "emaining" in text or "剩余" in text else Pulse()
    if beat != Pulse():
        piece.pulses[index] = beat
    piece.losses.add(pieces, index)
    _sentences(piece, index, text)


def _sentences(piece: _Piece, index: int, text: str) -> None:
    if overflowed(text):
        piece.overflows.append(index)
    if finished(text):
        piece.ends.append(index)
    if served(text):
        piece.served = index
    if named := phase(text):
        piece.phase = (named, index)
    if (figure := throughput(text)) is not None:
        piece.throughputs.append(figure)
        del piece.throughputs[:-50]


def _main(real: Sequence[Series], piece: _Piece, goals: dict[str, float]) -> Series | None:
    """The series that stands for the run; of equals the one with more moves, then the later one."""
    if not real:
        return None
    epoch = max(
        (one for one in real if one.unit == "epoch" and one.kind in ("unit", "quota") and one.context != "eval"),
        key=lambda one: (one.rises, one.last_index),
        default=None,
    )
    newest = max(one.moved_index for one in real)
    return max(real, key=lambda one: (_score(one, epoch, piece, goals, newest), one.rises, one.last_index))


def _score(one: Series, epoch: Series | None, piece: _Piece, goals: dict[str, float], newest: int) -> float:
    score = _KIND_SCORES.get(one.kind, 0.0)
    if one.kind in ("unit", "quota") or (one.kind == "bar" and one.unit):
        score = _UNIT_SCORES.get(one.unit, 40.0)
    elif one.kind in ("pair", "word") and one.unit:
        score += 16.0
    elif one.name == "kib":
        score += 6.0
    if one.kind == "bar" and not one.unit:
        score += _bar_bonus(one, goals)
    if one is epoch and any(not value.is_integer() for value, _ in one.moves):
        score -= 30.0
    if epoch is not None and one is not epoch and _is_inner(one, epoch, piece):
        score -= 30.0
    score -= {"eval": 35.0, "load": 30.0}.get(one.context, 0.0)
    score += min(one.rises, 10) * 0.3
    if epoch is not None and one is not epoch and one.seen == 1 and epoch.seen >= 2:
        score -= 20.0
    if one.last_index < newest - max(20, 4 * one.spacing()):
        score -= 25.0
    if one.seen >= 4 and one.rises == 0 and one.segments == 0:
        score -= 45.0
    if one.total and one.value >= one.total and one.moved_index < newest - 2:
        score -= 25.0
    return score + (3.0 if one.total else 0.0) + (3.0 if one.name.startswith("global") else 0.0)


def _bar_bonus(one: Series, goals: dict[str, float]) -> float:
    """A nameless bar or one named after training is the run's own, surely so if a header named its total."""
    if one.total and one.total == goals.get("step"):
        return 41.0
    label = one.name.lower()
    if "train" in label or "progress" in label or label in ("bar", "bar:", "bar:it") or label.startswith("bar/"):
        return 14.0
    return 14.0 if label.startswith("bar:epoch") else 0.0


def _is_inner(one: Series, epoch: Series, piece: _Piece) -> bool:
    """Whether a counter runs within an epoch: it falls when the epoch moves, or stands unnamed beside it."""
    if one.unit == "epoch" or one.kind in ("percent", "bytes"):
        return False
    if one.falls_at and epoch.rises and one.segments >= 0.5 * epoch.rises:
        return True
    if epoch.rises == 0 and epoch.value == 0 and not epoch.total:
        return False
    beside = epoch.name in piece.at.get(one.last_index, ())
    if one.kind in ("bar", "pair") and not one.unit:
        return beside or one.name.lower().startswith("bar:epoch")
    if one.kind == "unit" and one.total and epoch.total and epoch.total > 1 and beside:
        share = one.value / one.total
        low, high = (epoch.value - 1.5) / epoch.total, (epoch.value + 1.5) / epoch.total
        return not low <= share <= high
    return False


def _progress(
    piece: _Piece,
    lines: Sequence[Line],
    real: Sequence[Series],
    main: Series | None,
    times: Sequence[float | None],
    service: bool,
) -> Progress:
    key = piece.losses.chosen()
    points = piece.losses.points.get(key, [])
    values = [value for _, value in points]
    live = sorted(real, key=lambda one: (one is main, one.last_index), reverse=True)[:COUNTERS_MAX]
    moved = max((one.moved_index for one in real), default=-1)
    again, quote = _repeats(piece, lines, moved)
    rate, cadence = _speed(piece, main, times)
    return Progress(
        main=main.counter() if main else None,
        counters=tuple(one.counter() for one in live),
        losses=thinned([Point(step=_step_at(main, index, order), value=value) for order, (index, value) in enumerate(points, 1)]),
        loss=values[-1] if values else None,
        loss_nan_run=nan_run(values),
        loss_missing_steps=_missing(main, points),
        overflow_run=_overflow_run(piece, main),
        metrics={name: value for name, value in piece.losses.metrics.items() if math.isfinite(value)},
        rate_per_s=rate,
        log_eta_s=_log_eta(piece, main),
        cadence_s=cadence,
        segments=main.segments if main else 0,
        phase=piece.phase[0],
        phase_line=lines[piece.phase[1]].number if piece.phase[0] else 0,
        finished=_finished(piece, lines, moved),
        throughput_only=service,
        repeats=again,
        repeated=quote,
    )


def _step_at(main: Series | None, index: int, order: int) -> float:
    """The main counter's value when a line was printed; the ordinal of the value if no counter was there yet."""
    if main is None:
        return float(order)
    value = next((value for value, at in reversed(main.moves) if at <= index), None)
    return value if value is not None else main.first


def _log_eta(piece: _Piece, main: Series | None) -> float | None:
    """The ETA that stands with the main counter; if none ever does, the last one in the piece."""
    written = [(index, beat.eta_s) for index, beat in piece.pulses.items() if beat.eta_s is not None]
    if not written:
        return None
    beside = [eta for index, eta in written if main is not None and main.name in piece.at.get(index, ())]
    return beside[-1] if beside else written[-1][1]


def _speed(piece: _Piece, main: Series | None, times: Sequence[float | None]) -> tuple[float | None, float | None]:
    """(main units per second, seconds between moves), by the log's elapsed times, stamps, or its own figure."""
    if main is None:
        return None, None
    start = main.falls_at[-1] if main.falls_at else 0
    moves = [(value, index) for value, index in main.moves if index >= start][-_RECENT_MOVES:]
    for times_of in (
        [beat.elapsed_s if (beat := piece.pulses.get(index)) else None for _, index in moves],
        [times[index] for _, index in moves],
    ):
        timed = [(value, at) for (value, _), at in zip(moves, times_of, strict=True) if at is not None]
        if len(timed) >= 2 and timed[-1][1] > timed[0][1]:
            return _slope(timed)
    own = [beat.rate_per_s for _, index in moves[-5:] if (beat := piece.pulses.get(index)) and beat.rate_per_s]
    if not own or main.unit == "epoch":
        return None, None
    rate = statistics.median(own)
    steps = [after - before for (before, _), (after, _) in zip(moves, moves[1:], strict=False)]
    return rate, (statistics.median(steps) if steps else 1.0) / rate


def _slope(timed: Sequence[tuple[float, float]]) -> tuple[float | None, float | None]:
    span = timed[-1][1] - timed[0][1]
    gained = timed[-1][0] - timed[0][0]
    gaps = [after - before for (_, before), (_, after) in zip(timed, timed[1:], strict=False) if after > before]
    dense = len(gaps) < (len(timed) - 1) / 2
    cadence = span / (len(timed) - 1) if dense or not gaps else statistics.median(gaps)
    return (gained / span if gained > 0 else None), cadence


def _missing(main: Series | None, points: Sequence[tuple[int, float]]) -> int:
    """Main moves since the loss was last finite, if most of the moves before carried one (finding 9)."""
    finite = [index for index, value in points if math.isfinite(value)]
    if main is None or not finite:
        return 0
    start = main.falls_at[-1] if main.falls_at else 0
    moves = [index for _, index in main.moves if index >= start]
    after = [index for index in moves if index > finite[-1]]
    before = [index for index in moves if index <= finite[-1]]
    if not after or not before:
        return 0
    usual = max(1.0, len(before) / max(1, sum(1 for index in finite if index >= before[0])))
    return len(after) if len(after) >= 2 * usual or usual <= 1.5 else 0


def _overflow_run(piece: _Piece, main: Series | None) -> int:
    """Steps at the end of the piece that were skipped for an overflow without a good step between."""
    if not piece.overflows:
        return 0
    if main is None:
        last = max((points[-1][0] for points in piece.losses.points.values()), default=-1)
        return sum(1 for index in piece.overflows if index > last)
    moves = list(main.moves)
    run = sum(1 for index in piece.overflows if index > moves[-1][1])
    for (before, since), (value, until) in zip(reversed(moves[:-1]), reversed(moves[1:]), strict=True):
        skipped = sum(1 for index in piece.overflows if since < index <= until)
        if not skipped or skipped < value - before:
            break
        run += 1
    return run


def _finished(piece: _Piece, lines: Sequence[Line], moved: int) -> Quote | None:
    """The last sentence that says the work is complete, unless counters went on after it."""
    for index in reversed(piece.ends):
        if index >= moved - 1:
            return _quote(lines[index])
    return None


def _repeats(piece: _Piece, lines: Sequence[Line], moved: int) -> tuple[int, Quote | None]:
    """How often the commonest message came again since anything moved, and where it stands last."""
    changed = moved
    for points in piece.losses.points.values():
        changed = max(changed, _last_change(points))
    still = lines[max(changed, piece.served) + 1 :]
    seen: Tally[str] = Tally()
    where: dict[str, Line] = {}
    for line in still:
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
    for (_, before), (index, value) in zip(reversed(points[:-1]), reversed(points[1:]), strict=True):
        if value != before and not (math.isnan(value) and math.isnan(before)):
            return index
    return points[0][0]


def _quote(line: Line) -> Quote:
    return Quote(line=line.number, text=line.text[:QUOTE_CHARS])
