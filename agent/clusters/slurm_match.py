"""Which of Slurm's rows is which job: by id and name, arrays summed up, deleted ones left out.

An id alone proves nothing, since ids are recycled: the name must agree, and where the id is not known yet a record
older than our own submit is a stranger's (WISHES 5).

Never: match a job of another name; ask Slurm anything.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

from agent.clusters.base import Ref
from agent.clusters.slurm_array import is_live, one_row_each
from agent.clusters.slurm_parse import Row
from agent.clusters.slurm_script import SAFE_NAME
from agent.clusters.slurm_states import moment
from agent.clusters.wrapper import run_dir

OURS = re.compile(r"-a\d+-[0-9a-f]{8}$")
"""How the names of attempts end (states/naming.py)."""
CLOCKS_APART = timedelta(minutes=15)
"""How far the controller's clock and ours may differ."""
DELETED = "deleted"
"""File beside the wrapper's record: ids of the jobs that a person deleted (Slurm itself keeps its records)."""


class Found(NamedTuple):
    """A job's row, its live namesakes; why: where a row is missing, what that means. asked: all records answered;
    where not, an array may have had more tasks than its row tells.

    running: how many jobs its owner runs, where that is known: what a limit of each person's is used up by.
    """

    row: Row | None
    twins: tuple[Row, ...] = ()
    why: str = ""
    asked: bool = True
    running: int | None = None


class Jobs:
    """Rows by id and by name, arrays summed up; single tasks of an array by their own ids too."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self.rows = [row for row in one_row_each(rows) if not is_deleted(row)]
        self._by_id: dict[str, list[Row]] = {}
        for row in self.rows:
            self._by_id.setdefault(row["JobId"], []).append(row)
        for row in rows:
            if row.get("ArrayTaskId"):
                for job_id in (row["JobId"], f"{row['ArrayJobId']}_{row['ArrayTaskId']}"):
                    self._by_id.setdefault(job_id, []).append(row)
        self._by_name: dict[str, list[Row]] = {}
        for row in self.rows:
            self._by_name.setdefault(row["JobName"], []).append(row)

    def named(self, name: str) -> list[Row]:
        return self._by_name.get(name, [])

    def of(self, ref: Ref) -> Found:
        """By id where there is one; else the oldest live job of that name, else the newest ended one."""
        namesakes = [row for row in self.named(ref.name) if belongs(row, ref)]
        if ref.cluster_job_id:
            rows = (row for row in self._by_id.get(ref.cluster_job_id, ()) if belongs(row, ref))
            row = max(rows, key=lambda row: row["SubmitTime"], default=None)
        else:
            row = next(filter(is_live, namesakes), namesakes[-1] if namesakes else None)
        twins = tuple(other for other in namesakes if row and other is not row and is_live(other))
        return Found(row, twins)


def belongs(row: Row, ref: Ref) -> bool:
    """Whether a row can be that job.

    The name of an attempt is its own for ever: with the id it proves it, alone it must be no older than the submit.
    A job that was taken over, by its id or under any other name, was there when it was handed over: one that came
    later under a recycled id is a stranger's, unless a requeue began its time anew.
    """
    at, since = moment(row["SubmitTime"]), ref.submitted_at
    if ref.name == ref.cluster_job_id or (row["JobName"] == ref.name and not OURS.search(ref.name)):
        requeued = row.get("Restarts", "0") not in ("", "0")
        return requeued or since is None or at is None or at <= since + CLOCKS_APART
    if row["JobName"] == ref.name and row["JobId"] == ref.cluster_job_id:
        return True
    if row["JobName"] != ref.name and not (_is_nameless(row) and since):
        return False
    return since is None or at is None or at >= since - CLOCKS_APART


def _is_nameless(row: Row) -> bool:
    """Accounting's record of a job whose end arrived before its start did: neither name nor partition is in it,
    and the id with the time of the submit are all there is to know it by."""
    return row["JobName"] == "allocation" and not row["Partition"]


def task_of(row: Row) -> tuple[str, str, str]:
    """What a task of an array is known by: the array, its own number, the name."""
    return row["ArrayJobId"], row.get("ArrayTaskId", ""), row["JobName"]


def running_of(rows: Iterable[Row]) -> int:
    """How many of these jobs run."""
    return sum(row["JobState"].startswith("RUNNING") for row in rows)


def by_id(row: Row) -> int:
    return int(row["JobId"]) if row["JobId"].isdecimal() else 0


def folder_of(row: Row) -> Path | None:
    """The run's folder below the job's own working folder, for a name that can be one."""
    if not row["WorkDir"] or not SAFE_NAME.fullmatch(row["JobName"]):
        return None
    return run_dir(row["WorkDir"], row["JobName"])


def is_deleted(row: Row) -> bool:
    folder = folder_of(row)
    if folder is None or is_live(row):
        return False
    try:
        return row["JobId"] in (folder / DELETED).read_text(encoding="ascii").split()
    except (OSError, ValueError):
        return False
