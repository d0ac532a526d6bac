"""Chooses the counter that stands for the run: a training step, iteration or epoch before everything else.

A score per series: what it counts, then what speaks against it (inner to an epoch, evaluation, loading, never
moved, over and done with). Of equals the one that rose more often wins, then the later one.

Never: choose by a program's name; drop a series (all live ones stay counters, finding 8).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from states.logs.series import Series

_UNIT_SCORES = {"step": 100.0, "episode": 92.0, "epoch": 90.0, "batch": 50.0}
_KIND_SCORES = {
    "bar": 58.0,
    "pair": 46.0,
    "percent": 44.0,
    "bytes": 40.0,
    "countdown": 30.0,
    "word": 20.0,
    "bare": 15.0,
}
_INNER = 30.0
_CONTEXTS = {"eval": 35.0, "load": 30.0, "": 0.0}
_BRACKET = 33.0
"""A number in brackets with figures behind it is more than a bare one."""

_STALE_LINES = 20
_ALIKE_MIN = 10
NamesAt = Mapping[int, Sequence[str]]
"""The names of the counters read on each line index."""


def choose(real: Sequence[Series], at: NamesAt, goals: Mapping[str, float]) -> Series | None:
    """The main series, or None if there is none at all.

    real: the series that count work. goals: totals by unit from headers.
    """
    if not real:
        return None
    epochs = [one for one in real if one.unit == "epoch" and one.kind in ("unit", "quota")]
    trained = [one for one in epochs if one.context != "eval"]
    outer = max(trained, key=lambda one: (one.rises, one.last_index), default=None)
    newest = max(one.moved_index for one in real)
    risen = max((one.moved_index for one in real if one.rises >= 2 and one.context != "load"), default=-1)
    return max(
        real, key=lambda one: (_score(one, outer, at, goals, newest, risen), one.rises, one.last_index)
    )


def _score(
    one: Series, epoch: Series | None, at: NamesAt, goals: Mapping[str, float], newest: int, risen: int
) -> float:
    score = _base(one, goals) - _CONTEXTS[one.context] + min(one.rises, 10) * 0.3
    score += (3.0 if one.total else 0.0) + (6.0 if "global" in one.name else 0.0)
    if epoch is not None and one is not epoch:
        if _is_inner(one, epoch, at):
            score -= _INNER
        if one.rises == 0:
            score -= 40.0 if epoch.rises >= 3 else 20.0 if epoch.seen > one.seen else 0.0
    if one.unit == "epoch" and one.fractional:
        score -= 30.0  # a fraction of an epoch is printed beside the steps, and is coarser than they are
    if not one.total and one.last_index < newest - max(_STALE_LINES, 4 * one.spacing()):
        score -= 25.0
    if one.seen == 1 and one.total is None and risen > one.last_index:
        score -= 90.0  # a setting or a point of start, while another number has been counting since
    if one.seen >= 4 and one.rises == 0 and one.segments == 0:
        score -= 45.0
    if one.total and one.value >= one.total and one.moved_index < newest - 2:
        score -= 25.0
    return score


def _base(one: Series, goals: Mapping[str, float]) -> float:
    """What the thing counted is worth before anything speaks against it."""
    if one.kind in ("unit", "quota") or (one.kind == "bar" and one.unit in _UNIT_SCORES):
        return _UNIT_SCORES.get(one.unit, 40.0) - (6.0 if one.kind == "quota" else 0.0)
    score = _KIND_SCORES[one.kind] + (_BRACKET if one.name == "bracket" else 0.0)
    if one.kind in ("pair", "word") and one.unit:
        return score + 16.0
    if one.unit == "KiB":
        return score + 6.0
    return score + (_bar_bonus(one, goals) if one.kind == "bar" and not one.unit else 0.0)


def _bar_bonus(one: Series, goals: Mapping[str, float]) -> float:
    """A nameless bar or one named after training is the run's own, surely so if a header named its total."""
    if one.total and one.total == goals.get("step"):
        return 41.0
    name = one.name.lower()
    own = name == "bar:" or name.startswith(("bar/", "bar:epoch")) or "train" in name or "progress" in name
    return 14.0 if own else 0.0


def _is_inner(one: Series, epoch: Series, at: NamesAt) -> bool:
    """Whether a counter runs within an epoch: it falls when the epoch moves, or stands unnamed beside it."""
    if one.unit == "epoch" or one.kind in ("percent", "bytes") or epoch.fractional:
        return False
    if one.falls_at and epoch.rises and one.segments >= 0.5 * epoch.rises:
        return True
    if epoch.rises == 0 and epoch.value == 0 and not epoch.total:
        return False
    beside = epoch.name in at.get(one.last_index, ())
    if one.kind in ("bar", "pair") and not one.unit:
        return beside or one.name.lower().startswith("bar:epoch")
    if one.kind == "unit" and one.total and epoch.total and epoch.total > 1 and beside:
        return not _spans_epochs(one, epoch)
    return False


def _spans_epochs(one: Series, epoch: Series) -> bool:
    """Whether `epoch 3/20, step 310/2000` counts steps of the whole run: it did not fall, or shares agree."""
    if epoch.rises and not one.falls_at:
        return True
    epochs = epoch.total or 1.0
    share = epochs * one.value / (one.total or 1.0)
    return epochs >= _ALIKE_MIN and epoch.value - 1 <= share < epoch.value + 1
