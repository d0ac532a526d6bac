"""A loss that is no number, to the end of the log: the one cause that no single line shows.

One step of NaN can be a first line, a skipped batch or an overflow; an unbroken run to the end is a ruined run
(RULES E7; corpus finding 13). Series as such are the business of `losses` and `divergence`.

Never: take a count of NaN steps, an evaluation column or a name for a loss.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from states.logs.log_events import Event, Weight, found_sign, quote
from states.logs.shapes import per_shape, shape
from states.logs.signatures import Signatures
from states.reading import Line

NAN_MIN = 2
"""Lines in a row, the last ones that show a loss, which must all be NaN or infinite."""
LOOP_TIMES = 3
"""Never counted as less: what goes on to the end is what the run is busy with."""
_LINE_CHARS = 1200

_LOSS = re.compile(
    r"\b(?:[a-z_]{0,24}loss|ppl|perplexity)['\"]?(?: value)?\s{0,4}[:=|]?\s{0,4}['\"]?"
    r"(?:tensor\()?(?P<value>-?nan|-?inf|[-+]?\d{1,20}(?:\.\d{0,20})?(?:[eE][-+]?\d{1,4})?)\b",
    re.IGNORECASE,
)
_LOST_GRADIENT = re.compile(
    r"grad(?:ient)?[_ ]norm['\"]?\s{0,4}[:=|]?\s{0,4}['\"]?(?:nan|inf)\b", re.IGNORECASE
)


def not_a_number(lines: Sequence[Line], known: Signatures) -> list[Event]:
    """One event at the first line of the run of NaN losses that lasts to the end, or none."""
    first = last = -1
    run = 0
    for at, line in enumerate(lines):
        if "oss" not in line.text and "ppl" not in line.text:
            continue
        ruined = _ruined(line.text[:_LINE_CHARS])
        if ruined:
            first, last, run = (at if run == 0 else first), at, run + 1
        elif ruined is not None:
            run = 0
    if run < NAN_MIN:
        return []
    cause = "numerics.nan"
    sign = found_sign("loss-not-a-number", cause, known.causes[cause], quote(lines[first]))
    return [Event(first, last, Weight.likely, sign, (), False, times=max(run, LOOP_TIMES))]


def _ruined(text: str) -> bool | None:
    """Is every loss on the line NaN or infinite (or zero beside a gradient that is)? None if it shows no loss."""
    told = _told(shape(text))
    if told is None or told.ruined or not told.lost:
        return None if told is None else told.ruined
    return all(float(text[start:end]) == 0 for start, end in told.numbers)


class _Told(NamedTuple):
    """What a shape shows: losses that are all no numbers, a gradient that is none, where the numbers stand."""

    ruined: bool
    lost: bool
    numbers: tuple[tuple[int, int], ...]


@per_shape
def _told(of: str) -> _Told | None:
    losses = [(found["value"].lower().lstrip("-"), found.span("value")) for found in _LOSS.finditer(of)]
    if not losses:
        return None
    ruined = all(value in ("nan", "inf") for value, _ in losses)
    numbers = tuple(span for value, span in losses if value[0].isdigit())
    return _Told(ruined, _LOST_GRADIENT.search(of) is not None, numbers)
