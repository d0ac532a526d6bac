"""Which row of Slurm's records a job is: squeue for whatever the controller remembers, sacct for the rest.

One `squeue` call answers for any number of jobs, and one `sacct` call for those that it does not list. squeue beats
sacct: a job that the controller has forgotten and accounting still calls running has no known outcome. An id alone
proves nothing, since ids are recycled: the name must agree, and a record older than our own submit is a stranger's.

Never: one call per job; "not there" when only half of the records could be asked.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from agent.clusters.base import Ref, Unclear, Unreachable
from agent.clusters.slurm_array import is_live, one_row_each
from agent.clusters.slurm_commands import (
    AWAY,
    NO_ACCOUNTING,
    NO_SUCH_JOB,
    SILENT,
    Commands,
    Facts,
    said,
)
from agent.clusters.slurm_parse import (
    FIELD,
    Row,
    accounting_columns,
    accounting_rows,
    json_rows,
    latest_stays,
    queue_columns,
    queue_rows,
)
from agent.clusters.slurm_script import SAFE_NAME
from agent.clusters.slurm_states import moment, never_accepted
from agent.clusters.wrapper import run_dir

JSON_SINCE = (23, 2)
"""From this version on `squeue --json` heeds the filters; before, it dumps every job of the site."""
CUT = re.compile(r"\n\[\.\.\. \d+ bytes left out \.\.\.\]\n")
"""The runner's own mark in an output that was too long."""
PAGE = 500
"""Jobs of one call, when the whole list is too long to be read at once."""
OURS = re.compile(r"-a\d+-[0-9a-f]{8}$")
"""How the names of attempts end (states/naming.py)."""
CLOCKS_APART = timedelta(minutes=15)
WINDOW_S = 30 * 86_400
"""How far back accounting is searched for a job whose submit time is not known."""
DELETED = "deleted"
"""File beside the wrapper's record: ids of the jobs that a person deleted (Slurm itself keeps its records)."""


class Found(NamedTuple):
    """A job's row, its live namesakes; why: where a row is missing, what that means. asked: all records answered."""

    row: Row | None
    twins: tuple[Row, ...] = ()
    why: str = ""
    asked: bool = True


class Lookup:
    """Finds rows. Asks what the cluster is like and who we are there once."""

    def __init__(self, commands: Commands) -> None:
        self.commands = commands
        self._facts: Facts | None = None
        self._user = ""
        self._json: bool | None = commands.options.queue_json

    def facts(self) -> Facts:
        if self._facts is None:
            self._facts = self.commands.facts()
        return self._facts

    def user(self) -> str:
        """Our login name on that side."""
        if not self._user:
            self._user = self.commands.ask("id", "-un").strip()
        return self._user

    # --- squeue --------------------------------------------------------------------------------------------

    def queue(self, *filters: str, everyone: bool = False) -> list[Row]:
        """What the controller remembers, ended jobs included; records of refused submits left out.

        Raises Unreachable; Unclear when the list is too long to be read.
        """
        words = ["-a", "-t", "all", *([] if everyone else ["--me"]), *filters]
        rows = self._json_queue(words) if self._reads_json() else None
        if rows is None:
            rows = self._text_queue(words)
        elif not everyone:
            rows = [row for row in rows if row["UserId"] == self.user()]
        return [row for row in rows if not never_accepted(row)]

    def _reads_json(self) -> bool:
        if self._json is None:
            self._json = self.facts().version >= JSON_SINCE
        return self._json

    def _json_queue(self, words: Sequence[str]) -> list[Row] | None:
        """None when it cannot be read (too long, no plugin for it): from then on text is asked for."""
        ran = self.commands.run("squeue", "--json", *words)
        if ran.rc != 0 and (AWAY.search(ran.stderr) or SILENT.search(ran.stderr)):
            raise self.commands.failure("squeue", ran)
        try:
            return json_rows(ran.stdout)
        except ValueError:
            self._json = False
            return None

    def _text_queue(self, words: Sequence[str]) -> list[Row]:
        ran = self.commands.run("squeue", "-h", *words, "-O", queue_columns())
        if ran.rc != 0 and NO_SUCH_JOB.search(ran.stderr):
            return []
        if ran.rc != 0:
            raise self.commands.failure("squeue", ran)
        if CUT.search(ran.stdout):
            raise Unclear("squeue lists more jobs than can be read at once")
        return queue_rows(ran.stdout)

    def _queue_of(self, refs: Sequence[Ref]) -> list[Row]:
        """One call; in pages of PAGE jobs only where this person has thousands of them. For a single job the
        controller is spared the rest: its name is asked for."""
        if len(refs) == 1 and SAFE_NAME.fullmatch(refs[0].name) and OURS.search(refs[0].name):
            return self.queue(f"--name={refs[0].name}")
        try:
            return self.queue()
        except Unclear:
            pages = [self.queue(words) for words in _by_id_or_name(refs)]
            return list({row["JobId"]: row for page in pages for row in page}.values())

    # --- sacct ---------------------------------------------------------------------------------------------

    def stays(self, filters: str, since: datetime | None, now: datetime, *, mine: bool = True) -> list[Row]:
        """Every stay in the queue of the jobs asked for, from accounting; [] where there is none. Raises Unreachable.

        The window is told relative to the cluster's own now: no zone and no clock can shift it.
        """
        if not self.facts().accounting:
            return []
        back_s = WINDOW_S if since is None else max(0, int((now - since + CLOCKS_APART).total_seconds()))
        words = ["-X", "-P", "-n", "-D", f"--delimiter={FIELD}", "-o", accounting_columns(), filters]
        whose = [f"--user={self.user()}"] if mine else []
        ran = self.commands.run("sacct", *words, *whose, "-S", f"now-{back_s}seconds")
        if ran.rc != 0 and NO_ACCOUNTING.search(ran.stderr):
            return []
        if ran.rc != 0:
            raise Unreachable(f"sacct: {said(ran)}")
        if CUT.search(ran.stdout):
            raise Unreachable("sacct tells more than can be read at once")
        return [row for row in accounting_rows(ran.stdout) if not never_accepted(row)]

    def _accounted(self, refs: Sequence[Ref], now: datetime) -> list[Row]:
        began = [ref.submitted_at for ref in refs]
        since = min((at for at in began if at), default=None) if all(began) else None
        return [
            row
            for words in _by_id_or_name(refs)
            for row in latest_stays(self.stays(words, since, now, mine=words.startswith("--name")))
        ]

    # --- both ----------------------------------------------------------------------------------------------

    def find(self, refs: Sequence[Ref], now: datetime) -> tuple[dict[Ref, Found], int]:
        """{ref: what was found}, and how many jobs of this person run. Raises Unreachable without squeue."""
        listed = self._queue_of(refs)
        jobs = Jobs(listed)
        found = {ref: jobs.of(ref) for ref in refs}
        missing = [ref for ref in refs if found[ref].row is None or self._is_half_forgotten(found[ref].row)]
        if missing:
            found |= self._from_accounting(missing, found, now)
        return found, sum(row["JobState"].startswith("RUNNING") for row in listed)

    def _is_half_forgotten(self, row: Row | None) -> bool:
        """An ended array: the controller forgets its tasks one by one, accounting still has them all."""
        return row is not None and "Tasks" in row and not is_live(row) and self.facts().accounting

    def _from_accounting(
        self, missing: Sequence[Ref], listed: dict[Ref, Found], now: datetime
    ) -> dict[Ref, Found]:
        if not self.facts().accounting:
            return {
                ref: Found(None, why="the controller has no record, and accounting is off") for ref in missing
            }
        try:
            jobs = Jobs(self._accounted(missing, now))
        except Unreachable as error:
            words = f"the controller does not list it any more, and accounting did not answer: {error}"
            return {
                ref: listed[ref]._replace(why=words, asked=listed[ref].row is not None) for ref in missing
            }
        found = {}
        for ref in missing:
            row = jobs.of(ref).row
            if row is not None and is_live(row):
                said_ = f"the controller has forgotten it, while accounting still says {row['JobState']}"
                row, why = listed[ref].row, said_
            else:
                why = "" if row is not None else "neither the controller nor accounting has a record"
            found[ref] = Found(row, listed[ref].twins, why)
        return found


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
    """Whether a row can be that job: its name agrees, and an attempt of ours is no older than its submit.

    A job that was taken over by its id alone has no name of ours, and began before it was handed over.
    """
    if ref.name not in (row["JobName"], ref.cluster_job_id) and not (_is_nameless(row) and ref.submitted_at):
        return False
    at = moment(row["SubmitTime"])
    if ref.submitted_at is None or at is None or not OURS.search(ref.name):
        return True
    return at >= ref.submitted_at - CLOCKS_APART


def _is_nameless(row: Row) -> bool:
    """Accounting's record of a job whose end arrived before its start did: neither name nor partition is in it,
    and the id with the time of the submit are all there is to know it by."""
    return row["JobName"] == "allocation" and not row["Partition"]


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


def _by_id_or_name(refs: Iterable[Ref]) -> Iterator[str]:
    """Filters for squeue and sacct: by id where there is one, by name for the rest, in pages."""
    ids = sorted({ref.cluster_job_id for ref in refs if re.fullmatch(r"\d+(_\d+)?", ref.cluster_job_id)})
    names = sorted({ref.name for ref in refs if not ref.cluster_job_id and SAFE_NAME.fullmatch(ref.name)})
    for switch, words in (("--jobs", ids), ("--name", names)):
        for start in range(0, len(words), PAGE):
            yield f"{switch}={','.join(words[start : start + PAGE])}"
