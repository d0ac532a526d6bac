"""Server-sent events: a bell for the pages ("something changed"), and the new lines of a log.

The bell carries nothing: the page asks for its part anew, by the same way as the first time, so there is one way to
make each part, and each is asked for with a session that still holds.

Never: outlive the session it was opened with, or the process.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from functools import partial
from typing import Annotated

from anyio import sleep, to_thread
from fastapi import APIRouter, Depends, Header, Query, Request
from fastapi.sse import EventSourceResponse, ServerSentEvent

from agent.store import Store
from agent.web.api import Reads
from agent.web.here import Here, here
from agent.web.logtail import tail

router = APIRouter(prefix="/live", default_response_class=EventSourceResponse, include_in_schema=False)

Last = Annotated[str, Header(alias="Last-Event-ID")]

LOOK_S = 0.5
"""Between two looks at the store, one small query each; so the bell rings twice a second at most."""
Pace = Annotated[float, Query(ge=LOOK_S, le=30)]
LOG_S, LOG_S_MAX = 1.0, 20.0
"""Between two reads of a log: every read is a call to the cluster, so a silent log is read ever more rarely."""


def known(request: Request, run: str) -> str:
    """The id of the run, found before anything is answered: a stream that has begun can only break off."""
    return here(request).service.job(run).id


Known = Annotated[str, Depends(known)]


@router.get("/all")
async def bell(
    request: Request, who: Reads, mark: str = "", pace_s: Pace = LOOK_S, last: Last = ""
) -> AsyncIterator[ServerSentEvent]:
    """`changed` when anything about any run was recorded; `asked` when the open questions are others. pace_s: between
    two looks; a long board asks for more, since it is drawn anew."""
    async for event in _ring(request, "", last or mark, pace_s):
        yield event


@router.get("/runs/{run}")
async def bell_of_run(
    request: Request, who: Reads, job_id: Known, mark: str = "", last: Last = ""
) -> AsyncIterator[ServerSentEvent]:
    """The same for one run."""
    async for event in _ring(request, job_id, last or mark):
        yield event


async def _ring(
    request: Request, run: str, seen: str, pace_s: float = LOOK_S
) -> AsyncIterator[ServerSentEvent]:
    """From the mark on that the page was made at, so that nothing falls between the page and its bell."""
    place = here(request)
    store = place.service.ports.store
    yield ServerSentEvent(comment="here")
    while True:
        mark = await to_thread.run_sync(mark_of, store, run, seen)
        if mark != seen:
            asked = mark.partition("-")[2] != seen.partition("-")[2]
            yield ServerSentEvent(event="changed", raw_data=mark, id=mark)
            if asked:
                yield ServerSentEvent(event="asked", raw_data=mark, id=mark)
            seen = mark
        if not await _goes_on(request, place, pace_s):
            return


@router.get("/log/{run}")
async def log(
    request: Request,
    who: Reads,
    job_id: Known,
    cursor: str = "",
    last: Last = "",
) -> AsyncIterator[ServerSentEvent]:
    """New lines of the run's log as HTML, until it has ended. The id of each event is where it ended."""
    place = here(request)
    at, pause_s = last or cursor, LOG_S
    while await _goes_on(request, place, pause_s):
        job = await to_thread.run_sync(place.service.job, job_id)
        piece = await to_thread.run_sync(partial(tail, place.service, job, cursor=at))
        # The same cursor again, or none: nothing is known to be new, and nothing is shown twice.
        new = piece.lines if piece.cursor and piece.cursor != at else []
        if new:
            page = place.pages.page(request, "log_lines.html", lines=new)
            yield ServerSentEvent(raw_data=bytes(page.body).decode(), id=piece.cursor)
        at = piece.cursor or at
        pause_s = LOG_S if new else min(pause_s * 1.5, LOG_S_MAX)
        if job.is_terminal and not new:
            yield ServerSentEvent(event="ended", raw_data=str(job.state))
            return


async def _goes_on(request: Request, place: Here, pause_s: float) -> bool:
    """Wait, and say whether the stream is still wanted: by the reader, by the door, by this process."""
    while pause_s > 0:
        if place.leaving.is_set() or await request.is_disconnected():
            return False
        await sleep(min(pause_s, LOOK_S))
        pause_s -= LOOK_S
    return place.door.who(request) is not None


def mark_of(store: Store, run: str, seen: str = "") -> str:
    """What changes with every record of the run (or of any), a dash, and what changes with its open questions."""
    newest = store.mark(run)
    if seen.partition("-")[0] == newest:
        return seen
    jobs = [store.load(run)] if run else store.with_open_questions()
    asked = " ".join(question.id for job in jobs for question in job.open_questions)
    return f"{newest}-{hashlib.sha256(asked.encode()).hexdigest()[:8]}"
