"""What started the trouble: from a log's lines and the scheduler's words to one cause with its evidence.

The earliest initiating event is the cause; what other processes print when it takes them down is a cascade
(corpus finding 1). A kill without a reason stays `process.killed` until something confirms why (finding 5).
An event that the run outlived is no failure. Between equals RULES E3's order decides.

Never: take advice, options or quoted source for evidence; call a run failed that goes on; read a file or a clock.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from states import log_events as events
from states.log_events import Event, Scan, Weight
from states.reading import Diagnosis, Line, Quote, Sign
from states.signatures import Candidates, Entry, Signatures, load

__all__ = ["diagnose", "load"]

SIGNS_MAX = 40
ALSO_MAX = 4
EVIDENCE_MAX = 4
LIVE_LINES = 15
"""Ordinary lines of one process after an exception that show it was caught."""
TAIL_LINES = 40
"""How near the end a surviving trouble must stand to be what the run is busy with."""
NEAR_LINES = 60
"""How far before a root its reason in the surroundings may stand."""
LOOP_MIN = 3
"""Times that a survivable trouble must come to be called a loop."""
NAN_MIN = 2

TRIAGE = ("scheduling", "image", "mount", "config", "command", "memory", "env")
"""RULES E3: which layer is named first when two stand on the same line."""

_LOSS = re.compile(
    r"\b(?:[a-z_]{0,24}loss|ppl|perplexity)['\"]?(?: value)?\s{0,4}[:=|]?\s{0,4}['\"]?"
    r"(?:tensor\()?(?P<value>-?nan|-?inf|[-+]?\d[\d.]{0,20}(?:[eE][-+]?\d{1,4})?)\b",
    re.IGNORECASE,
)
_NOT_STARTED = re.compile(r"(?<![\w/.])0/(\d{1,9})\b.{0,40}\[\d\d:\d\d<\?")


class _Pick(NamedTuple):
    """The chosen event and the other events that speak for the same cause."""

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
    scan = events.scan(lines, known, candidates)
    risen = events.rises(lines) if scan.events else {}
    live = [event for event in scan.events if not events.outlived(event.last, risen.values())]
    said = [*_said(reasons, known, not lines), *_exit(exit_code, signal, known)]
    broken = _nan(lines, known)
    ended = _ended(live, said, exit_code, signal)
    pick = _choose([*live, *broken], said, scan, ended, len(lines))
    if pick is None and ended and scan.events and (exit_code or _collapsed(live)):
        pick = _choose(scan.events[-1:], said, scan, ended, len(lines))
    if pick is None:
        return Diagnosis(signs=tuple(scan.signs[:SIGNS_MAX]))
    pick = _reconsider(pick, lines, said, known)
    return _diagnosis(pick, [*live, *broken, *said], scan, ended)


def _choose(
    live: Sequence[Event], said: Sequence[Event], scan: Scan, ended: bool, length: int
) -> _Pick | None:
    """The event that explains the others, strongest kind of explanation first."""
    by: dict[Weight, list[Event]] = {weight: [] for weight in Weight}
    for event in sorted([*live, *said], key=_order):
        by[event.weight].append(event)
    facts = by[Weight.fact]
    roots = _first_roots(by[Weight.root], by[Weight.exception], scan)
    first = roots[0] if roots else None
    likely = by[Weight.likely]
    if facts and (first is None or first.weight is not Weight.root or _peer(first)):
        newest = min(facts, key=lambda event: (-event.at, _order(event)))
        return _Pick(newest, tuple([*by[Weight.end], *roots]))
    symptoms = by[Weight.symptom]
    if first is not None and first.weight is Weight.root:
        outer = [event for event in likely if _behind(event, first)]
        return _Pick(outer[0], (first,)) if outer else _Pick(first, tuple(likely + symptoms))
    second = sorted([*roots, *symptoms], key=_order)
    if second:
        before = [event for event in likely if event.at <= second[0].at and _explains(event)]
        return _Pick((before or second)[0], tuple(second))
    ends = by[Weight.end]
    told = [event for event in likely if event.at >= _AFTER_LOG]
    if told and not ends:
        return _Pick(told[-1])
    whys = [event for event in likely if "process.killed" in event.also]
    if whys and ends:
        return _Pick(whys[0], tuple(ends))
    if likely and (_crashed(ends, ended) or _busy_with(likely, min([length, *(event.at for event in ends)]))):
        return _Pick(likely[0], tuple(ends))
    return _Pick(_worst_end(ends)) if ends else None


def _crashed(ends: Sequence[Event], ended: bool) -> bool:
    """Did it end, and not only because somebody or something stopped it?"""
    return ended and (not ends or any(event.sign.cause != "process.killed" for event in ends))


def _first_roots(roots: Sequence[Event], unknown: Sequence[Event], scan: Scan) -> list[Event]:
    """Roots and unknown exceptions in order of time, without exceptions whose process was seen to go on to a root."""
    if not roots:
        return list(unknown)
    last_root = roots[-1].at
    gone_on = [event for event in unknown if event.at < last_root and _went_on(event.last, last_root, scan)]
    return sorted([*roots, *(event for event in unknown if event not in gone_on)], key=_order)


def _went_on(after: int, until: int, scan: Scan) -> bool:
    count = 0
    for at in scan.plain:
        if after < at < until:
            count += 1
            if count > LIVE_LINES:
                return True
    return False


def _order(event: Event) -> tuple[int, int]:
    layer = event.sign.cause.partition(".")[0]
    return event.at, TRIAGE.index(layer) if layer in TRIAGE else len(TRIAGE)


def _peer(event: Event) -> bool:
    """Is it of the kind that a lost peer or node causes in the others?"""
    return event.sign.cause.startswith(("comm.", "network.", "process.", "hang."))


def _behind(early: Event, root: Event) -> bool:
    """Is an earlier trouble of the surroundings the reason of this root, which itself allows that reading?"""
    near = root.at - NEAR_LINES <= early.at <= root.at
    layer = early.sign.cause.partition(".")[0]
    outside = layer in ("network", "mount", "storage") and not root.sign.cause.startswith(layer)
    return near and outside and early.sign.cause in root.also


def _explains(event: Event) -> bool:
    """May a survivable line outweigh an exception of the program? Not what merely was slow or retried."""
    return not event.sign.cause.startswith("download.")


def _busy_with(likely: Sequence[Event], until: int) -> bool:
    """Is a survivable trouble all that still happens: again and again, up to the end or the kill?"""
    times: dict[str, int] = {}
    for event in likely:
        times[event.sign.entry] = times.get(event.sign.entry, 0) + event.count
    last = max(event.last for event in likely)
    return max(times.values()) >= LOOP_MIN and last >= until - TAIL_LINES


def _worst_end(ends: Sequence[Event]) -> Event:
    """Of bare ends the one that says most: a crash of the program, then a kill, then a launcher tidying up."""
    return min(ends, key=lambda event: (event.sign.cause == "process.killed", not event.fatal, event.at))


def _collapsed(live: Sequence[Event]) -> bool:
    return any(event.weight is Weight.end and event.fatal for event in live)


def _ended(live: Sequence[Event], said: Sequence[Event], exit_code: int | None, signal: int | None) -> bool:
    """Does anything show that a process came to an end that it did not choose?"""
    if exit_code or signal:
        return True
    return any(event.fatal and event.weight is not Weight.likely for event in [*live, *said])


def _said(reasons: Sequence[str], known: Signatures, silent: bool) -> list[Event]:
    """The scheduler's words as events. They stand after the log: it speaks of what it saw at the end.

    Troubles of the start that a later word says are over, or that output shows to be over, are left out.
    """
    found: list[Event] = []
    started = max((number for number, reason in enumerate(reasons) if _STARTED.search(reason)), default=-1)
    for number, reason in enumerate(reasons):
        line = Line(0, reason)
        hits = [hit.entry for hit in known.match(reason, "reason")]
        if any(entry.role in ("noise", "advice") for entry in hits):
            continue
        for entry in hits:
            of_start = entry.cause.startswith(_OF_START) and entry.role != "confirmation"
            if of_start and (number < started or (not silent and not entry.fatal)):
                continue
            found.append(_event(entry, line, _AFTER_LOG + number))
    return found


_STARTED = re.compile(r"\bStarted container|^(?:Started|Running|RUNNING)\b|Successfully (?:pulled|assigned)")
_OF_START = ("scheduling.capacity", "scheduling.unsat", "scheduling.quota", "image.", "mount.")
_AFTER_LOG = 1 << 40

_EXITS: dict[int, str] = {
    124: "scheduling.time_limit",
    126: "command.not_found",
    127: "command.not_found",
    130: "process.killed",
    137: "process.killed",
    143: "process.killed",
    135: "memory.shm",
    139: "code.exception",
    134: "code.exception",
}
"""Exit codes of shells and of signals (128 + number); 124 is timeout(1)'s."""


def _exit(exit_code: int | None, signal: int | None, known: Signatures) -> list[Event]:
    """What an exit code or a signal says by itself: never more than how a process ended."""
    code = 128 + signal if signal else exit_code
    if code is None:
        return []
    code = 128 - code if code < 0 else code
    cause = _EXITS.get(code)
    if cause is None:
        return []
    layer = known.causes[cause]
    evidence = Quote(line=0, text=f"signal {signal}" if signal else f"exit code {exit_code}")
    sign = Sign(
        entry=f"exit:{code}",
        cause=cause,
        role="confirmation",
        owner=layer.owner,
        retryable=layer.retryable,
        evidence=evidence,
        advice=layer.advice,
    )
    also = ("memory.host",) if code == 137 else ()
    return [Event(_AFTER_LOG - 1, _AFTER_LOG - 1, Weight.end, sign, also)]


def _event(entry: Entry, line: Line, at: int) -> Event:
    sign = Sign(
        entry=entry.id,
        cause=entry.cause,
        role=entry.role,
        owner=entry.owner,
        retryable=entry.retryable,
        evidence=events.quote(line),
        advice=entry.advice,
        rank=line.rank,
    )
    return Event(at, at, events.weigh(entry), sign, entry.also, entry.fatal)


def _nan(lines: Sequence[Line], known: Signatures) -> list[Event]:
    """A loss that is no number to the end: an event that stands at the first of its last unbroken run."""
    first = last = -1
    run = 0
    for at, line in enumerate(lines):
        if "oss" not in line.text and "ppl" not in line.text:
            continue
        values = [found["value"].lower() for found in _LOSS.finditer(line.text[:1200])]
        if not values:
            continue
        if all(value.lstrip("-") in ("nan", "inf") for value in values):
            first, last, run = (at if run == 0 else first), at, run + 1
        else:
            run = 0
    if run < NAN_MIN:
        return []
    layer = known.causes["numerics.nan"]
    sign = Sign(
        entry="loss-not-a-number",
        cause="numerics.nan",
        role="root",
        owner=layer.owner,
        retryable=layer.retryable,
        evidence=events.quote(lines[first]),
        advice=layer.advice,
    )
    return [Event(first, last, Weight.likely, sign, (), False, count=max(run, LOOP_MIN))]


def _reconsider(pick: _Pick, lines: Sequence[Line], said: Sequence[Event], known: Signatures) -> _Pick:
    """A kill without a reason: what the rest of the log lets one say about why somebody or something killed it."""
    event = pick.event
    if event.sign.cause != "process.killed" or event.weight is not Weight.end:
        return pick
    if "Killed" in event.sign.evidence.text and any(other.sign.entry == "exit:137" for other in said):
        return _Pick(_with_cause(event, "memory.host", known), pick.with_it)
    bars = [at for at, line in enumerate(lines) if _NOT_STARTED.search(line.text)]
    if bars and not any(ats[-1] > bars[-1] for ats in events.rises(lines).values()):
        layer = known.causes["hang.silent"]
        sign = event.sign.model_copy(
            update={
                "entry": "bar-never-moved",
                "cause": "hang.silent",
                "evidence": events.quote(lines[bars[-1]]),
                "owner": layer.owner,
                "retryable": layer.retryable,
                "advice": layer.advice,
            }
        )
        return _Pick(Event(bars[-1], bars[-1], Weight.end, sign, ("process.killed",)), (event,))
    return pick


def _with_cause(event: Event, cause: str, known: Signatures) -> Event:
    layer = known.causes[cause]
    update = {"cause": cause, "owner": layer.owner, "retryable": layer.retryable, "advice": layer.advice}
    return event._replace(sign=event.sign.model_copy(update=update), also=(event.sign.cause, *event.also))


def _diagnosis(pick: _Pick, everything: Sequence[Event], scan: Scan, ended: bool) -> Diagnosis:
    event = pick.event
    sign = event.sign
    others = sorted((other for other in everything if other is not event), key=_order)
    same = [other for other in others if other.sign.cause == sign.cause and other.sign.entry != sign.entry]
    also = dict.fromkeys(event.also)
    also.update(dict.fromkeys(other.sign.cause for other in pick.with_it))
    also.update(dict.fromkeys(other.sign.cause for other in others if other.weight is not Weight.end))
    also.pop(sign.cause, None)
    quotes = [sign.evidence, *scan.spoken.get(event.chain, ())]
    quotes += [other.sign.evidence for other in same]
    quotes += [other.sign.evidence for other in others if other.sign.entry == sign.entry]
    quotes += [other.sign.evidence for other in pick.with_it]
    return Diagnosis(
        cause=sign.cause,
        also=tuple(also)[:ALSO_MAX],
        owner=sign.owner,
        retryable=sign.retryable,
        evidence=tuple(_distinct(quotes))[:EVIDENCE_MAX],
        advice=sign.advice,
        signs=(sign, *(other for other in scan.signs if other != sign))[:SIGNS_MAX],
        fatal=event.fatal if event.weight is not Weight.likely else ended,
    )


def _distinct(quotes: Iterable[Quote]) -> list[Quote]:
    seen: dict[str, Quote] = {}
    for one in quotes:
        seen.setdefault(one.text, one)
    return list(seen.values())
