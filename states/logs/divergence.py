"""Whether the numbers themselves have gone wrong: NaN that stays, endless overflow, a loss that runs away.

A NaN at many steps in a row is provably wasted (E7). Overflow steps are normal while a loss scale finds its
level, and a spike often comes back down, so both are only said and asked about (E9).

Never: call a plateau, a rounded loss or a noisy one diverged; stop for anything but NaN.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median

from states.logs.case import Case, number, place
from states.reading import Verdict

NAN_STEPS = 5
"""NaN at this many steps in a row is called failing; stopping needs `policy.nan_steps`."""

NEVER_FINITE = 4
"""So many times `policy.nan_steps` prove it when the loss was never a number."""

OVERFLOW_STEPS = 5
"""Skipped steps in a row, once past WARM_UP_STEPS, that are called failing."""

WARM_UP_STEPS = 100
SPIKE_FACTOR = 1.5
SPIKE_MIN = 0.5
"""A spike is this many times above the middle of the earlier losses, and at least this much above it."""

FLAT_ZERO_POINTS = 5


def diverged(case: Case) -> Verdict | None:
    """Failing (NaN, endless overflow, a runaway that vanishes), ambiguous (spike, loss of exactly 0), or None."""
    return _nan(case) or _overflow(case) or _spike(case) or _zero(case)


def _nan(case: Case) -> Verdict | None:
    run = case.progress.loss_nan_run
    if run >= NAN_STEPS:
        summary = f"The loss is not a number at the last {run} steps; {place(case)}."
        if not case.runs and any(sign.cause == "process.killed" for sign in case.diagnosis.signs):
            return case.say("failed", summary + " Then it was killed.", "E7", "F1", topic="nan")
        return case.say("failing", summary, "E7", topic="nan", provable=_nan_is_sure(case, run))
    if run >= 2:
        return case.say(
            "ambiguous", f"The loss is not a number at the last {run} steps.", "E7", "E9", topic="nan"
        )
    return None


def _nan_is_sure(case: Case, run: int) -> bool:
    """It was a number once and is none for `nan_steps`; never having been one, it takes longer.

    Some programs print NaN until their first update.
    """
    was_finite = any(math.isfinite(point.value) for point in case.losses)
    return run >= case.policy.nan_steps * (1 if was_finite else NEVER_FINITE)


def _overflow(case: Case) -> Verdict | None:
    run, main = case.progress.overflow_run, case.main
    if run < OVERFLOW_STEPS or main is None or main.value < WARM_UP_STEPS:
        return None
    summary = f"The last {run} steps overflowed and were skipped, long after warm-up; {place(case)}."
    return case.say("failing", summary, "E7", "E9", topic="nan")


def _spike(case: Case) -> Verdict | None:
    values = [point.value for point in case.losses]
    if not _runs_away(values) or (case.main is not None and case.main.value < WARM_UP_STEPS):
        return None
    low = min(values[: max(1, len(values) // 3)])
    summary = f"The loss rose from {number(low)} to {number(values[-1])}; {place(case)}."
    if case.progress.loss_missing_steps or case.progress.overflow_run >= 2:
        summary += " The last steps were skipped or print no loss any more."
        return case.say("failing", summary, "E7", "E9", topic="nan")
    return case.say("ambiguous", summary + " It may come back.", "E7", "E9", topic="spike")


def _runs_away(values: Sequence[float]) -> bool:
    """All recent values lie far above all early ones."""
    if len(values) < 3 or not all(map(math.isfinite, values)):
        return False
    third = max(1, len(values) // 3)
    early, late = median(values[:third]), min(values[-min(3, third) :])
    return early > 0 and late > SPIKE_FACTOR * early and late - early > SPIKE_MIN


def _zero(case: Case) -> Verdict | None:
    values = [point.value for point in case.losses]
    if len(values) < FLAT_ZERO_POINTS or any(values):
        return None
    summary = (
        f"The loss has been exactly 0 at all {len(values)} points: the run moves, but it may learn nothing."
    )
    return case.say("ambiguous", summary, "E7", "E9", topic="zero-loss")
