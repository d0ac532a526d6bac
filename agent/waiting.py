"""Waiting for one run with a cursor: until something changed, a question is open, the phase moved, or it has ended.

The cursor is the journal's `seq`: who hands back the last one that was seen misses nothing and is told nothing twice.
The store alone is read, so any number may wait, from any process, whoever carries the run.

Never: a call to a cluster; carry a run; a wait without an end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, Literal, NamedTuple

from agent.ports import Ports
from states.job import Job

Until = Literal["change", "question", "phase", "end"]

PAUSE_S = 0.05
PAUSE_S_MAX = 0.5
"""Between two looks at the store: short at first, since most waits follow something that was just done."""
LAST_WORDS_S = 10.0
"""How long the last report of an ended run is waited for."""

Row = Any
"""A row of the journal: seq, kind, at, outcome, source, to, rule, action, said, body."""


class Waited(NamedTuple):
    """The run as it stands now. seq: the cursor for the next wait. rows: the journal after the cursor that was given.

    reached: what was waited for is there; False: the time is over, or the run has ended and it can no longer come.
    """

    job: Job
    seq: int
    rows: list[Row]
    reached: bool


def wait_for(
    ports: Ports,
    run_id: str,
    *,
    after: int,
    until: Until,
    timeout_s: float,
    pause: Callable[[float], object] | None = None,
) -> Waited:
    """Wait at most `timeout_s` seconds for what comes after the cursor. Blocks; raises Unknown.

    run_id: full id. after: the last seq that was seen; -1 for none. until: `change`, any row of the journal;
    `question`, an open one that was asked after the cursor; `phase`, another state; `end`, ended and reported,
    whatever the cursor. pause: how to wait so many seconds where something can end it early (an event that
    `announce` sets); else the clock's sleep.
    """
    sleep = pause or ports.clock.sleep
    began = ports.clock.now()
    deadline = began + timedelta(seconds=timeout_s)
    told_by = min(deadline, began + timedelta(seconds=LAST_WORDS_S))
    pause_s = PAUSE_S
    while True:
        now = ports.clock.now()
        job = ports.store.load(run_id)
        rows = [row for row in ports.store.journal(run_id, after_seq=after) if row["seq"] <= job.seq]
        told = job.is_terminal and (now >= told_by or ports.store.next_effect(run_id, now) is None)
        reached = told if until == "end" else is_there(job, rows, until)
        if reached or told or now >= deadline:
            return Waited(job, max(after, job.seq), rows, reached or (until == "end" and job.is_terminal))
        sleep(min(pause_s, (deadline - now).total_seconds()))
        pause_s = min(2 * pause_s, PAUSE_S_MAX)


def is_there(job: Job, rows: Sequence[Row], until: Until) -> bool:
    """Whether these rows bring what is waited for."""
    match until:
        case "change":
            return bool(rows)
        case "phase":
            return any(row["source"] != row["to"] for row in rows)
        case "question":
            return bool(rows) and any(q.asked_at >= rows[0]["at"] for q in job.open_questions)
        case "end":
            return job.is_terminal
