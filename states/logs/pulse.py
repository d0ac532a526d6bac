"""What a line says about speed: its ETA, the elapsed time, units per second.

Never: trust one ETA (finding: it jumps during a save); `track` sets it apart from what is observed.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from states.logs.shapes import per_shape, shape
from states.logs.stamps import DURATION, duration_s

_MATCHES_MAX = 64
_N = r"(?:\d{1,3}(?:,\d{3}){1,5}|\d{1,15})(?:\.\d{1,12})?"
_UNIT = r"(?P<of>it|iter|step|iteration|epoch|batch|sample|example|item|file)"
_TIMES = re.compile(rf"\[\s?(?P<elapsed>{DURATION})\s?<\s?(?P<eta>{DURATION}|\?)")
_ETA = re.compile(
    r"(?:\b(?:eta|remaining(?:[_ ]time)?|time[_ ]left|left)|剩余(?:时间)?|预计(?:还需|剩余)?|还需)"
    rf"[\"']?\s{{0,4}}[:=：]?\s{{0,4}}[\"']?(?P<eta>{DURATION})"
    rf"|(?P<before>{DURATION}) (?:remaining|left)\b",
    re.IGNORECASE,
)
_ELAPSED = re.compile(
    r"(?:elapsed(?:[_ ]time)?|time[_ ]elapsed|已用(?:时间)?)"
    rf"[\"']?\s{{0,4}}[:=：]\s{{0,4}}[\"']?(?P<elapsed>{DURATION})",
    re.IGNORECASE,
)
_RATE = re.compile(rf"(?<![\w.])(?P<r>{_N})\s?(?P<k>k?){_UNIT}(?:e?s)?\s?/\s?s(?:ec)?\b")
_SLOW_RATE = re.compile(rf"(?<![\w.])(?P<r>{_N})\s?(?P<u>ms|s|sec|min)\s?/\s?{_UNIT}\b")
_PER_ITERATION = re.compile(
    r"(?:elapsed time per iteration|time per (?:step|iteration)|step_avg|iter_time|step_time)"
    rf"\s?(?:\((?P<u>ms|s)\))?\s?[:=]\s?(?P<r>{_N})\s?(?P<u2>ms|s)?"
)
_HINTS = ("ta", "TA", "/s", "s/", "ms", "lapsed", "eft", "emaining", "<", "剩余", "预计", "还需", "已用")


class Pulse(NamedTuple):
    """Seconds to the end and seconds so far as the line says; `rate_per_s` in units of whatever it counts."""

    eta_s: float | None = None
    elapsed_s: float | None = None
    rate_per_s: float | None = None
    rate_of: str = ""
    """What the rate counts, as written (`it`, `step`, `sample`)."""


NO_PULSE = Pulse()


def pulse(text: str) -> Pulse:
    """ETA, elapsed time and speed of one line; the last of each kind counts, as later bars overwrite."""
    spans = _spans(shape(text))
    if spans is None:
        return NO_PULSE
    eta = duration_s(text[slice(*spans.eta)]) if spans.eta else None
    elapsed = duration_s(text[slice(*spans.elapsed)]) if spans.elapsed else None
    if spans.rate is None:
        return Pulse(eta, elapsed)
    rate = _number(text[slice(*spans.rate)])
    if spans.fast:
        return Pulse(eta, elapsed, rate * spans.factor, spans.of)
    seconds = rate * spans.factor
    return Pulse(eta, elapsed, 1.0 / seconds, spans.of) if seconds > 0 else Pulse(eta, elapsed)


class _Spans(NamedTuple):
    """Where in a shape the times and the rate stand. fast: units per second, else seconds per unit."""

    eta: tuple[int, int] | None
    elapsed: tuple[int, int] | None
    rate: tuple[int, int] | None
    fast: bool = False
    factor: float = 1.0
    of: str = ""


@per_shape
def _spans(of: str) -> _Spans | None:
    """The last of each kind, as later bars overwrite; None if there is nothing."""
    if not any(hint in of for hint in _HINTS):
        return None
    eta = elapsed = None
    if times := _last(_TIMES, of):
        eta, elapsed = times.span("eta"), times.span("elapsed")
    else:
        if left := _last(_ETA, of):
            eta = left.span("eta") if left["eta"] else left.span("before")
        if spent := _last(_ELAPSED, of):
            elapsed = spent.span("elapsed")
    if fast := _last(_RATE, of):
        return _Spans(eta, elapsed, fast.span("r"), True, 1e3 if fast["k"] else 1.0, fast["of"])
    found = _last(_SLOW_RATE, of) or _last(_PER_ITERATION, of)
    if found is None:
        return _Spans(eta, elapsed, None) if eta or elapsed else None
    groups = found.groupdict()
    unit = groups.get("u") or groups.get("u2") or "s"
    factor = {"ms": 1e-3, "min": 60.0}.get(unit, 1.0)
    return _Spans(eta, elapsed, found.span("r"), False, factor, groups.get("of") or "it")


def _last(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    last = None
    for count, found in enumerate(pattern.finditer(text)):
        last = found
        if count >= _MATCHES_MAX:
            break
    return last


def _number(text: str) -> float:
    return float(text.replace(",", ""))
