"""What a scripted cluster plays: the script of a job, the job itself, and what goes wrong with calls.

Never: know who asks, or why.
"""

from __future__ import annotations

import json
import os
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Literal, NamedTuple

from agent.clusters.wrapper import run_dir
from states.observation import ENDED, Phase
from states.spec import Spec

OVER = ENDED | {Phase.preempted, Phase.lost, Phase.gone}
"""Phases in which nothing runs any more."""


class Moment(NamedTuple):
    """From `at_s` seconds after the submit on, the cluster says this; fields: those of Observation."""

    at_s: float
    phase: Phase
    fields: Mapping[str, Any] = {}


class Written(NamedTuple):
    """A file that the job writes below its workspace. at_s: seconds after the submit; None: at a good end."""

    path: str
    text: str
    at_s: float | None = None


class JobScript(NamedTuple):
    """What one job does if nobody stops it.

    log: (seconds after the first start, line), in order. record: the wrapper's exit record at its own end.
    stop_s: how long a stop takes; deaf_stops: how many stops it does not hear.
    """

    moments: tuple[Moment, ...]
    log: tuple[tuple[float, str], ...] = ()
    events: tuple[tuple[float, str, str], ...] = ()
    files: tuple[Written, ...] = ()
    record: int | None = None
    stop_s: float = 2.0
    deaf_stops: int = 0


class SubmitFault(NamedTuple):
    """What goes wrong at one submit call. lost: no answer, the job was created or not; refused; taken: somebody
    else has the name. visible_s: the job shows that much later. takes_s: the call itself takes so long."""

    answer: Literal["given", "lost", "refused", "taken"] = "given"
    created: bool = True
    visible_s: float = 0.0
    takes_s: float = 0.0
    reason: str = ""
    cause: str = ""
    retryable: bool = False


class Away(NamedTuple):
    """The cluster does not answer these calls (all when empty) from `since` until `until`."""

    since: datetime
    until: datetime
    calls: frozenset[str] = frozenset()


class Stale(NamedTuple):
    """Status looks in this window tell what was true `age_s` before (a lagging replica of the cluster)."""

    since: datetime
    until: datetime
    age_s: float


class Call(NamedTuple):
    """One call that was made."""

    op: str
    at: datetime
    name: str = ""


@dataclass
class ScriptedJob:
    """One job on this cluster. spec: None for a job that is none of ours."""

    id: str
    name: str
    script: JobScript
    created_at: datetime
    fingerprint: str = ""
    owner: str = ""
    spec: Spec | None = None
    visible_s: float = 0.0
    stopped_at: datetime | None = None
    stops: int = 0
    deleted: bool = False
    written: set[str] = field(default_factory=set)

    def moment(self, at: datetime) -> Moment:
        """What is true of it at that time."""
        if self.stopped_at is not None and at >= self.stopped_at:
            return Moment((self.stopped_at - self.created_at).total_seconds(), Phase.stopped)
        offset_s = (at - self.created_at).total_seconds()
        index = bisect_right([moment.at_s for moment in self.script.moments], offset_s) - 1
        return self.script.moments[max(index, 0)]

    def is_over(self, at: datetime) -> bool:
        return self.deleted or self.moment(at).phase in OVER

    def is_visible(self, at: datetime) -> bool:
        shown = at >= self.created_at + timedelta(seconds=self.visible_s)
        return shown and not self.deleted and self.moment(at).phase is not Phase.gone

    def began_at(self) -> datetime | None:
        """Its first start, by the script."""
        first = next((m for m in self.script.moments if m.phase is Phase.running), None)
        return None if first is None else self.created_at + timedelta(seconds=first.at_s)

    def own_end(self) -> Moment | None:
        """The end that the script gives it."""
        return next((moment for moment in self.script.moments if moment.phase in ENDED), None)


def write(path: Path, text: str, at: datetime) -> None:
    """A file of a job, last written then."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    os.utime(path, (at.timestamp(), at.timestamp()))


def write_record(job: ScriptedJob, ended_at: datetime, exit_code: int) -> None:
    """The record that the job's wrapper leaves (`agent/clusters/wrapper.sh`)."""
    assert job.spec is not None
    began = job.began_at() or job.created_at
    facts = {
        "started_at": began.isoformat(),
        "pid": 1,
        "host": "scripted",
        "id": job.id,
        "ended_at": ended_at.isoformat(),
        "exit_code": exit_code,
        "signal": exit_code - 128 if exit_code > 128 else None,
    }
    write(run_dir(job.spec.workspace, job.name) / "exit.json", json.dumps(facts), ended_at)
