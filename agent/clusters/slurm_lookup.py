"""Which row of Slurm's records a job is: squeue for whatever the controller remembers, sacct for the rest.

One `squeue` call answers for any number of this person's jobs; those that it does not list are looked for among
everyone's by one more, since a job of somebody else may be watched too (A10), and by one of `sacct`. squeue beats
sacct: a job that the controller has forgotten and accounting still calls running has no known outcome. What a person
calls a job may be its name or its id.

Never: one call per job; "not there" when only half of the records could be asked.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from agent.clusters.base import Ref, Refused, Unclear, Unreachable
from agent.clusters.slurm_array import is_live
from agent.clusters.slurm_commands import (
    AWAY,
    NO_ACCOUNTING,
    NO_SUCH_JOB,
    SILENT,
    Commands,
    Facts,
    said,
)
from agent.clusters.slurm_match import CLOCKS_APART, OURS, Found, Jobs, by_id, running_of, task_of
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
from agent.clusters.slurm_states import never_accepted

JSON_SINCE = (23, 2)
"""From this version on `squeue --json` heeds the filters; before, it dumps every job of the site."""
CUT = re.compile(r"\n\[\.\.\. \d+ bytes left out \.\.\.\]\n")
"""The runner's own mark in an output that was too long."""
PAGE = 500
"""Jobs of one call, when the whole list is too long to be read at once."""
JOB_ID = re.compile(r"\d+(_\d+)?")
"""A job, or a task of an array."""
IDS_MAX = 10
"""Ids that are told of jobs of one name, the newest."""
WINDOW_S = 30 * 86_400
"""How far back accounting is searched at least: a job that is handed over to be watched may have ended before."""

HIDDEN = "this site shows nobody the jobs of others (PrivateData), so only their owner can watch them"


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
        if ran.rc != 0 and NO_SUCH_JOB.search(ran.stderr):
            return []
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
        age_s = 0 if since is None else int((now - since + CLOCKS_APART).total_seconds())
        words = ["-X", "-P", "-n", "-D", f"--delimiter={FIELD}", "-o", accounting_columns(), filters]
        whose = f"--user={self.user()}" if mine else "--allusers"
        ran = self.commands.run("sacct", *words, whose, "-S", f"now-{max(WINDOW_S, age_s)}seconds")
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

    def find(self, refs: Sequence[Ref], now: datetime) -> dict[Ref, Found]:
        """{ref: what was found}. Raises Unreachable without squeue, Refused for a name that is not one job's."""
        names = (ref for ref in refs if ref.name and ref.name == ref.cluster_job_id)
        told = {ref: self._called(ref.name, now) for ref in names if not JOB_ID.fullmatch(ref.name)}
        refs = [ref for ref in refs if ref not in told]
        return told | self._known(refs, now) if refs else told

    def _known(self, refs: Sequence[Ref], now: datetime) -> dict[Ref, Found]:
        """Of jobs whose names and ids were told by answers: among ours, then everyone's, then in accounting."""
        listed = self._queue_of(refs)
        jobs, running = Jobs(listed), running_of(listed)
        found = {ref: jobs.of(ref)._replace(running=running) for ref in refs}
        if others := [ref for ref in refs if found[ref].row is None and ref.cluster_job_id]:
            pages = [self.queue(words, everyone=True) for words in _by_id_or_name(others)]
            theirs = Jobs([row for page in pages for row in page])
            found |= {ref: theirs.of(ref) for ref in others}
        missing = [ref for ref in refs if found[ref].row is None or self._is_half_forgotten(found[ref].row)]
        if missing:
            found |= self._from_accounting(missing, found, listed, now)
        return found

    def named(self, name: str, now: datetime, *, mine: bool) -> list[Row]:
        """Every job of that name, one row each, by id. mine: this person's own alone, those in accounting included;
        else everyone's, and accounting is asked only where the controller lists none.

        Raises Unreachable when nothing was found and half of the records could not be asked.
        """
        listed = Jobs(self.queue(f"--name={name}", everyone=not mine)).named(name)
        rows = {row["JobId"]: row for row in listed}
        try:
            past = self.stays(f"--name={name}", None, now, mine=mine) if mine or not rows else []
        except Unreachable:
            if not rows:
                raise
            past = []
        for row in Jobs(latest_stays(past)).named(name):
            if not is_live(row):
                rows.setdefault(row["JobId"], row)
        return sorted(rows.values(), key=by_id)

    def _called(self, name: str, now: datetime) -> Found:
        """The one job that a person calls so: the one that lives, else the one that ended. Raises Refused, with the
        ids, where there are several."""
        rows = self.named(name, now, mine=False)
        rows = list(filter(is_live, rows)) or rows
        if len(rows) > 1:
            ids = ", ".join(f"{row['JobId']} ({row['UserId']})" for row in rows[-IDS_MAX:])
            raise Refused(f"{len(rows)} jobs are named {name!r}: give one of the ids {ids}")
        return Found(rows[0]) if rows else Found(None, why=self._nowhere(name))

    def _nowhere(self, name: str) -> str:
        """What it means that no record was found."""
        if not self.facts().accounting:
            return self._or_hidden("the controller has no record, and accounting is off", name)
        return self._or_hidden("neither the controller nor accounting has a record", name)

    def _or_hidden(self, why: str, name: str) -> str:
        """Where the site hides jobs, one that is no attempt of ours may be there all the same."""
        return f"{why}; {HIDDEN}" if self.facts().hides_jobs and not OURS.search(name) else why

    def _is_half_forgotten(self, row: Row | None) -> bool:
        """An ended array: the controller forgets its tasks one by one, accounting still has them all."""
        return row is not None and "Tasks" in row and not is_live(row) and self.facts().accounting

    def _from_accounting(
        self, missing: Sequence[Ref], before: dict[Ref, Found], listed: Sequence[Row], now: datetime
    ) -> dict[Ref, Found]:
        if not self.facts().accounting:
            return {ref: Found(None, why=self._nowhere(ref.name)) for ref in missing}
        try:
            past = self._accounted(missing, now)
        except Unreachable as error:
            why = f"the controller does not list all of it any more, and accounting did not answer: {error}"
            return {ref: before[ref]._replace(why=why, asked=False) for ref in missing}
        # Accounting may be behind: of a task that the controller still lists, the controller's word counts.
        tasks = {task_of(row) for row in listed if row.get("ArrayTaskId")}
        jobs = Jobs([*(row for row in past if task_of(row) not in tasks), *listed])
        found = {}
        for ref in missing:
            row, why = jobs.of(ref).row, ""
            if row is None:
                why = self._nowhere(ref.name)
            elif is_live(row):
                why = f"the controller does not list it, while accounting still says {row['JobState']}"
                row, why = before[ref].row, self._or_hidden(why, ref.name)
            found[ref] = before[ref]._replace(row=row, why=why)
        return found


def _by_id_or_name(refs: Iterable[Ref]) -> Iterator[str]:
    """Filters for squeue and sacct: by id where there is one, by name for the rest, in pages."""
    ids = sorted({ref.cluster_job_id for ref in refs if JOB_ID.fullmatch(ref.cluster_job_id)})
    names = sorted({ref.name for ref in refs if not ref.cluster_job_id and SAFE_NAME.fullmatch(ref.name)})
    for switch, words in (("--jobs", ids), ("--name", names)):
        for start in range(0, len(words), PAGE):
            yield f"{switch}={','.join(words[start : start + PAGE])}"
