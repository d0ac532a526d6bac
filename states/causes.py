"""What started the trouble: from a log's lines and the scheduler's words to one cause with its evidence.

The earliest initiating event is the cause; what other processes print when it takes them down is a cascade
(corpus finding 1). A kill without a reason stays `process.killed` until something confirms why (finding 5).
An event that the run outlived is no failure. Between equals RULES E3's order decides.

Never: take advice, options or quoted source for evidence; call a run failed that goes on; read a file or a clock.
"""

from __future__ import annotations

import bisect
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from states.logs import nan_losses, outliving, scheduler_words
from states.logs.log_events import Event, Weight, found_sign, quote
from states.logs.log_scan import Scan, scan
from states.logs.scheduler_words import AFTER_LOG
from states.logs.signatures import Candidates, Signatures, load
from states.reading import Diagnosis, Line, Quote

__all__ = ["diagnose", "load"]

SIGNS_MAX = 40
ALSO_MAX = 4
EVIDENCE_MAX = 4
LIVE_LINES = 15
"""Ordinary lines after an exception that show it was caught, if something worse came later."""
MESSAGE_LINES = 3
"""Lines after an exception of the program's own within which a root is part of its message."""
TAIL_LINES = 40
"""How near the end a surviving trouble must stand to be what the run is busy with."""
NEAR_LINES = 60
"""How far before a root its reason in the surroundings may stand."""
LOOP_MIN = 3
"""Times that a survivable trouble must come to be called a loop."""

TRIAGE = ("scheduling", "image", "mount", "config", "command", "memory", "env")
"""RULES E3: which layer is named first when two stand on the same line."""

HARDWARE = ("gpu.hardware", "node.fault")
"""What the kernel says of the hardware explains an error of the program, whichever was printed first."""

_NOT_STARTED = re.compile(r"(?<![\w/.])0/(\d{1,9})\b.{0,40}\[\d\d:\d\d<\?")


class _Pick(NamedTuple):
    """The chosen event and the other events that speak with it."""

    event: Event
    with_it: tuple[Event, ...] = ()


def diagnose(
    lines: Sequence[Line],
    *,
    reasons: Sequence[str] = (),
    exit_code: int | None = None,
    signal: int | None = None,
    signatures: Signatures | None = None,
    candidates: Candidates | None = None,
) -> Diagnosis:
    """The initiating event in these lines, or cause "none" when nothing failed.

    lines: a bounded piece, oldest first. reasons: the scheduler's own words, newest last; a quote of one has
    line 0. exit_code/signal: of the process, if known. candidates: a faster stand-in for
    `Signatures.candidates` over the same entries.
    """
    known = signatures if signatures is not None else load()
    found = scan(lines, known, candidates)
    risen = list(outliving.rises(lines).values()) if found.events else []
    live = [event for event in found.events if not outliving.outlived(event.last, risen)]
    live += nan_losses.not_a_number(lines, known)
    said = [
        *scheduler_words.said(reasons, known, silent=not lines),
        *scheduler_words.exited(exit_code, signal, known),
    ]
    ended = bool(exit_code or signal) or any(
        event.fatal and event.weight is not Weight.likely for event in [*live, *said]
    )
    pick = _choose(live, said, found.plain, ended, len(lines))
    if pick is None and ended and found.events:
        pick = _choose(found.events[-1:], said, found.plain, ended, len(lines))
    if pick is None:
        return Diagnosis(signs=tuple(found.signs[:SIGNS_MAX]))
    pick = _reconsider(pick, lines, said, known)
    return _diagnosis(pick, [*live, *said], found, ended)


def _choose(
    live: Sequence[Event], said: Sequence[Event], plain: Sequence[int], ended: bool, length: int
) -> _Pick | None:
    """The event that explains the others, strongest kind of explanation first."""
    by: dict[Weight, list[Event]] = {weight: [] for weight in Weight}
    for event in sorted([*live, *said], key=_order):
        by[event.weight].append(event)
    facts, likely, symptoms, ends = by[Weight.fact], by[Weight.likely], by[Weight.symptom], by[Weight.end]
    roots = _first_roots(by[Weight.root], by[Weight.exception], plain)
    first = roots[0] if roots else None
    if facts and (first is None or first.weight is not Weight.root or _of_peers(first)):
        newest = min(facts, key=lambda event: (-event.at, _order(event)))
        return _Pick(newest, (*ends, *roots))
    if first is not None and first.weight is Weight.root:
        behind = [event for event in likely if _behind(event, first)]
        behind += [event for event in roots if event.cause in HARDWARE and event.cause in first.also]
        return _Pick(behind[0], (first,)) if behind else _Pick(first, (*likely, *symptoms))
    second = sorted([*roots, *symptoms], key=_order)
    if second:
        before = [event for event in likely if event.at < second[0].at and _explains(event, second[0])]
        return _Pick((before or second)[0], tuple(second))
    return _choose_weak(likely, ends, ended, length)


def _choose_weak(likely: Sequence[Event], ends: Sequence[Event], ended: bool, length: int) -> _Pick | None:
    """When nothing starts a failure by itself: a trouble that may be survived, or how a process ended."""
    told = [event for event in likely if event.at >= AFTER_LOG]
    if told and not ends:
        return _Pick(told[-1])
    whys = [event for event in likely if "process.killed" in event.also]
    if whys and ends:
        return _Pick(whys[0]._replace(weight=Weight.fact, fatal=True), tuple(ends))
    crashed = ended and (not ends or any(event.cause != "process.killed" for event in ends))
    if likely and (crashed or _busy_with(likely, min([length, *(event.at for event in ends)]))):
        return _Pick(likely[0], tuple(ends))
    return _Pick(_worst_end(ends)) if ends else None


def _first_roots(roots: Sequence[Event], unknown: Sequence[Event], plain: Sequence[int]) -> list[Event]:
    """Roots and the program's own exceptions in order, without those that were seen to be caught before a root."""
    if not roots:
        return list(unknown)
    last = bisect.bisect_left(plain, roots[-1].at)
    fatal = [
        event
        for event in unknown
        if last - bisect.bisect_right(plain, event.last) <= LIVE_LINES
        and not any(0 < root.at - event.last <= MESSAGE_LINES for root in roots)
    ]
    return sorted([*roots, *fatal], key=_order)


def _order(event: Event) -> tuple[int, int]:
    layer = event.cause.partition(".")[0]
    return event.at, TRIAGE.index(layer) if layer in TRIAGE else len(TRIAGE)


def _of_peers(event: Event) -> bool:
    """Is it of the kind that a lost peer or node causes in the others?"""
    return event.cause.startswith(("comm.", "network.", "process.", "hang."))


def _behind(early: Event, root: Event) -> bool:
    """Is an earlier trouble of the surroundings the reason of this root, which itself allows that reading?"""
    layer = early.cause.partition(".")[0]
    outside = layer in ("network", "mount", "storage") and not root.cause.startswith(layer)
    return root.at - NEAR_LINES <= early.at < root.at and outside and early.cause in root.also


def _explains(early: Event, later: Event) -> bool:
    """May a survivable trouble be the reason of a later one? Of an exception of the program's own only when near."""
    near = later.at - NEAR_LINES <= early.at
    return early.cause != "download.slow" and (near or later.weight is Weight.symptom)


def _busy_with(likely: Sequence[Event], until: int) -> bool:
    """Is a survivable trouble all that still happens: again and again, up to the end or the kill?"""
    times: Counter[str] = Counter()
    for event in likely:
        times[event.sign.entry] += event.times
    last = max(event.last for event in likely)
    return max(times.values()) >= LOOP_MIN and last >= until - TAIL_LINES


def _worst_end(ends: Sequence[Event]) -> Event:
    """Of bare ends the one that says most: a crash of the program, then a kill, then a launcher tidying up."""
    return min(ends, key=lambda event: (event.cause == "process.killed", not event.fatal, event.at))


def _reconsider(pick: _Pick, lines: Sequence[Line], said: Sequence[Event], known: Signatures) -> _Pick:
    """A kill without a reason: what the exit code and a bar that never moved let one say about it."""
    event = pick.event
    if event.cause != "process.killed" or event.weight is not Weight.end:
        return pick
    if "Killed" in event.sign.evidence.text and any(other.sign.entry == "exit:137" for other in said):
        return _Pick(event.reread("memory.host", known), pick.with_it)
    bars = [at for at, line in enumerate(lines) if _NOT_STARTED.search(line.text)]
    if bars and not any(ats[-1] > bars[-1] for ats in outliving.rises(lines).values()):
        cause = "hang.silent"
        sign = found_sign("bar-never-moved", cause, known.causes[cause], quote(lines[bars[-1]]))
        return _Pick(Event(bars[-1], bars[-1], Weight.end, sign, ("process.killed",)), (event,))
    return pick


def _diagnosis(pick: _Pick, everything: Sequence[Event], found: Scan, ended: bool) -> Diagnosis:
    event, sign = pick.event, pick.event.sign
    others = sorted((other for other in everything if other is not event), key=_order)
    also = dict.fromkeys(event.also)
    also.update(dict.fromkeys(other.cause for other in pick.with_it))
    also.update(dict.fromkeys(other.cause for other in others if other.weight is not Weight.end))
    also.pop(event.cause, None)
    same = sorted(
        (other for other in others if other.cause == event.cause),
        key=lambda other: other.sign.entry == sign.entry,
    )
    quotes = [sign.evidence, *found.spoken.get(event.chain, ())]
    quotes += [other.sign.evidence for other in (*same, *pick.with_it)]
    return Diagnosis(
        cause=event.cause,
        also=tuple(also)[:ALSO_MAX],
        owner=sign.owner,
        retryable=sign.retryable,
        evidence=tuple(_distinct(quotes))[:EVIDENCE_MAX],
        advice=sign.advice,
        signs=(sign, *(other for other in found.signs if other != sign))[:SIGNS_MAX],
        fatal=event.fatal if event.weight is not Weight.likely else ended,
    )


def _distinct(quotes: Iterable[Quote]) -> list[Quote]:
    seen: dict[str, Quote] = {}
    for one in quotes:
        seen.setdefault(one.text, one)
    return list(seen.values())
