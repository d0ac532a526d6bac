"""A recorded run: its journal as a file, and its replay through the machine as it is now.

Recording takes a run's journal, counts times from its beginning, renames ids, scrubs credentials and paths, and
leaves of each log look what the verdict used. It is replayed before it is given out; if the reduced log reads
decide otherwise they are kept whole.

Never: a credential, a person's name or a path of the run's own machine in a recorded file.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from pydantic import Field

from agent.redaction import Redactor
from agent.scenarios.units import Rule
from agent.scenarios.world import START
from states.credentials import find_credentials
from states.events import AnyEvent, parse_event
from states.job import Job, snapshot
from states.reading import Frozen
from states.replay import Divergence, advance, origin

NAME = "recorded-run"
FOLDER = "/workspace"
QUOTES_MAX = 4
PEOPLE = frozenset({"owner", "by"})
"""Fields that name a person."""
_PATH = re.compile(r"(?<![\w.:/])/(?:[\w.+@-]+/)+[\w.+@-]*")


class Happened(Frozen):
    """One journalled event: seconds since the beginning, its own fields, the state after it, the asked effects."""

    at: float
    event: str
    to: str
    asks: tuple[str, ...] = ()
    body: dict[str, Any] = {}


class Recorded(Frozen):
    """A recorded run as a file."""

    title: str = Field(min_length=10, max_length=200)
    covers: tuple[Rule, ...] = ()
    run: dict[str, Any]
    recorded: tuple[Happened, ...]


def record(
    job: Job, rows: Sequence[Mapping[str, Any]], effects: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """The file's data for a run. rows: its journal; effects: what was asked for, with `seq` and `kind`.

    Raises ValueError when this version of the machine no longer makes the recorded decisions.
    """
    asked: dict[int, list[str]] = {}
    for effect in effects:
        asked.setdefault(effect["seq"], []).append(effect["kind"])
    data: dict[str, Any] = {}
    for reduce in (True, False):
        data = _data(job, rows, asked, reduce=reduce)
        if replay(Recorded.model_validate(data)) is None:
            return data
    found = replay(Recorded.model_validate(data))
    raise ValueError(f"this run was decided by another version of the machine: {found}")


def replay(story: Recorded) -> Divergence | None:
    """Fold the events through the machine; the first place where it decides otherwise, or None."""
    job = Job.model_validate(story.run)
    for number, happened in enumerate(story.recorded, start=1):
        taken = advance(job, _event(happened, job))
        job = taken.job
        if str(job.state) != happened.to:
            return Divergence(number, happened.event, "state", happened.to, str(job.state))
        asks = tuple(effect.kind for effect in taken.effects)
        if asks != happened.asks:
            return Divergence(number, happened.event, "effects", happened.asks, asks)
    return None


def _event(happened: Happened, job: Job) -> AnyEvent:
    """The event as it happened to the renamed run: its attempts' names follow from its own id and spec."""
    names = {f"{NAME}-a{attempt.number}": attempt.name for attempt in job.attempts}
    at = START + timedelta(seconds=happened.at)
    return parse_event({**_named(happened.body, names), "kind": happened.event, "at": at})


def _named(value: Any, names: Mapping[str, str]) -> Any:
    if isinstance(value, dict):
        return {key: _named(item, names) for key, item in value.items()}
    if isinstance(value, list):
        return [_named(item, names) for item in value]
    return names.get(value, value) if isinstance(value, str) else value


def _data(
    job: Job, rows: Sequence[Mapping[str, Any]], asked: Mapping[int, list[str]], *, reduce: bool
) -> dict[str, Any]:
    scrub = _Scrub(job)
    start = snapshot(origin(job)) | {"created_at": START.isoformat()}
    happened = [
        {
            "at": round((row["at"] - job.created_at).total_seconds(), 3),
            "event": row["kind"],
            "to": row["to"],
            "asks": asked.get(row["seq"], []),
            "body": scrub(_body(row, job, reduce=reduce)),
        }
        for row in rows
    ]
    run = scrub(start)
    title = f"A recorded run that ended {job.state} is decided again as it was."
    return {"title": title, "run": run, "recorded": happened}


def _body(row: Mapping[str, Any], job: Job, *, reduce: bool) -> dict[str, Any]:
    body = {key: value for key, value in row["body"].items() if key not in ("kind", "at", "key", "by")}
    if reduce and row["kind"] == "logs_read":
        body = {**body, "digest": _reduced(body.get("digest", {}))}
    return dict(_moved(body, (START - job.created_at).total_seconds()))


def _reduced(digest: Mapping[str, Any]) -> dict[str, Any]:
    """A look without what no verdict uses: of the excerpt only its last line's number."""
    kept = {key: value for key, value in digest.items() if key not in ("bytes_read",)}
    if excerpt := kept.get("excerpt"):
        kept["excerpt"] = [{"line": excerpt[-1]["line"], "text": ""}]
    return kept


def _moved(value: Any, by_s: float) -> Any:
    """Times inside a body, moved so that the run begins when every scenario begins."""
    if isinstance(value, dict):
        return {key: _moved(item, by_s) for key, item in value.items()}
    if isinstance(value, list):
        return [_moved(item, by_s) for item in value]
    if isinstance(value, str) and re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d", value):
        try:
            return (datetime.fromisoformat(value) + timedelta(seconds=by_s)).isoformat()
        except (ValueError, TypeError):
            return value
    return value


class _Scrub:
    """Renames ids, and takes credentials, people and paths out of nested data."""

    def __init__(self, job: Job) -> None:
        names = {attempt.name: f"{NAME}-a{attempt.number}" for attempt in job.attempts}
        ids = {a.cluster_job_id: f"job-{a.number}" for a in job.attempts if a.cluster_job_id}
        folder = {job.spec.workspace: FOLDER} if job.spec.workspace else {}
        own = {job.id: NAME, job.parent: "parent-run", job.request_id: "request-1"}
        pairs = {**folder, **names, **own}
        self._texts = sorted(((old, new) for old, new in pairs.items() if old), key=lambda p: -len(p[0]))
        self._whole, self._owner = ids, job.owner or None
        self._redactor = Redactor(())

    def __call__(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {self(key): self._field(key, item) for key, item in value.items()}
        if isinstance(value, list):
            return [self(item) for item in value]
        return self._text(value) if isinstance(value, str) else value

    def _field(self, name: str, value: Any) -> Any:
        """A person is told by the field, not by the word alone: one may be called `root`, as a kind of sign is."""
        return "owner" if name in PEOPLE and value == self._owner else self(value)

    def _text(self, text: str) -> str:
        if text in self._whole:
            return self._whole[text]
        for old, new in self._texts:
            text = text.replace(old, new)
        if find_credentials(text):
            text = self._redactor.text(text)
        return _PATH.sub(lambda found: found[0] if found[0].startswith(FOLDER) else "/path", text)
