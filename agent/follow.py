"""Following one run: what is new since the last look, told to a view, until the run has ended and was reported.

A view is a live region on a terminal, a line for each piece of news where there is none, or JSON lines
(`agent/cli/views.py`). All of them read the store alone, so any number may follow a run, from any process.

Never: a call to a cluster; carry a run (the carrier does, which is only tended here).
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from threading import Event
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from states.job import Job

if TYPE_CHECKING:
    from agent.app import App
    from agent.carry import Carrier

LOOK_S = 0.25
"""Between two looks at the store."""
TEND_S = 1.0
"""Between two looks whether somebody carries the run."""
LAST = "wrap-up"
"""The stage of the last report; a view gets it with the end, and not before."""
LAST_WORDS_S = 30.0
"""How long an ended run's last report is waited for."""

Message = Mapping[str, Any]
"""A row of the inbox: id, at, kind, stage, text, must_not_miss."""


class News(NamedTuple):
    """One look: the run as it stands, the messages that came since the last, whether this process carries it."""

    job: Job
    messages: tuple[Message, ...]
    at: datetime
    carried_here: bool


class View(Protocol):
    """Where news go."""

    def show(self, news: News) -> None:
        """Called at every look, news or none."""
        ...

    def end(self, news: News) -> None:
        """The run is over and was reported; `news.messages` are the ones not shown yet."""
        ...

    def close(self) -> None:
        """Give the terminal back, whatever happened."""
        ...


def follow(app: App, run: str, view: View, carrier: Carrier, leave: Event) -> Job | None:
    """Show a run until it has ended and its last report is there. None: `leave` was set before.

    run: its full id. The carrier is tended meanwhile, so the run goes on though the resident agent dies.
    """
    last_message, tended, ended = "", None, None
    last_report: list[Message] = []
    carrier.tend()
    try:
        while not leave.is_set():
            now = app.clock.now()
            if tended is None or carrier.carries or now - tended > timedelta(seconds=TEND_S):
                tended = now
                carrier.tend()
            job: Job = app.store.load(run)
            told = job.is_terminal and _is_told(app, run, now)
            messages = app.store.messages(run, after_id=last_message)
            last_message = messages[-1]["id"] if messages else last_message
            last_report += [message for message in messages if message["stage"] == LAST]
            others = tuple(message for message in messages if message["stage"] != LAST)
            news = News(job, others, now, carrier.carries)
            if job.is_terminal:
                ended = ended or now
                if told or now - ended > timedelta(seconds=LAST_WORDS_S):
                    view.end(news._replace(messages=(*others, *last_report)))
                    return job
            view.show(news)
            leave.wait(LOOK_S)
        return None
    finally:
        view.close()


def _is_told(app: App, run: str, now: datetime) -> bool:
    """Nothing that was asked for this run is left to do."""
    return app.store.next_effect(run, now) is None
