"""Did the run outlive a trouble? Counters that rise after it, another try that is announced, a logger that talks on.

A traceback that was caught and retried does not fail a run that advances (RULES E5 the other way round). The same
failed fetch again and again is a loop, and a restart after each of the same exceptions is a crash loop.

Never: judge whether a run is healthy (`verdict` does); call a lone last exception survived.
"""

from __future__ import annotations

import bisect
import re
from collections import Counter
from collections.abc import Iterable, Sequence

from states.logs import hedging
from states.logs.log_events import Event, Weight
from states.logs.signatures import Signatures
from states.logs.tracebacks import Trace
from states.reading import Line

RISES_OUTLIVED = 3
"""Rises of one counter after an event that show that the run went on."""
LOOP_TIMES = 4
"""Times that one failed fetch must stand in the log to be a loop around it."""
CRASHES = 3
"""Restarts after the same event that make a crash loop."""
AGAIN_LINES = 6
"""Lines after an event within which another try must be announced to belong to it."""
LIVE_LINES = 15
"""Ordinary lines after an exception line without a traceback that show that its process went on."""
SCRIPT_LINES = 5
"""Ordinary lines after a shell's complaint which show that its script went on."""
TALKS_LONG_LINES = 20
"""Informing lines of the same process after a traceback which show that it was caught (a service's request)."""
TALKS_ON_LINES = 2
"""Informing lines after an error that was only logged which show that its process went on."""
_COUNTED_CHARS = 400

_FETCHES = ("network.", "download.", "auth.")
_STEP = re.compile(
    r"\b([Ss]tep|[Gg]lobal[_ ][Ss]tep|[Ii]ter(?:ation)?s?|[Ee]poch|[Bb]atch|[Ee]pisode|[Uu]pdates?)"
    r"['\"]?[\s:=\[#(]{1,4}(\d{1,9})\b(?!-)"
)
_PART = re.compile(r"(?<![\w/.:-])(\d{1,9})/(\d{1,9})(?![\w/.-])")
_NO_STEP = re.compile(r"[Rr]etr|[Aa]ttempt|[Ww]ait|[Rr]esum|[Kk]illing|[Tt]imed? ?out")


def rises(lines: Sequence[Line]) -> dict[str, list[int]]:
    """Per counter (a unit word, or `of N` for n/N) the positions at which it rose. Not retries, waits, kills."""
    highest: dict[str, int] = {}
    found: dict[str, list[int]] = {}
    for at, line in enumerate(lines):
        text = line.text[:_COUNTED_CHARS]
        if not text or _NO_STEP.search(text):
            continue
        marks = [(word.lower(), int(value)) for word, value in _STEP.findall(text)]
        marks += [(f"of {total}", int(done)) for done, total in _PART.findall(text) if int(total) > 0]
        for key, value in marks:
            if key in highest and value > highest[key]:
                found.setdefault(key, []).append(at)
            highest[key] = value
    return found


def outlived(at: int, risen: Iterable[Sequence[int]]) -> bool:
    """Did any counter rise at least RISES_OUTLIVED times after this position?"""
    return any(len(ats) - bisect.bisect_right(ats, at) >= RISES_OUTLIVED for ats in risen)


def settle(
    groups: Iterable[Sequence[Event]],
    lines: Sequence[Line],
    plain: Sequence[int],
    chains: Sequence[Trace],
    known: Signatures,
) -> list[Event]:
    """The events with those softened that their process lived through. groups: events of one entry and rank each.

    plain: positions of ordinary lines, rising.
    """
    tries = [at for at, line in enumerate(lines) if hedging.tries_again(line.text)]
    informing = [at for at in plain if hedging.informs(lines[at].text)]
    crashes: Counter[str] = Counter()
    settled: list[Event] = []
    for group in groups:
        looping = _loops(group)
        for event in group:
            lives = looping
            if event.weight in (Weight.root, Weight.exception, Weight.symptom):
                again = _within(tries, event.last)
                if any(hedging.restarts(lines[at].text) for at in again):
                    crashes[event.sign.entry] += event.times
                lives = lives or bool(again) or _speaks_on(event, lines, plain, informing)
                lives = lives or (event.chain >= 0 and chains[event.chain].survived)
            settled.append(event.softened() if lives else event)
    return [
        event.reread("crash.loop", known) if crashes[event.sign.entry] >= CRASHES else event
        for event in settled
    ]


def _within(positions: Sequence[int], after: int) -> Sequence[int]:
    first = bisect.bisect_right(positions, after)
    return positions[first : bisect.bisect_right(positions, after + AGAIN_LINES)]


def _loops(group: Sequence[Event]) -> bool:
    """The same failed fetch many times over, never as a traceback."""
    times = sum(event.times for event in group)
    return times >= LOOP_TIMES and all(
        event.chain < 0 and event.cause.startswith(_FETCHES) for event in group
    )


def _speaks_on(event: Event, lines: Sequence[Line], plain: Sequence[int], informing: Sequence[int]) -> bool:
    """Does the process go on talking: a little after an error that was only logged, for long after a traceback?"""
    if event.chain >= 0:
        rank = event.sign.rank
        after = informing[bisect.bisect_right(informing, event.last) :]
        own = sum(lines[at].rank == rank for at in after[: 4 * TALKS_LONG_LINES])
        return own >= TALKS_LONG_LINES
    if hedging.of_shell(lines[event.at].text):
        return len(plain) - bisect.bisect_right(plain, event.last) > SCRIPT_LINES
    if hedging.after_logger(lines[event.at].text) is not None:
        return len(informing) - bisect.bisect_right(informing, event.last) >= TALKS_ON_LINES
    alone = event.sign.entry.startswith("exception:")
    return alone and len(plain) - bisect.bisect_right(plain, event.last) > LIVE_LINES
