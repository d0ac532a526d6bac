"""What all looks at one attempt's log have taught: folds one `Progress` after another into a `Track`.

A milestone is a counter above its best within its segment, a main counter that started again, or a new
phase sentence (E5: milestones, not output). The cadence is learnt per phase from the times between
milestones (E4, E6).

Never: read a clock (times come in), judge (that is `verdict`), grow beyond the bounds given here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime

from states.logs.losses import thinned
from states.logs.series import is_fall
from states.reading import Counter, Point, Progress, Track

HIGHEST_MAX = 64
"""Counters whose best value is remembered; the ones met longest ago are forgotten."""

CADENCES_MAX = 16
_LEARN = 0.3
_LEARN_RATE = 0.5
_JUMP = 4.0
"""A single gap moves the learnt cadence as if it were at most this many times longer or shorter."""

_FIRST_SPREAD = 0.3
"""How far off a rate seen only once is taken to be."""


def advance(
    before: Track,
    now: Progress,
    at: datetime,
    *,
    fresh: bool,
    wrote_at: datetime | None = None,
    fingerprint: str = "",
) -> Track:
    """One look more (E4, E5, E12). Returns the new track; the old one is unchanged.

    at: when the log was looked at; wrote_at: when it was last written, if the cluster can tell (both aware).
    fresh: the piece holds output that no earlier look had. fingerprint: of the piece, kept for the next look.

    `wrote_at` is by the cluster's clock, which may be hours off ours: what is new came after the look before.
    """
    heard = min(wrote_at, at) if wrote_at else at
    if fresh and before.looked_at is not None:
        heard = max(heard, before.looked_at)
    first = before.looks == 0
    risen, fell = _moves(before, now)
    spoke = bool(now.phase) and now.phase != before.phase
    milestone = bool(risen) or fell or (spoke and (fresh or first))
    silent = not fresh and not milestone
    output_at = before.output_at if silent and before.output_at else heard
    phase = before.phase if silent else now.phase
    cadences = _learnt(before, now, heard, phase, milestone)
    rate, spread = _rate(before, now, heard, fell)
    eta = _eta(now.main or before.main, rate)
    return before.model_copy(
        update={
            "started_at": before.started_at or at,
            "looked_at": at,
            "looks": before.looks + 1,
            "milestone_at": heard if milestone else before.milestone_at,
            "output_at": output_at,
            "cadence_s": cadences.get(phase, before.cadence_s),
            "cadences": cadences,
            "output_cadence_s": _eased(before.output_cadence_s, _gap(before.output_at, output_at)),
            "rate_per_s": rate,
            "rate_spread": spread,
            "counters": now.counters or before.counters,
            "main": now.main or before.main,
            "highest": _highest(before, now, fell),
            "losses": joined(before.losses, now.losses, ordinal=now.main is None),
            "nan_since": (before.nan_since or heard) if now.loss_nan_run else None,
            "phase": phase,
            "phase_since": heard if phase != before.phase or first else before.phase_since,
            "segment": now.segments if first else before.segment + int(fell),
            "still_looks": 0 if milestone else before.still_looks + int(fresh),
            "repeats": now.repeats if milestone or first else before.repeats + (now.repeats if fresh else 0),
            "fingerprint": fingerprint or before.fingerprint,
            "eta_s": eta,
            "eta_spread_s": eta * spread if eta is not None and spread is not None else None,
            "log_eta_s": now.log_eta_s if now.log_eta_s is not None or fresh else before.log_eta_s,
        }
    )


def moved(before: Track, now: Progress) -> tuple[Counter, ...]:
    """The counters that a look found above their best, new ones included; for reports (E12)."""
    return _moves(before, now)[0]


def joined(old: Sequence[Point], new: Sequence[Point], *, ordinal: bool = False) -> tuple[Point, ...]:
    """A series with the points it did not have yet behind it, thinned to LOSS_POINTS_MAX; the newest stays.

    Two looks at a log overlap: what follows the last point already known is new. ordinal: the steps only
    count the points of one piece, so points are told by value and numbered on.
    """
    if not old or not new:
        return thinned([*old, *new])
    start = next((at for at in range(len(new), 0, -1) if _meets(old, new[:at], ordinal)), 0)
    fresh = list(new[start:])
    if ordinal:
        fresh = [Point(step=old[-1].step + order, value=one.value) for order, one in enumerate(fresh, 1)]
    return thinned([*old, *fresh])


def _meets(old: Sequence[Point], upto: Sequence[Point], ordinal: bool) -> bool:
    """Whether the last point of `upto` is the last one known, and those before agree as far as both reach."""
    pairs = list(zip(reversed(old), reversed(upto), strict=False))[:3]
    return all(_same(a.value, b.value) and (ordinal or a.step == b.step) for a, b in pairs)


def _same(a: float, b: float) -> bool:
    return a == b or (math.isnan(a) and math.isnan(b))


def _moves(before: Track, now: Progress) -> tuple[tuple[Counter, ...], bool]:
    """(counters above their best, whether the main counter started again).

    Only the main counter's fall is a milestone: inner bars and the retries of a loop fall all the time.
    """
    best = before.highest
    risen = tuple(one for one in now.counters if one.name not in best or one.value > best[one.name])
    main = now.main
    fell = main is not None and main.name in best and is_fall(best[main.name], main.value)
    return risen, fell


def _highest(before: Track, now: Progress, fell: bool) -> dict[str, float]:
    best = dict(before.highest)
    for one in now.counters:
        known = best.pop(one.name, one.value)
        best[one.name] = one.value if is_fall(known, one.value) else max(known, one.value)
    if fell and now.main is not None:
        best[now.main.name] = now.main.value
    return dict(list(best.items())[-HIGHEST_MAX:])


def _learnt(before: Track, now: Progress, heard: datetime, phase: str, milestone: bool) -> dict[str, float]:
    """Cadence per phase. What the log itself shows is finer than the gap between two looks and goes first."""
    gap = now.cadence_s
    if gap is None and milestone and phase == before.phase:
        gap = _gap(before.milestone_at, heard)
        gap = gap / _prints(before, now) if gap is not None else None
    learnt = _eased(before.cadences.get(phase), gap if milestone else None)
    if learnt is None:
        return before.cadences
    kept = {name: value for name, value in before.cadences.items() if name != phase}
    return dict([*kept.items(), (phase, learnt)][-CADENCES_MAX:])


def _prints(before: Track, now: Progress) -> float:
    """How many milestones one look found at once: without times of its own, a log of a line a minute that is looked
    at twice an hour would teach a cadence of half an hour, and the looks would grow ever rarer by it."""
    if before.main is None or now.main is None or not now.stride or not _same_main(before, now):
        return 1.0
    return max(1.0, (now.main.value - before.main.value) / now.stride)


def _eased(known: float | None, gap: float | None) -> float | None:
    """A running average of gaps, in which one odd gap counts as at most `_JUMP` times what is known."""
    if gap is None or gap <= 0:
        return known
    if known is None or known <= 0:
        return gap
    bounded = min(max(gap, known / _JUMP), known * _JUMP)
    return known + _LEARN * (bounded - known)


def _gap(before: datetime | None, after: datetime) -> float | None:
    return (after - before).total_seconds() if before else None


def _rate(before: Track, now: Progress, heard: datetime, fell: bool) -> tuple[float | None, float | None]:
    """(main units per second, its relative spread). What passed between two looks has the pauses in it."""
    seen = _between_looks(before, now, heard)
    if seen is None and before.rate_per_s is None:
        seen = now.rate_per_s
    if before.rate_per_s is None or fell or not _same_main(before, now):
        rate = seen or now.rate_per_s
        return rate, _FIRST_SPREAD if rate else None
    if seen is None:
        return before.rate_per_s, before.rate_spread
    rate = before.rate_per_s + _LEARN_RATE * (seen - before.rate_per_s)
    off = abs(seen - before.rate_per_s) / before.rate_per_s
    spread = before.rate_spread if before.rate_spread is not None else _FIRST_SPREAD
    return rate, spread + _LEARN * (off - spread)


def _between_looks(before: Track, now: Progress, heard: datetime) -> float | None:
    if before.main is None or now.main is None or before.output_at is None or not _same_main(before, now):
        return None
    gap = (heard - before.output_at).total_seconds()
    gained = now.main.value - before.main.value
    return gained / gap if gap >= 1.0 and gained > 0 else None


def _same_main(before: Track, now: Progress) -> bool:
    return before.main is None or now.main is None or before.main.name == now.main.name


def _eta(main: Counter | None, rate: float | None) -> float | None:
    """Seconds to the total at this rate, as of the last output; None where no total or no rate is known."""
    if main is None or main.total is None or not rate:
        return None
    return max(0.0, main.total - main.value) / rate
