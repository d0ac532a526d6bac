"""A run's whole history as a file, and back into a database: JSON lines, one row each, with a head and an end.

Ids stay as they are. Every text is redacted once more on the way out, and on the way in (keys may be set
since). A file that was cut, changed or made by hand is noticed: its end counts and digests what stands before
it, and the journal must still fold to the run.

Never: make a run live. One that had not ended is not taken in; what an ended one still asked for is not performed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import Table, insert, select

from agent.database import EFFECTS, EVENTS, JOBS, MESSAGES, Redact
from agent.store import Store
from agent.tables import UtcTime
from states.effects import parse_effect
from states.events import parse_event
from states.job import MACHINE_VERSION, Job, restored
from states.replay import apart, fold, origin
from states.versions import TooNew, lift_event, lift_snapshot

FORMAT = 1
KIND = "watchkeeper-run"
PARTS: Mapping[str, Table] = {"job": JOBS, "event": EVENTS, "effect": EFFECTS, "message": MESSAGES}
"""What a history consists of, in this order."""
OWN_HERE = {
    "event": ("id",),
    "job": ("request_id", "wake_at", "lease_token", "lease_until", "watched", "away"),
}
"""Columns that belong to one database: numbers that it gives, timers, leases, and the request id, which would answer
somebody's next delegation with a run that is only kept."""
LINE_BYTES_MAX = 16 << 20
LINES_MAX = 200_000


class ArchiveError(Exception):
    """The file cannot be taken in; the message says why and what to do."""


def export(store: Store, run: str, redact: Redact, at: datetime) -> Iterator[str]:
    """The lines of a run's history, without their ends. run: full id. Raises Unknown."""
    job = store.load(run)
    plain = list(_rows(store, job.id))
    clean = [{"row": row["row"], **redact({k: v for k, v in row.items() if k != "row"})} for row in plain]
    pairs = [
        (a.get(name), b.get(name)) for a, b in zip(plain, clean, strict=True) for name in ("snapshot", "body")
    ]
    hidden = any(before != after for before, after in pairs)
    head = {"kind": KIND, "format": FORMAT, "machine": MACHINE_VERSION, "run": job.id, "redacted": hidden}
    digest, count = hashlib.sha256(), 0
    for entry in (head | {"exported_at": at.isoformat()}, *clean):
        line = json.dumps(entry, ensure_ascii=False, separators=(",", ":"))
        digest.update(line.encode() + b"\n")
        count += 1
        yield line
    yield json.dumps({"end": count, "sha256": digest.hexdigest()})


def _rows(store: Store, run: str) -> Iterator[dict[str, Any]]:
    orders = {"job": (), "event": ("seq",), "effect": ("seq", "n"), "message": ("at", "id")}
    with store.read() as connection:  # one moment's state
        for part, table in PARTS.items():
            key = table.c.id if part == "job" else table.c.job_id
            query = select(table).where(key == run).order_by(*(table.c[name] for name in orders[part]))
            for row in connection.execute(query).mappings():
                kept = {
                    name: _plain(value) for name, value in row.items() if name not in OWN_HERE.get(part, ())
                }
                yield {"row": part, **kept}


def take_in(store: Store, lines: Iterable[str], redact: Redact, at: datetime) -> Job:
    """Put an exported run into this database, as a finished one that is only kept. Raises ArchiveError."""
    parts = parts_of(lines)
    (row,) = parts["job"]
    try:
        job = _whole(row, parts["event"], foldable=not parts["head"][0].get("redacted"))
        for effect in parts["effect"]:
            parse_effect(effect["body"])
    except TooNew as error:
        raise ArchiveError(str(error)) from None
    except (ValueError, KeyError, TypeError) as error:
        raise ArchiveError(
            f"the file holds what no run holds ({type(error).__name__}); export it again"
        ) from None
    if not job.is_terminal:
        raise ArchiveError(f"{job.id} had not ended when it was exported; export it again after its end")
    row |= {
        "request_id": None,
        "wake_at": None,
        "deadline_at": None,
        "watched": False,
        "away": False,
        "lease_token": "",
    }
    for effect in parts["effect"]:
        if effect.get("done_at") is None:
            effect |= {
                "state": "done",
                "done_at": at.isoformat(),
                "said": "not performed: the run was imported",
            }
    with store.write() as connection:
        if connection.execute(select(JOBS.c.id).where(JOBS.c.id == job.id)).scalar() is not None:
            raise ArchiveError(f"{job.id} is here already; nothing was changed")
        for part, table in PARTS.items():
            rows = [_typed(table, redact(entry), job.id) for entry in parts[part]]
            if rows:
                connection.execute(insert(table), rows)
    return job


def _whole(row: Mapping[str, Any], events: list[dict[str, Any]], *, foldable: bool) -> Job:
    """The run, if its journal says the same. One that was compacted has no bodies to fold; of one in which something
    was redacted the names of attempts, made from the spec, no longer come out the same."""
    job = restored(lift_snapshot(row["snapshot"]), seq=row["seq"], seen_at=_time(row.get("seen_at")))
    if [event["seq"] for event in events] != list(range(1, job.seq + 1)):
        raise ArchiveError(f"the journal of {job.id} has gaps; export it again")
    if foldable and row.get("compacted_at") is None:
        folded = fold(origin(job), (parse_event(lift_event(event["body"])) for event in events))
        if apart(folded, job) is not None:
            raise ArchiveError(
                f"the journal of {job.id} does not lead to what is said of it; export it again"
            )
    return job


def parts_of(lines: Iterable[str]) -> dict[str, list[dict[str, Any]]]:
    """The rows by part, of a file that is whole and of a format that is known. Raises ArchiveError."""
    parts: dict[str, list[dict[str, Any]]] = {part: [] for part in ("head", *PARTS)}
    digest, run = hashlib.sha256(), ""
    for count, line in enumerate(lines):
        if len(line) > LINE_BYTES_MAX or count > LINES_MAX:
            raise ArchiveError("the file is larger than any run; it is none of `wk export`")
        entry = _entry(line)
        if "end" in entry:
            if entry.get("end") != count or entry.get("sha256") != digest.hexdigest() or not run:
                raise ArchiveError("the file was changed after it was exported; export it again")
            if len(parts["job"]) != 1 or parts["job"][0].get("id") != run:
                raise ArchiveError("the file does not hold the run that it names; export it again")
            return parts
        if count == 0:
            run = _head(entry)
            parts["head"].append(entry)
        elif entry.get("row") in PARTS:
            parts[entry.pop("row")].append(entry)
        else:
            raise ArchiveError(
                f"line {count + 1} is of no known kind; upgrade Watchkeeper, or export it again"
            )
        digest.update(line.rstrip("\n").encode() + b"\n")
    raise ArchiveError("the file ends too early: it was cut, or is none of `wk export`")


def _entry(line: str) -> dict[str, Any]:
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        entry = None
    if not isinstance(entry, dict):
        raise ArchiveError("the file holds no JSON lines; it is none of `wk export`")
    return entry


def _head(entry: Mapping[str, Any]) -> str:
    if entry.get("kind") != KIND:
        raise ArchiveError("the file is none of `wk export`")
    if entry.get("format") != FORMAT:
        raise ArchiveError(
            f"the file has the format {entry.get('format')}, this Watchkeeper knows {FORMAT}: upgrade it"
        )
    return str(entry.get("run", ""))


def _typed(table: Table, entry: Mapping[str, Any], run: str) -> dict[str, Any]:
    """A row as the database takes it; columns that are not there (of a later format) are left out."""
    row = {name: value for name, value in entry.items() if name in table.c and name != "row"}
    if table is not JOBS and row.get("job_id") != run:
        raise ArchiveError("the file holds rows of another run; export it again")
    times = [name for name in row if isinstance(table.c[name].type, UtcTime)]
    return {**row, **{name: _time(row[name]) for name in times}}


def _time(value: Any) -> datetime | None:
    return None if value is None else datetime.fromisoformat(value)


def _plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else value
