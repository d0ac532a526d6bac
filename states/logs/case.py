"""All that a view on a job may look at, with the facts that several views need, and the sentences they say.

Never: decide; read a clock (times are in the track and the scene).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, NamedTuple

from states.logs.phrases_of_progress import OPENING
from states.policy import Policy
from states.reading import (
    Counter,
    Diagnosis,
    Digest,
    Point,
    Progress,
    Scene,
    Sign,
    Track,
    Verdict,
    VerdictName,
)

PART_OVER_LINES = 5
"""A counter without a unit that stands this far behind belonged to a part that is over."""

NEW_START_LINES = 40

Want = Literal["more_tail", "head", "events", "model"]

_PREPARATION = re.compile(
    r"\b(?:map|load\w*|shards?|tokeniz\w*|filter\w*|build\w*|compil\w*|captur\w*|warm-?up\w*|cach\w*"
    r"|preload\w*|prepar\w*|preprocess\w*|pack\w*|import\w*|convert\w*"
    r"|generating (?:\w+ )?split|left:\w+|init\w*|sanity)\b",
    re.IGNORECASE,
)


NEAR_END_LINES = 15
_QUIET_LEVEL = re.compile(r"\b(?:INFO|NOTICE|WARN(?:ING)?|DEBUG|Warning)\b|\[[IWD]\]|^[IW]\d{4} ")


class Case(NamedTuple):
    """One look: `track` is what all looks taught, this one included."""

    track: Track
    digest: Digest
    scene: Scene
    policy: Policy

    @property
    def progress(self) -> Progress:
        return self.digest.progress

    @property
    def diagnosis(self) -> Diagnosis:
        return self.digest.diagnosis

    @property
    def cause(self) -> str:
        return self.digest.diagnosis.cause

    @property
    def runs(self) -> bool:
        """The cluster says that it runs; without that nothing is provable."""
        return self.scene.phase == "running" and not self.scene.suspended

    @property
    def main(self) -> Counter | None:
        return self.progress.main or self.track.main

    @property
    def works(self) -> bool:
        """The run's own counter is there and is what the log is busy with.

        Not one of its preparation (a map, shards being loaded), not a part that is over, not the last step of
        an earlier start after which the program started anew.
        """
        main = self.main
        if main is None or prepares(main) or self.started_anew:
            return False
        if main.unit or self.progress.segments or self.lines_since(main.line) <= PART_OVER_LINES:
            return True
        return main.total is not None and not complete(main)

    @property
    def started_anew(self) -> bool:
        """Long after the last milestone the log speaks of starting up, or in several ways soon after it: a new start
        wrote to the same file.
        """
        progress = self.progress
        fresh_start = progress.phase in OPENING and progress.phase_line > self.milestone_line > 0
        return progress.anew or (fresh_start and self.lines_since(self.milestone_line) > NEW_START_LINES)

    def lines_since(self, line: int) -> int:
        """Lines of the piece behind a line; 0 for one that is not in it."""
        last = self.digest.excerpt[-1].line if self.digest.excerpt else 0
        return max(0, last - line) if line else 0

    @property
    def evidence_line(self) -> int:
        return self.diagnosis.evidence[0].line if self.diagnosis.evidence else 0

    @property
    def died(self) -> bool:
        """The text says that a process ended of its trouble.

        A line that calls itself information or a warning is believed only with an end behind it: an
        exception, a cascade, or the end of the log.
        """
        if not self.diagnosis.fatal:
            return False
        line = self.evidence_line
        if (
            line == 0
            or not _QUIET_LEVEL.search(self.diagnosis.evidence[0].text)
            or self.lines_since(line) <= NEAR_END_LINES
        ):
            return True
        return any(_is_end(sign) and sign.evidence.line >= line for sign in self.diagnosis.signs)

    @property
    def milestone_line(self) -> int:
        """Where a counter last stood; 0 if none does."""
        return max((counter.line for counter in self.progress.counters), default=0)

    @property
    def silence_s(self) -> float | None:
        """Seconds since the last output, as far as anybody knows."""
        if self.scene.silence_s is not None:
            return self.scene.silence_s
        if self.track.looked_at is None or self.track.output_at is None:
            return None
        return (self.track.looked_at - self.track.output_at).total_seconds()

    @property
    def still_s(self) -> float | None:
        """Seconds since the last milestone; since the start if there was none. None if time is not known."""
        since = self.track.milestone_at or self.track.started_at
        if self.track.looked_at is None or since is None:
            return None
        return (self.track.looked_at - since).total_seconds()

    @property
    def lasts(self) -> bool:
        """Trouble of a job that runs is believed at the second look: it had time to go on, and did not."""
        return not self.runs or (self.still_s or 0.0) >= self.policy.second_look_s

    @property
    def age_s(self) -> float:
        """Seconds from the first look to this one."""
        if self.track.looked_at is None or self.track.started_at is None:
            return 0.0
        return (self.track.looked_at - self.track.started_at).total_seconds()

    @property
    def cadence_s(self) -> float | None:
        """The longest of the learnt cadences: where they differ, the calmer one counts."""
        known = (self.track.cadence_s, self.progress.cadence_s)
        return max((one for one in known if one), default=None)

    @property
    def losses(self) -> Sequence[Point]:
        """The longer of the series in this piece and in all looks."""
        return max(self.progress.losses, self.track.losses, key=len)

    def say(
        self,
        name: VerdictName,
        summary: str,
        *because: str,
        topic: str = "",
        provable: bool = False,
        wants: Sequence[Want] = (),
        diagnosis: Diagnosis | None = None,
    ) -> Verdict:
        """The verdict with this look's diagnosis. Nothing is provable unless the cluster says that it runs."""
        told = self.diagnosis if diagnosis is None else diagnosis
        return Verdict(
            name=name,
            settled=name != "unsettled",
            provable=provable and self.runs,
            diagnosis=told,
            summary=summary,
            advice=told.advice if told.cause != "none" else "",
            because=because,
            wants=tuple(wants),
            topic=topic,
        )


def _is_end(sign: Sign) -> bool:
    return sign.role in ("cascade", "confirmation") or sign.entry.startswith("exception:")


def prepares(counter: Counter) -> bool:
    """Does this counter count getting ready, not the work?"""
    return _PREPARATION.search(counter.name) is not None


def complete(counter: Counter) -> bool:
    """It reached its total. Epochs and steps that count from 0 end one below it."""
    return counter.total is not None and counter.value >= counter.total


def place(case: Case) -> str:
    """Where the run stands, in words: `step 1200 of 20000 (6 %), loss 2.31`."""
    main, parts = case.main, []
    if main is not None:
        unit = main.unit or main.name.removeprefix("bar:")
        share = f" of {number(main.total)} ({100 * main.value / main.total:.0f} %)" if main.total else ""
        parts.append(f"{unit} {number(main.value)}{share}")
    if case.progress.loss is not None:
        parts.append(f"loss {case.progress.loss:.4g}")
    return ", ".join(parts)


def number(value: float) -> str:
    """Whole numbers without a fraction."""
    return f"{int(value)}" if value == int(value) else f"{value:.4g}"


def span(seconds: float) -> str:
    """A length of time for people: `40 s`, `12 min`, `3 h 20 min`, `2 d 4 h`."""
    whole = round(seconds)
    if whole < 120:
        return f"{whole} s" if seconds >= 1 else f"{seconds:.2g} s"
    minutes, hours, days = whole // 60, whole // 3600, whole // 86400
    if minutes < 120:
        return f"{minutes} min"
    return f"{hours} h {minutes % 60} min" if days < 2 else f"{days} d {hours % 24} h"


def first_words(case: Case) -> str:
    """The first evidence, short enough for a sentence."""
    text = case.diagnosis.evidence[0].text if case.diagnosis.evidence else ""
    return text if len(text) <= 140 else text[:137] + "..."
