"""The loss series and the other figures of a log: which key is the loss, what is not a number, what vanished.

The training loss is chosen once per piece by how it is called, not by where it stands: `loss` before
`total_loss` before component losses before validation losses. A loss that prints as NaN is kept as NaN; what
is missing from lines that used to carry it is counted in `progress` (finding 9).

Never: judge whether a loss is good; keep more than LOSS_POINTS_MAX points.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from states.logs.keyed import Keyed
from states.logs.shapes import shape
from states.logs.units import words
from states.reading import LOSS_POINTS_MAX, Point

METRICS_MAX = 48
_AHEAD_CHARS = 20
_EVAL_WORDS = frozenset("val valid validation eval evaluation test dev 验证 测试".split())
_WHOLE_WORDS = frozenset(
    "train training total lm batch avg average mean running current cur reduced overall 训练 总 平均".split()
)
_SETTING_WORDS = frozenset(
    "scale scaler weight weights coef coeff type best min max patience function fn reduction ratio".split()
)
_CLOSE = re.compile(r"loss|损失|误差", re.IGNORECASE)
_CJK_LOSS = re.compile(r"损失|误差")


@dataclass
class LossBook:
    """All loss keys of one piece: for each its points as (line index, value)."""

    points: dict[str, list[tuple[int, float]]] = field(default_factory=dict)
    metrics: dict[str, float] = field(default_factory=dict)

    def add(self, pieces: Sequence[Keyed], index: int, names: Sequence[str] | None = None) -> bool:
        """Takes the figures of one line; True if it carries a loss or another figure that changed.

        names: `loss_name` of each piece, where it is known already.
        """
        moved = False
        for piece, name in zip(pieces, names or map(loss_name, pieces), strict=True):
            if name:
                self.points.setdefault(name, []).append((index, piece.value))
                moved = True
            elif piece.key not in self.metrics or self.metrics[piece.key] != piece.value:
                self._keep(piece)
        return moved

    def chosen(self) -> str:
        """The key that stands for the training loss; "" if there is none."""
        if not self.points:
            return ""
        last = max(points[-1][0] for points in self.points.values())
        return min(self.points, key=lambda name: self._order(name, last))

    def _order(self, name: str, last: int) -> tuple[int, int, int]:
        stale = self.points[name][-1][0] < last - max(200, last // 2)
        return (int(stale) * 3 + loss_class(name), -len(self.points[name]), self.points[name][0][0])

    def _keep(self, piece: Keyed) -> None:
        if len(self.metrics) >= METRICS_MAX and piece.key not in self.metrics:
            self.metrics.pop(next(iter(self.metrics)))
        self.metrics.pop(piece.key, None)
        self.metrics[piece.key] = piece.value


def loss_name(piece: Keyed) -> str:
    """A stable name for a key that holds a loss, with the words before it; "" if it holds none."""
    tokens, known = _key(piece.key)
    if known:
        return _qualified(piece.key, shape(piece.before[-_AHEAD_CHARS:]))
    if len(tokens) != 1 or not _CLOSE.search(piece.before[-_AHEAD_CHARS:]) or set(tokens) & _SETTING_WORDS:
        return ""
    ahead = _words_ahead(piece.before)
    return " ".join([*ahead, *tokens]) if ahead and _has_loss(ahead[-1:]) else ""


@functools.lru_cache(maxsize=4_096)
def _qualified(key: str, before: str) -> str:
    """The name of a key that is a loss by itself, with words ahead of it that tell which one."""
    tokens = _key(key)[0]
    if set(tokens) & _SETTING_WORDS:
        return ""
    qualifier = [word for word in _words_ahead(before) if word in _EVAL_WORDS or word in _WHOLE_WORDS]
    return " ".join([*qualifier, *tokens])


def _words_ahead(before: str) -> list[str]:
    near = words(before[-_AHEAD_CHARS:])[-2:] if before.endswith((" ", "_")) else []
    return [word for word in near if not word.isdigit()]


def loss_class(name: str) -> int:
    """How likely a name is the training loss itself: 0 best. Components follow, validation comes last."""
    tokens = name.split()
    held = set(tokens)
    if held & _EVAL_WORDS or tokens[0] == "v":
        return 4
    rest = held - {"loss", "losses", "loss损失"} - {token for token in held if _CJK_LOSS.search(token)}
    if not rest:
        return 0
    if rest <= _WHOLE_WORDS:
        return 1
    return 2 if tokens[-1] == "loss" else 3


def thinned(points: Sequence[Point]) -> tuple[Point, ...]:
    """At most LOSS_POINTS_MAX points: every second one of the older half goes until it fits."""
    kept = list(points)
    while len(kept) > LOSS_POINTS_MAX:
        half = max(len(kept) // 2, len(kept) - LOSS_POINTS_MAX // 2)
        kept = kept[:half:2] + kept[half:]
    return tuple(kept)


def nan_run(values: Sequence[float]) -> int:
    """How many values at the end are not finite."""
    run = 0
    for value in reversed(values):
        if math.isfinite(value):
            break
        run += 1
    return run


@functools.lru_cache(maxsize=4_096)
def _key(key: str) -> tuple[list[str], bool]:
    """(the words of a key, whether they name a loss)."""
    tokens = words(key)
    return tokens, _has_loss(tokens)


def _has_loss(tokens: Sequence[str]) -> bool:
    return any(token.endswith(("loss", "losses")) or _CJK_LOSS.search(token) for token in tokens)
