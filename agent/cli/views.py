"""How a followed run is shown: a live region on a terminal, lines where there is none, JSON lines for programs.

The live region is a few lines that never grow: standing, bar, figures, loss, what is worrying, the open question, the
newest report. Reports that a person must not miss, and the one of the submit, stay above it in the scrollback.

Never: a control sequence where the output is no terminal; text of a log that was not made safe.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any

from agent.cli.output import BLANK, broken, emit, safe, say, width_of
from agent.follow import LAST, Message, News
from states.board import board
from states.job import Job
from states.questions import Question, option_text
from states.reports import next_action
from states.words.rows import concern_row, facts_of, look_row, open_rows, standing, words_row
from states.words.sparkline import curve, spark
from states.words.wording import duration, number, plain, since

NARROW = 60
"""Columns below which the region gives up what is only pleasant."""
WIDTH_MAX = 110
CURVE_LINES = 6
CURVE_COLUMNS = 64
CURVE_POINTS_MIN = 4
EARLIER_MAX = 5
"""Reports from before that are shown to who comes to follow a run."""
QUIET_S = 60.0
"""Without a terminal: progress alone is a line at most this often, or at every tenth of the whole."""
WHOLE = frozenset({"submitted", LAST})
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
    return [BLANK, "the loss, from start to end:", *lines] if lines else []


class Fresh:
    """The messages of a look; of the first one, which may hold a long history, only the newest."""

    def __init__(self) -> None:
        self._begun = False

    def of(self, news: News) -> tuple[Message, ...]:
        """What is to be shown of them."""
        shown = news.messages if self._begun else news.messages[-EARLIER_MAX:]
        self._begun = True
        return shown


class Lines:
    """A line for each piece of news: for pipes, files and `nohup`."""

    def __init__(self) -> None:
        self._fresh = Fresh()
        self._key: tuple[Any, ...] = ()
        self._at: datetime | None = None
        self._milestone_at: datetime | None = None

    def show(self, news: News) -> None:
        for message in self._fresh.of(news):
            _say_stamped(message["at"], words_of(message))
        if self._moved(news) and not news.messages:
            _say_stamped(news.at, ", ".join([standing(news.job, news.at), *facts_of(news.job, news.at)[:3]]))

    def end(self, news: News) -> None:
        for message in self._fresh.of(news):
            if message["stage"] != LAST:
                _say_stamped(message["at"], words_of(message))
        say(BLANK)
        _say_the_end(news, 80)

    def close(self) -> None:
        pass

    def _moved(self, news: News) -> bool:
        """The state or the judgement changed, or the work went on by a tenth, or for a while."""
        job, track = news.job, news.job.track
        main = track.main
        tenth = int(10 * main.value / main.total) if main and main.total else None
        key = (job.state, job.doing, job.verdict.name if job.verdict else "", len(job.attempts), tenth)
        went_on = track.milestone_at != self._milestone_at
        waited = self._at is not None and news.at - self._at > timedelta(seconds=QUIET_S)
        if key == self._key and not (went_on and waited):
            return False
        self._key, self._at, self._milestone_at = key, news.at, track.milestone_at
        return True


class JsonLines:
    """One JSON object a line: `status` when the run's board changed, `message` for each report, `end`."""

    def __init__(self) -> None:
        self._status: dict[str, Any] = {}

    def show(self, news: News) -> None:
        for message in news.messages:
            emit({"event": "message", "run": news.job.id, **_message_data(message)})
        status = {"state": str(news.job.state), **board(news.job)}
        if status != self._status:
            self._status = status
            emit({"event": "status", "run": news.job.id, "at": news.at, **status})

    def end(self, news: News) -> None:
        self.show(news)
        job = news.job
        emit(
            {
                "event": "end",
                "run": job.id,
                "at": news.at,
                "state": str(job.state),
                "outcome": job.outcome,
                "cause": job.diagnosis.cause,
                "artifacts": [artifact.model_dump(mode="json") for artifact in job.collected.artifacts],
                "next": next_action(job),
            }
        )

    def close(self) -> None:
        pass


class Region:
    """The live region of a terminal. hint: what Ctrl-C does."""

    def __init__(self, hint: str) -> None:
        from rich.console import Console
        from rich.live import Live

        self._hint = hint
        self._fresh = Fresh()
        self._console = Console(highlight=False, markup=False, emoji=False, soft_wrap=True)
        self._live = Live(console=self._console, auto_refresh=False, transient=True)
        self._last: Message | None = None
        self._live.start()

    def show(self, news: News) -> None:
        for message in self._fresh.of(news):
            if message["must_not_miss"] or message["stage"] in WHOLE:
                self._above(message)
            self._last = message
        width = min(self._console.width, WIDTH_MAX)
        self._live.update(self._drawn(region(news, self._last, self._hint, width)), refresh=True)

    def end(self, news: News) -> None:
        for message in self._fresh.of(news):
            if message["stage"] != LAST:
                self._above(message)
        self.close()
        _say_the_end(news, self._console.width)

    def close(self) -> None:
        self._live.stop()

    def _above(self, message: Message) -> None:
        """Into the scrollback, where it stays."""
        from rich.text import Text

        style = "yellow" if message["kind"] == "question" else ""
        lines = [
            part
            for line in words_of(message).splitlines()
            for part in broken(safe(line), self._console.width)
        ]
        self._console.print(Text("\n".join([*lines, ""]), style=style))

    def _drawn(self, rows: Sequence[tuple[str, str]]) -> Any:
        from rich.text import Text

        drawn = Text(no_wrap=True, overflow="ellipsis")
        for place, (style, row) in enumerate(rows):
            drawn.append(("\n" if place else "") + safe(row), style=style or None)
        return drawn


def region(news: News, last: Message | None, hint: str, width: int) -> list[tuple[str, str]]:
    """The rows of the live region as (style, text), each at most `width` columns."""
    job, at = news.job, news.at
    facts = facts_of(job, at)
    rows: list[tuple[str, str]] = [("bold", standing(job, at) + ("" if width < NARROW else _set_up(job)))]
    bar = bar_of(job, width)
    if bar:
        rows.append(("cyan", bar))
    rows += [("", row) for row in flowed(facts, width)]
    losses = [point.value for point in job.track.losses]
    if len(losses) >= CURVE_POINTS_MIN:
        drawn = spark(losses, min(width - 20, CURVE_COLUMNS), ascii_only=not _utf8())
        rows.append(("green", f"loss {number(losses[0])} {drawn} {number(losses[-1])}"))
    rows += [("", words_row(job))] if not facts else []
    rows.append(("yellow", concern_row(job)))
    for row, question in zip(open_rows(job), job.open_questions, strict=True):
        rows += [("bold yellow", row), ("yellow", _countdown(job, question, at))]
    rows.append(("dim", look_row(job, at)))
    if last is not None and width >= NARROW:
        age = duration(since(last["at"], at), job.language)
        first = plain(str(last["text"]).partition("\n")[0])
        rows.append(("dim", f"last report ({last['stage']}, {age} ago): {first}"))
    rows.append(("dim", hint))
    return [(style, line) for style, row in rows if row for line in broken(row, width)]


def bar_of(job: Job, width: int) -> str:
    """`━━━━━━────  40 %  step 120/300`; "" without a total."""
    main = job.track.main
    if main is None or not main.total or main.total <= 0 or not main.value >= 0:
        return ""
    share = min(main.value / main.total, 1.0)
    label = f" {100 * share:3.0f} %"
    room = min(width, WIDTH_MAX) - len(label)
    done = round(share * room)
    full, empty = ("━", "─") if _utf8() else ("#", ".")
    return full * done + empty * (room - done) + label


def flowed(parts: Iterable[str], width: int) -> list[str]:
    """The parts on as few rows as they need, never broken inside where it can be helped."""
    rows: list[str] = []
    for part in parts:
        joined = f"{rows[-1]}  ·  {part}" if rows else part
        if rows and width_of(joined) <= width:
            rows[-1] = joined
        else:
            rows.append(part)
    return rows


def _set_up(job: Job) -> str:
    tried = f", attempt {job.attempts[-1].number}" if len(job.attempts) > 1 else ""
    return f"  ({job.spec.lane} lane{tried})"


def _countdown(job: Job, question: Question, at: datetime) -> str:
    left = duration(since(at, question.answer_by), job.language)
    return f"  {left} left to answer; then: {option_text(question.default, job.language)}"


def _say_stamped(at: datetime, text: str) -> None:
    """Local time of the machine before the first line, the others below it."""
    first, *rest = text.splitlines() or [""]
    say(f"{at.isoformat(timespec='seconds')} {first}", *(f"  {line}" for line in rest))


def _say_the_end(news: News, width: int) -> None:
    """The last report, and the loss as a curve. An ended run that is followed again says the same."""
    reports = [message for message in news.messages if message["stage"] == LAST]
    told = str(reports[-1]["text"]) if reports else f"{news.job.id}: {news.job.outcome}"
    say(told, *closing_words(news.job, width))


def _message_data(message: Message) -> dict[str, Any]:
    return {key: message[key] for key in ("id", "at", "kind", "stage", "text", "must_not_miss")}


def _utf8() -> bool:
    """Of the real output: while the region is live, `sys.stdout` is a stand-in that does not tell."""
    return "utf" in (getattr(sys.__stdout__, "encoding", "") or "").lower()
