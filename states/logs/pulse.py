"""What a line says about speed: its ETA, the elapsed time, units per second.

Never: trust one ETA (finding: it jumps during a save); `track` sets it apart from what is observed.
"""

from __future__ import annotations

import re
from typing import NamedTuple

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
    if not any(hint in text for hint in _HINTS):
        return NO_PULSE
    eta = elapsed = None
    if times := _last(_TIMES, text):
        eta, elapsed = duration_s(times["eta"]), duration_s(times["elapsed"])
    else:
        if left := _last(_ETA, text):
            eta = duration_s(left["eta"] or left["before"])
        if spent := _last(_ELAPSED, text):
            elapsed = duration_s(spent["elapsed"])
    return Pulse(eta, elapsed, *_rate(text))


def _rate(text: str) -> tuple[float | None, str]:
    if fast := _last(_RATE, text):
        return _number(fast["r"]) * (1e3 if fast["k"] else 1.0), fast["of"]
    found = _last(_SLOW_RATE, text) or _last(_PER_ITERATION, text)
    if found is None:
        return None, ""
    groups = found.groupdict()
    unit = groups.get("u") or groups.get("u2") or "s"
    seconds = _number(found["r"]) * {"ms": 1e-3, "min": 60.0}.get(unit, 1.0)
    return (1.0 / seconds, groups.get("of") or "it") if seconds > 0 else (None, "")


def _last(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    last = None
    for count, found in enumerate(pattern.finditer(text)):
        last = found
        if count >= _MATCHES_MAX:
            break
    return last


def _number(text: str) -> float:
    return float(text.replace(",", ""))
