"""The events of a log that could explain a failure: what they are, and how much each explains.

Made from a signature (`of_entry`) or from an exception that no signature knows (`of_exception`).

Never: search a log (`log_scan` does); choose between events (`causes` does).
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from states.logs import exceptions
from states.logs.signatures import Entry, Layer, Signatures
from states.logs.tracebacks import Raised, Trace
from states.reading import Line, Quote, Role, Sign

QUOTE_CHARS_MAX = 600


class Weight(StrEnum):
    """How much an event explains. The order is that within one chain of exceptions, strongest first.

    root: it starts a failure. symptom: it tells of a failure elsewhere, but of its layer. likely: it may have been
    survived. exception: one of the program's own. fact: true whenever it stands. end: a process ended, no more.
    """

    root = "root"
    symptom = "symptom"
    likely = "likely"
    exception = "exception"
    fact = "fact"
    end = "end"


ORDER = {weight: number for number, weight in enumerate(Weight)}

WRAPPERS = (
    "RayTaskError",
    "ChildFailedError",
    "CalledProcessError",
    "SystemExit",
    "ExceptionGroup",
    "BaseExceptionGroup",
)
"""Exceptions that only carry another one's news."""

HANDLED = (
    "KeyError",
    "AttributeError",
    "StopIteration",
    "Empty",
    "CancelledError",
    "IndexError",
    "TypeError",
)
"""Exceptions that programs catch as a matter of course: within a chain they explain nothing."""


PEER_LOST = ("BrokenPipeError", "BrokenResourceError", "EndOfStream")
"""Exceptions of a process whose partner is gone: they explain nothing by themselves."""


class Event(NamedTuple):
    """One event. at/last: positions of its first and last line; times: how often it stands in the log.

    chain: number of the chain of exceptions that it belongs to, or -1. fatal: a process ended of it.
    """

    at: int
    last: int
    weight: Weight
    sign: Sign
    also: tuple[str, ...] = ()
    fatal: bool = True
    chain: int = -1
    times: int = 1

    @property
    def cause(self) -> str:
        """The cause that the event asserts."""
        return self.sign.cause

    def softened(self) -> Event:
        """The same event as one that its process lived through."""
        return self._replace(weight=Weight.likely, fatal=False)

    def reread(self, cause: str, known: Signatures) -> Event:
        """The same lines as evidence of another cause; what was read before stays an `also`."""
        layer = known.causes[cause]
        update = {
            "cause": cause,
            "owner": layer.owner,
            "retryable": layer.retryable,
            "advice": layer.advice,
        }
        return self._replace(sign=self.sign.model_copy(update=update), also=(self.cause, *self.also))


def quote(line: Line, start: int = 0) -> Quote:
    """The line as it was, bounded: of a long line the piece around `start`, where the telling words stand."""
    text = line.prefix + line.text
    if len(text) > QUOTE_CHARS_MAX:
        text = text[max(0, len(line.prefix) + start - QUOTE_CHARS_MAX // 3) :]
    return Quote(line=line.number, text=text.strip()[:QUOTE_CHARS_MAX])


def weigh(entry: Entry) -> Weight:
    """What an entry's role says about how much its lines explain."""
    if entry.role == "confirmation":
        return Weight.fact
    if entry.role == "cascade":
        return Weight.end if entry.cause in ("process.killed", "code.exception") else Weight.symptom
    return Weight.root if entry.fatal else Weight.likely


def sign_of(entry: Entry, line: Line, start: int = 0) -> Sign:
    """What an entry says about a line that matches it from `start` on."""
    return Sign(
        entry=entry.id,
        cause=entry.cause,
        role=entry.role,
        owner=entry.owner,
        retryable=entry.retryable,
        evidence=quote(line, start),
        advice=entry.advice,
        rank=line.rank,
    )


def found_sign(
    name: str, cause: str, layer: Layer, evidence: Quote, rank: str = "", role: Role = "root"
) -> Sign:
    """A sign that stands in no file: found by the engine itself, with what is usual for its cause."""
    return Sign(
        entry=name,
        cause=cause,
        role=role,
        owner=layer.owner,
        retryable=layer.retryable,
        evidence=evidence,
        advice=layer.advice,
        rank=rank,
    )


def of_entry(
    entry: Entry, line: Line, at: int, *, start: int = 0, mild: bool = False, chain: int = -1
) -> Event:
    """The event of a line that matches from `start` on. mild: the line itself says that its process lives on."""
    event = Event(at, at, weigh(entry), sign_of(entry, line, start), entry.also, entry.fatal, chain)
    return event.softened() if mild and event.weight in (Weight.root, Weight.symptom) else event


def of_exception(link: Raised, chain: Trace | None, number: int, line: Line, known: Signatures) -> Event:
    """The event of an exception that no signature explained: what its class, message and frames tell."""
    kind = exceptions.classify(link.name, link.message, link.frames)
    name = f"exception:{link.name or 'message'}"
    sign = found_sign(name, kind.cause, known.causes[kind.cause], quote(line), line.rank)
    return Event(link.at, link.at, _weigh_exception(link, chain, kind.cause), sign, kind.also, True, number)


def _weigh_exception(link: Raised, chain: Trace | None, cause: str) -> Weight:
    if cause == "process.killed" or (cause == "code.exception" and not link.name):
        return Weight.end
    if chain is not None and link is not chain.links[-1] and link.name in HANDLED:
        return Weight.end
    if link.name in PEER_LOST:
        return Weight.end
    if cause != "code.exception":
        return Weight.root
    return Weight.exception if chain is None or link is _spokesman(chain) else Weight.end


def _spokesman(chain: Trace) -> Raised:
    """The unknown exception that stands for its chain: the first if the others were raised from it, else the last."""
    links = [link for link in chain.links if link.name not in WRAPPERS] or list(chain.links)
    return links[0] if all(link.how == "cause" for link in links[1:]) else links[-1]
