"""One pass over a log's lines for every event in them that could explain a failure.

Every line that is no source code of a traceback is held against the signatures; what only advises, supposes or
prints options is dropped. Each chain of exceptions gives one event: its earliest link that names a layer.

Never: choose between events (`causes` does); keep more than a bounded number of them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from states.logs import hedging, outliving, tracebacks
from states.logs.log_events import (
    ORDER,
    WRAPPERS,
    Event,
    Weight,
    of_entry,
    of_exception,
    quote,
    sign_of,
    weigh,
)
from states.logs.shapes import per_shape, shape
from states.logs.signatures import Candidates, Hit, Signatures
from states.logs.tracebacks import Raised, Trace, Tracebacks
from states.reading import Line, Quote, Sign

PER_ENTRY_MAX = 24
"""Events of one entry that are kept per rank: the first ones; the last of them goes on counting."""
SIGNS_MAX = 200
RANKS_MAX = 256
"""Ranks of which events are kept apart; those beyond are read as one."""

_NARROWER = ("network.proxy", "network.dns", "network.rate_limited")
_EXCEPTIONAL = re.compile("rror|xception|NotFound|Failed|Timeout|Interrupt|Disconnected")


class Scan(NamedTuple):
    """All that one pass found.

    plain: positions of ordinary lines, for telling a live process. spoken: per chain of exceptions the lines that
    speak for its event, and its last one.
    """

    events: list[Event]
    signs: list[Sign]
    plain: list[int]
    spoken: dict[int, tuple[Quote, ...]]


def scan(lines: Sequence[Line], signatures: Signatures, candidates: Candidates | None = None) -> Scan:
    """Everything in the lines that could explain a failure. Linear in the size of the text."""
    traces = tracebacks.find(lines)
    pickings = _Pickings(lines, signatures, traces)
    for at, line in enumerate(lines):
        if at not in traces.code and line.text:
            pickings.line(at, line, candidates)
    for number, chain in enumerate(traces.chains):
        pickings.chain(number, chain)
    pickings.loose_exceptions()
    return pickings.result()


class _Pickings:
    """What one scan has gathered so far."""

    def __init__(self, lines: Sequence[Line], signatures: Signatures, traces: Tracebacks) -> None:
        self._lines = lines
        self._signatures = signatures
        self._traces = traces
        self._owner = {at: number for number, chain in enumerate(traces.chains) for at in chain.members}
        self._found: dict[tuple[str, str], list[Event]] = {}
        self._of_chain: dict[int, list[Event]] = {}
        self._signs: dict[tuple[str, str], Sign] = {}
        self._ranks: set[str] = set()
        self._silenced: set[int] = set()
        self._loose: list[int] = []
        self._plain: list[int] = []
        self._spoken: dict[int, tuple[Quote, ...]] = {}

    def line(self, at: int, line: Line, candidates: Candidates | None) -> None:
        """Holds one line against the signatures."""
        hits = [
            hit
            for hit in self._signatures.match(line.text, "log", candidates)
            if not hedging.supposed(line.text, hit.start)
        ]
        quiet = next((hit for hit in hits if hit.entry.role in ("noise", "advice")), None)
        if quiet is not None:
            self._silenced.add(at)
            self._note(quiet, line)
            return
        mild = bool(hits) and hedging.mild(line.text)
        for hit in hits:
            self._add(at, line, hit, mild)
        if at in self._owner or any(weigh(hit.entry) is not Weight.likely for hit in hits):
            return
        if _exceptional(shape(line.text)) and _stands_alone(line.text):
            self._loose.append(at)
        elif not hits:
            self._plain.append(at)

    def chain(self, number: int, chain: Trace) -> None:
        """One event for a chain: a signature on one of its lines, else what its exceptions tell."""
        known = self._of_chain.pop(number, [])
        if chain.quiet or any(link.at in self._silenced for link in chain.links):
            return
        told = [event for link in chain.links if (event := self._told(number, chain, link, known))]
        everything = sorted([*known, *told], key=lambda event: (ORDER[event.weight], event.at))
        if not everything:
            return
        best = _refined(everything)
        others = [event.cause for event in everything if event.cause != best.cause]
        self._keep(
            best._replace(last=max(best.last, chain.last), also=tuple(dict.fromkeys([*best.also, *others])))
        )
        same = [event.sign.evidence for event in everything if event.cause == best.cause]
        self._spoken[number] = tuple(dict.fromkeys([*same[:3], quote(self._lines[chain.links[-1].at])]))

    def loose_exceptions(self) -> None:
        """Exception lines that stand alone: the block before them was cut off or printed elsewhere."""
        for at in self._loose:
            found = _stands_alone(self._lines[at].text)
            if found and (event := self._told(-1, None, Raised(at, found[0], found[1], ()), [])):
                self._keep(event)

    def result(self) -> Scan:
        """All of it, in the order of the log."""
        groups = self._found.values()
        events = outliving.settle(groups, self._lines, self._plain, self._traces.chains, self._signatures)
        events.sort(key=lambda event: (event.at, ORDER[event.weight]))
        return Scan(events, list(self._signs.values()), self._plain, self._spoken)

    def _add(self, at: int, line: Line, hit: Hit, mild: bool) -> None:
        owner = self._owner.get(at, -1)
        event = of_entry(hit.entry, line, at, start=hit.start, mild=mild, chain=owner)
        self._note(hit, line)
        if owner >= 0:
            self._of_chain.setdefault(owner, []).append(event)
        else:
            self._keep(event)

    def _note(self, hit: Hit, line: Line) -> None:
        key = (hit.entry.id, line.rank)
        if key not in self._signs and len(self._signs) < SIGNS_MAX:
            self._signs[key] = sign_of(hit.entry, line, hit.start)

    def _keep(self, event: Event) -> None:
        rank = event.sign.rank if event.sign.rank in self._ranks or len(self._ranks) < RANKS_MAX else ""
        self._ranks.add(rank)
        held = self._found.setdefault((event.sign.entry, rank), [])
        if len(held) < PER_ENTRY_MAX:
            held.append(event)
        else:
            held[-1] = held[-1]._replace(last=event.last, times=held[-1].times + 1)

    def _told(self, number: int, chain: Trace | None, link: Raised, known: Sequence[Event]) -> Event | None:
        """The event of one exception, unless it only wraps another or a signature explained its line."""
        explained = any(event.at == link.at and event.weight is not Weight.likely for event in known)
        if explained or link.name in WRAPPERS:
            return None
        return of_exception(link, chain, number, self._lines[link.at], self._signatures)


@per_shape
def _exceptional(of: str) -> bool:
    return _EXCEPTIONAL.search(of) is not None


def _refined(ordered: Sequence[Event]) -> Event:
    """The first of a chain's events, or a narrower one: that the network failed, then that it was the proxy."""
    best = ordered[0]
    if best.cause != "network.timeout":
        return best
    narrower = (event for event in ordered if event.weight is best.weight and event.cause in _NARROWER)
    return next(narrower, best)


def _stands_alone(text: str) -> tuple[str, str] | None:
    """(class, message) of an exception line, bare or after what a logger at error level puts before it."""
    if (found := tracebacks.raised(text)) or hedging.mild(text):
        return found
    rest = hedging.after_logger(text)
    return tracebacks.raised(rest) if rest else None
