"""The events of a log that could explain a failure, each with where it stands and whether the run outlived it.

Every line that is no source code of a traceback is held against the signatures; what only advises, supposes or
prints options is dropped (RULES E3; corpus finding 3). Each chain of exceptions gives one event: its earliest
link that names a layer. An event is outlived when counters kept rising after it.

Never: choose between events (`causes` does); keep more than a bounded number of them.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import NamedTuple

from states import exceptions, tracebacks
from states.reading import Line, Owner, Quote, Sign
from states.signatures import Candidates, Entry, Signatures
from states.tracebacks import Raised, Trace, Tracebacks

QUOTE_CHARS_MAX = 600
PER_ENTRY_MAX = 24
"""Hits of one entry that are kept per rank: the first ones; the count goes on."""
RISES_OUTLIVED = 3
"""Rises of one counter after an event that show that the run went on."""


LOOP_TIMES = 4
"""Times that one failed fetch must stand in the log to be a loop around it."""
AGAIN_LINES = 6
"""Lines after an event within which another try must be announced to belong to it."""
TALKS_ON_LINES = 2
"""Informing lines after an error that was only logged which show that its process went on."""


class Weight(StrEnum):
    """How much an event explains, strongest first."""

    root = "root"
    exception = "exception"
    symptom = "symptom"
    likely = "likely"
    fact = "fact"
    end = "end"


class Event(NamedTuple):
    """One event. at/last: positions of its first and last line; count: how often it stands in the log."""

    at: int
    last: int
    weight: Weight
    sign: Sign
    also: tuple[str, ...] = ()
    fatal: bool = True
    chain: int = -1
    count: int = 1


class Scan(NamedTuple):
    """All that one pass over the lines found.

    plain: positions of ordinary lines, for telling a live process. spoken: per chain of exceptions the lines that
    speak for its event, and its last one.
    """

    events: list[Event]
    signs: list[Sign]
    plain: list[int]
    spoken: dict[int, tuple[Quote, ...]]


_SUPPOSES = re.compile(
    r"\b(?:(?:may|might|can|could|would|will) (?:be|also|have|lead|cause|result|encounter|fail|need|see|run|get|not)"
    r"|[Cc]onsider|[Ii]f (?:you|your|the|this|it|there|not|reserved|needed)|[Tt]o (?:avoid|prevent|troubleshoot|fix|debug)"
    r"|[Ii]n case (?:of|you)|[Pp]ossibl[ey]|[Pp]otential(?:ly)?|[Ll]ikely|[Pp]revents?|[Pp]lease (?:try|make sure|check)"
    r"|[Ff]or example|such as|[Hh]int|[Tt]ip|[Ss]uggest|[Uu]sually|[Rr]ecommend|[Uu]nless|[Ii]n order to|instead of"
    r"|[Tt]ry (?:to|setting|using|reducing)|[Ee]nsure|[Ww]hether)\b"
)
_USAGE = re.compile(
    r"\s{0,16}(?:usage: |--?[a-zA-Z][\w-]{0,60}(?:[ ,=\[]|$)|\+{1,4} (?!.{0,200}(?:not found|No such)))"
)
_DUMP = re.compile(r"(?:Namespace\(|[Aa]rguments?[:=] ?[({]|[Cc]onfig(?:uration)?[:=] ?[({]|args: )")
_CAN_BE_IGNORED = re.compile(
    r"(?:can|may|should) be (?:safely )?ignored|safe to ignore|ignor(?:e this|ing this)"
)
_MILD = re.compile(
    r"^.{0,120}?(?<!NCCL )(?:\b(?:DEBUG|INFO|WARN|WARNING|[Ww]arning|NOTICE)\b|\[[IWD]\])"
    r"(?!.{0,120}\b(?:ERROR|FATAL|CRITICAL)\b)|^[IW]\d{4} \d\d:|[Rr]etrying|[Ww]ill (?:be )?retr|[Tt]rying again|[Rr]econnecting|\b[Rr]etry \d{1,4}/\d"
)
_DOES_WITHOUT = re.compile(
    r"[Ff]all(?:ing|s)? ?back|[Uu]sing (?:the )?defaults?\b|[Ff]or (?:the )?(?:best|better|optimal) performance|[Ss]kipping (?:import|optional)"
)

_AGAIN = re.compile(
    r"[Rr]etrying|[Tt]rying (?:again|to resume)|[Rr]estarting|[Aa]ttempt \d{1,4} (?:of|failed)|[Ww]ill (?:be )?re(?:try|start)|重试|重启"
)
_INFORMS = re.compile(r"^.{0,100}?\b(?:INFO|DEBUG)\b")
_FETCHES = ("network.", "download.", "auth.")

_STEP = re.compile(
    r"\b([Ss]tep|[Gg]lobal[_ ][Ss]tep|[Ii]ter(?:ation)?s?|[Ee]poch|[Bb]atch|[Ee]pisode|[Uu]pdates?)"
    r"['\"]?[\s:=\[#(]{1,4}(\d{1,9})\b(?!-)"
)
_PART = re.compile(r"(?<![\w/.:-])(\d{1,9})/(\d{1,9})(?![\w/.-])")
_NO_STEP = re.compile(r"[Rr]etr|[Aa]ttempt|[Ww]ait|[Rr]esum|[Kk]illing|[Tt]imed? ?out")


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


def rises(lines: Sequence[Line], skip: frozenset[int] = frozenset()) -> dict[str, list[int]]:
    """Per counter (a unit word, or `of N` for n/N) the positions at which it rose. Not retries, waits, kills."""
    highest: dict[str, int] = {}
    found: dict[str, list[int]] = {}
    for at, line in enumerate(lines):
        if at in skip or not line.text or _NO_STEP.search(line.text):
            continue
        marks = [(word.lower(), int(value)) for word, value in _STEP.findall(line.text[:400])]
        marks += [
            (f"of {total}", int(done)) for done, total in _PART.findall(line.text[:400]) if int(total) > 0
        ]
        for key, value in marks:
            if key in highest and value > highest[key]:
                found.setdefault(key, []).append(at)
            highest[key] = value
    return found


def outlived(at: int, risen: Iterable[Sequence[int]]) -> bool:
    """Did any counter rise at least RISES_OUTLIVED times after this position?"""
    return any(len(ats) - bisect.bisect_right(ats, at) >= RISES_OUTLIVED for ats in risen)


def supposed(text: str, start: int) -> bool:
    """Is what stands at `start` only advised, supposed, or printed as an option?"""
    before = text[max(0, start - 240) : start]
    if _SUPPOSES.search(before) or _USAGE.match(text):
        return True
    if _CAN_BE_IGNORED.search(text) or _DOES_WITHOUT.search(text):
        return True
    return bool(_DUMP.search(before))


def quote(line: Line) -> Quote:
    """The line as evidence, bounded."""
    return Quote(line=line.number, text=line.text.strip()[:QUOTE_CHARS_MAX])


def weigh(entry: Entry) -> Weight:
    """What an entry's role says about how much its lines explain."""
    if entry.role == "confirmation":
        return Weight.fact
    if entry.role == "cascade":
        return Weight.end if entry.cause in ("process.killed", "code.exception") else Weight.symptom
    return Weight.root if entry.fatal else Weight.likely


class _Pickings:
    """What one scan has gathered so far."""

    def __init__(self, lines: Sequence[Line], signatures: Signatures, traces: Tracebacks) -> None:
        self._lines = lines
        self._signatures = signatures
        self._traces = traces
        self._owner: dict[int, int] = {}
        for number, chain in enumerate(traces.chains):
            for at in range(chain.first, chain.last + 1):
                if lines[at].rank == chain.rank:
                    self._owner[at] = number
        self._found: dict[tuple[str, str], list[Event]] = {}
        self._of_chain: dict[int, list[Event]] = {}
        self._signs: list[Sign] = []
        self._silenced: set[int] = set()
        self._loose: list[int] = []
        self._plain: list[int] = []
        self._spoken: dict[int, tuple[Quote, ...]] = {}

    def line(self, at: int, line: Line, candidates: Candidates | None) -> None:
        """Holds one line against the signatures."""
        hits = list(self._signatures.match(line.text, "log", candidates))
        hits = [hit for hit in hits if not supposed(line.text, hit.start)] if hits else hits
        quiet = next((hit.entry for hit in hits if hit.entry.role in ("noise", "advice")), None)
        if quiet is not None:
            self._silenced.add(at)
            self._sign(quiet, line)
            return
        mild = bool(hits) and _MILD.search(line.text) is not None
        for hit in hits:
            self._add(at, line, hit.entry, mild)
        if hits or at in self._owner:
            return
        if ("rror" in line.text or "xception" in line.text) and _stands_alone(line.text):
            self._loose.append(at)
        else:
            self._plain.append(at)

    def chain(self, number: int, chain: Trace) -> None:
        """One event for a chain: a signature on one of its lines, else what its exceptions tell."""
        if chain.quiet or any(link.at in self._silenced for link in chain.links):
            self._of_chain.pop(number, None)
            return
        known = self._of_chain.pop(number, [])
        told = [event for link in chain.links if (event := self._told(number, chain, link, known))]
        everything = sorted([*known, *told], key=lambda event: (_ORDER[event.weight], event.at))
        if everything:
            best = _refined(everything)
            others = [event.sign.cause for event in everything[1:] if event.sign.cause != best.sign.cause]
            also = tuple(dict.fromkeys([*best.also, *others]))
            self._keep(best._replace(last=max(best.last, chain.last), also=also))
            same = [event.sign.evidence for event in everything if event.sign.cause == best.sign.cause]
            last = quote(self._lines[chain.links[-1].at])
            self._spoken[number] = tuple(dict.fromkeys([*same[:3], last]))

    def loose_exceptions(self) -> None:
        """Exception lines that stand alone: the block before them was cut off or printed elsewhere."""
        for at in self._loose:
            found = _stands_alone(self._lines[at].text)
            if found is not None:
                event = self._told(-1, None, Raised(at, found[0], found[1], ()), [])
                if event is not None:
                    self._keep(event)

    def result(self) -> Scan:
        events = [event for found in self._found.values() for event in self._looping(found)]
        for held in self._of_chain.values():
            events.extend(held)
        events = self._survived(events)
        events.sort(key=lambda event: (event.at, _ORDER[event.weight]))
        return Scan(events, self._signs, self._plain, self._spoken)

    def _looping(self, found: Sequence[Event]) -> Sequence[Event]:
        """The same failed fetch again and again is a loop around it, not an end."""
        times = sum(event.count for event in found)
        if times < LOOP_TIMES or not all(
            event.chain < 0 and event.sign.cause.startswith(_FETCHES) for event in found
        ):
            return found
        return [_softened(event) for event in found]

    def _survived(self, events: Sequence[Event]) -> list[Event]:
        """Events after which the log says that it tries again; when it restarted for the same each time: a crash loop."""
        shown = [at for at, line in enumerate(self._lines) if _AGAIN.search(line.text)]
        inform = [at for at in self._plain if _INFORMS.search(self._lines[at].text)]
        kept: list[Event] = []
        crashed: dict[str, int] = {}
        for event in events:
            if event.weight in (Weight.root, Weight.exception, Weight.symptom):
                tries = [at for at in shown if event.last < at <= event.last + AGAIN_LINES]
                if tries and any("estart" in self._lines[at].text for at in tries):
                    crashed[event.sign.entry] = crashed.get(event.sign.entry, 0) + event.count
                logged = event.chain < 0 and _LOGGED.search(self._lines[event.at].text)
                talks_on = logged and sum(at > event.last for at in inform) >= TALKS_ON_LINES
                if tries or talks_on or self._unretrieved(event):
                    event = _softened(event)
            kept.append(event)
        return [
            self._as_crash_loop(event) if crashed.get(event.sign.entry, 0) >= RISES_OUTLIVED else event
            for event in kept
        ]

    def _unretrieved(self, event: Event) -> bool:
        return event.chain >= 0 and self._traces.chains[event.chain].survived

    def _as_crash_loop(self, event: Event) -> Event:
        layer = self._signatures.causes["crash.loop"]
        update = {
            "cause": "crash.loop",
            "owner": layer.owner,
            "retryable": layer.retryable,
            "advice": layer.advice,
        }
        return event._replace(sign=event.sign.model_copy(update=update), also=(event.sign.cause, *event.also))

    def _add(self, at: int, line: Line, entry: Entry, mild: bool) -> None:
        """mild: the line is below error level or announces another try, so the process lives on."""
        owner = self._owner.get(at, -1)
        weight = weigh(entry)
        fatal = entry.fatal
        if mild and weight in (Weight.root, Weight.symptom):
            weight, fatal = Weight.likely, False
        event = Event(at, at, weight, _sign(entry, line), entry.also, fatal, owner)
        self._sign(entry, line)
        if owner >= 0:
            self._of_chain.setdefault(owner, []).append(event)
        else:
            self._keep(event)

    def _sign(self, entry: Entry, line: Line) -> None:
        if not any(sign.entry == entry.id and sign.rank == line.rank for sign in self._signs):
            self._signs.append(_sign(entry, line))

    def _keep(self, event: Event) -> None:
        held = self._found.setdefault((event.sign.entry, event.sign.rank), [])
        if len(held) < PER_ENTRY_MAX:
            held.append(event)
        else:
            held[-1] = held[-1]._replace(last=event.last, count=held[-1].count + 1)

    def _told(self, number: int, chain: Trace | None, link: Raised, known: Sequence[Event]) -> Event | None:
        """The event of one exception that no root signature explained."""
        if link.name in _WRAPPERS or any(
            event.at == link.at and event.weight is not Weight.likely for event in known
        ):
            return None
        line = self._lines[link.at]
        kind = exceptions.classify(link.name, link.message, link.frames)
        layer = self._signatures.causes[kind.cause]
        owner: Owner = layer.owner
        sign = Sign(
            entry=f"exception:{link.name or 'message'}",
            cause=kind.cause,
            role="root",
            owner=owner,
            retryable=layer.retryable,
            evidence=quote(line),
            advice=layer.advice,
            rank=line.rank,
        )
        weight = Weight.exception if kind.cause == "code.exception" else Weight.root
        if kind.cause == "process.killed":
            weight = Weight.end
        elif link.name in _HANDLED and chain is not None and link is not chain.links[-1]:
            weight = Weight.end
        if weight is Weight.exception and not link.name:
            weight = Weight.end
        elif chain is not None and weight is Weight.exception:
            weight = _unknown_weight(chain, link)
        return Event(link.at, link.at, weight, sign, kind.also, True, number)


_WRAPPERS = (
    "RayTaskError",
    "ChildFailedError",
    "CalledProcessError",
    "SystemExit",
    "ExceptionGroup",
    "BaseExceptionGroup",
)
_HANDLED = (
    "KeyError",
    "AttributeError",
    "StopIteration",
    "Empty",
    "CancelledError",
    "IndexError",
    "TypeError",
)
_ORDER = {
    Weight.root: 0,
    Weight.symptom: 1,
    Weight.likely: 2,
    Weight.exception: 3,
    Weight.fact: 4,
    Weight.end: 5,
}


_LOGGED = re.compile(r"^.{0,120}?(?:\b(?:ERROR|CRITICAL|FATAL|[Ee]rror)\b|\])[\s:\]|>-]{1,12}")


def _stands_alone(text: str) -> tuple[str, str] | None:
    """(class, message) of an exception line, bare or after what a logger at error level puts before it."""
    if (found := tracebacks.raised(text)) or _MILD.search(text):
        return found
    head = _LOGGED.match(text)
    return tracebacks.raised(text[head.end() :]) if head else None


def _softened(event: Event) -> Event:
    return event._replace(weight=Weight.likely, fatal=False)


def _refined(ordered: Sequence[Event]) -> Event:
    """The first of a chain's events, or a narrower one: that the network failed, then that it was the proxy."""
    best = ordered[0]
    if best.sign.cause == "network.timeout":
        for event in ordered[1:]:
            if event.weight is best.weight and event.sign.cause in (
                "network.proxy",
                "network.dns",
                "network.rate_limited",
            ):
                return event
    return best


def _unknown_weight(chain: Trace, link: Raised) -> Weight:
    """Of the unknown exceptions of a chain one stands for it: the first if others were raised from it, else the last."""
    others = [other for other in chain.links if other.name not in _WRAPPERS]
    direct = all(other.how == "cause" for other in others[1:])
    stands = others[0] if direct else others[-1]
    return Weight.exception if link is stands else Weight.end


def _sign(entry: Entry, line: Line) -> Sign:
    return Sign(
        entry=entry.id,
        cause=entry.cause,
        role=entry.role,
        owner=entry.owner,
        retryable=entry.retryable,
        evidence=quote(line),
        advice=entry.advice,
        rank=line.rank,
    )
