"""The end of a run's log as lines for the page: cleaned, redacted, the lines that something rests on marked.

Never: an unbounded read; the log kept anywhere.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from agent.clusters.base import ClusterError
from agent.service import Refusal, Service
from states.job import Job
from states.reading import Quote
from states.text import lines
from states.words.wording import plain

TAIL_LINES = 200
LINE_CHARS_MAX = 2000
QUOTE_CHARS_MIN = 4


class LogLine(NamedTuple):
    """A line as it is shown. marked: a judgement or a question rests on it."""

    text: str
    marked: bool


class Tail(NamedTuple):
    """A piece of a log. cursor: where it ended. why: why there is none, "" where there is."""

    lines: list[LogLine]
    cursor: str
    why: str


def tail(service: Service, job: Job, *, cursor: str = "") -> Tail:
    """The last lines, or what came after the cursor. One call to the cluster; its failure is told, not raised."""
    if not job.attempts:
        return Tail([], "", "")
    try:
        where, ref = service.resolve(job.id)
        piece = where.logs(ref, lines=TAIL_LINES, cursor=cursor)
    except (ClusterError, Refusal, KeyError) as error:
        return Tail([], cursor, plain(str(error), 400))
    if not piece.ready:
        return Tail([], cursor, "")
    quoted = [quote.text.rstrip("…") for quote in evidence(job)]
    quoted = [text for text in quoted if len(text) >= QUOTE_CHARS_MIN]
    shown = [
        LogLine((line.prefix + line.text)[:LINE_CHARS_MAX], any(text in line.text for text in quoted))
        for line in lines(service.ports.redact(piece.text))
    ]
    return Tail(shown[-TAIL_LINES:], piece.cursor, "")


def evidence(job: Job) -> Iterable[Quote]:
    """The lines that the run's verdict, diagnosis and open questions rest on."""
    verdict = job.verdict.diagnosis.evidence if job.verdict else ()
    return (*job.diagnosis.evidence, *verdict, *(quote for q in job.open_questions for quote in q.evidence))
