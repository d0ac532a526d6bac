"""How a followed run is shown: a live region on a terminal, lines where there is none, JSON lines for programs.

The live region is a few lines that never grow: standing, bar, figures, loss, what is worrying, the open question, the
newest report. Reports that a person must not miss, and the one of the submit, stay above it in the scrollback.

Never: a control sequence where the output is no terminal; text of a log that was not made safe.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any

from agent.cli.output import emit, safe, say, width_of
from agent.follow import Message, News
from states.board import board
from states.job import Job
from states.reports import next_action
from states.rows import concern_row, facts_of, look_row, question_rows, standing, words_row
from states.sparkline import curve, spark
from states.wording import duration, number, plain, since

NARROW = 60
"""Columns below which the region gives up what is only pleasant."""
WIDTH_MAX = 110
CURVE_LINES = 6
CURVE_COLUMNS = 64
CURVE_POINTS_MIN = 4
QUIET_S = 60.0
"""Without a terminal: progress alone is a line at most this often, or at every tenth of the whole."""
LAST = frozenset({"wrap_up", "not_submitted"})
WHOLE = frozenset({"submitted", "wrap_up", "not_submitted"})
"""Reports that are shown in full; of the others the first line is enough, unless they must not be missed."""


def words_of(message: Message) -> str:
    """A message as it is shown beside the view: in full, or its first line."""
    text = str(message["text"])
    if message["must_not_miss"] or message["stage"] in WHOLE or message["kind"] == "question":
        return text
    return text.partition("\n")[0]


def closing_words(job: Job, width: int) -> list[str]:
    """Below the last report: the loss of the whole run as a small curve, where there is one to draw."""
    losses = [point.value for point in job.track.losses]
    if len(losses) < CURVE_POINTS_MIN:
        return []
    lines = curve(losses, min(width, CURVE_COLUMNS), CURVE_LINES, ascii_only=not _utf8())
    return ["", "loss", *lines] if lines else []


class Lines:
    """A line for each piece of news: for pipes, files and `nohup`."""

    def __init__(self) -> None:
        self._said: tuple[Any, ...] | None = None
        self._said_at: datetime | None = None
        self._share = -1

    def show(self, news: News) -> None:
        for message in news.messages:
            say(*_stamped(message["at"], words_of(message)))
        if not news.messages and self._is_news(news):
            say(*_stamped(news.at, ", ".join([standing(news.job, news.at), *facts_of(news.job, news.at)[:3]])))
        elif news.messages:
            self._is_news(news)

    def end(self, news: News) -> None:
        for message in news.messages:
            if message["stage"] not in LAST:
                say(*_stamped(message["at"], words_of(message)))
        _say_the_end(news)

    def close(self) -> None:
        pass

    def _is_news(self, news: News) -> bool:
        """A change of state or judgement at once; progress by tenths, or after a while."""
        job, main = news.job, news.job.track.main
        verdict = job.verdict.name if job.verdict else ""
        key = (job.state, job.doing, verdict, len(job.attempts))
        share = int(10 * main.value / main.total) if main and main.total else -1
        moved = main is not None and self._said_at is not None and _later(self._said_at, news.at, QUIET_S)
        if self._said == key and share == self._share and not (moved and job.track.moved_since(self._said_at)):
            return False
        first = self._said is None
        self._said, self._said_at, self._share = key, news.at, share
        return not first
