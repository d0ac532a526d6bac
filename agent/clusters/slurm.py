"""The Slurm cluster: sbatch, squeue, sacct, scontrol, scancel and sinfo, here or on a login node.

Everything true about a job is Slurm's, or lies in the job's workspace; options are in `slurm_options`, the words'
meaning in `slurm_states`. docs/clusters/slurm.md says what was seen on a real Slurm.

Never: take a missing record for an outcome; match a job by its id alone.
"""

from __future__ import annotations

import os
import re
import zlib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar

from agent.clock import SystemClock
from agent.clusters import logfile, wrapper
from agent.clusters.base import (
    JobLine,
    LogPiece,
    NotThere,
    Ref,
    Refused,
    Submission,
    Submitted,
    Unclear,
    Unreachable,
)
from agent.clusters.slurm_answers import events, match, observation, with_times
from agent.clusters.slurm_array import is_live, one_row_each
from agent.clusters.slurm_commands import AWAY, NO_SUCH_JOB, SILENT, Commands, Facts, Silent, refused, said
from agent.clusters.slurm_directives import script_of
from agent.clusters.slurm_doctor import Finding, examine
from agent.clusters.slurm_lookup import Lookup
from agent.clusters.slurm_match import DELETED, Found, folder_of, is_deleted, running_of
from agent.clusters.slurm_options import Options
from agent.clusters.slurm_parse import Row, fields, node_columns, nodes, tasks
from agent.clusters.slurm_script import Native, check, native, rendered
from agent.clusters.slurm_states import normalise
from states.observation import Capabilities, Capacity, Match, NativeEvent, Observation
from states.spec import Spec

__all__ = ["SlurmCluster", "normalise"]

SUBMITTED = re.compile(r"^(\d+)(?:;\S+)?$", re.M)
"""What `sbatch --parsable` prints: the id, and the cluster's name in a federation."""


class SlurmCluster:
    """The `Cluster` protocol on Slurm. Raises Unreachable where the controller does not answer."""

    kind: ClassVar[str] = "slurm"

    def __init__(self, name: str = "slurm", options: Mapping[str, Any] | None = None) -> None:
        self.name = name
        self.options = Options.model_validate(options or {})
        self.commands = Commands(self.options)
        self.lookup = Lookup(self.commands)
        self.capabilities = Capabilities(
            name_is_unique=False,
            visible_within_s=5.0,
            submit_timeout_s=self.options.submit_timeout_s + 5.0,
            wrapper=True,
            lanes=("normal", "idle") if self.options.idle is not None else ("normal",),
            keeps_ended_s=300.0,
            own_defaults=True,
            tells_log_time=True,
        )

    # --- asking about jobs ---------------------------------------------------------------------------------

    def find(self, name: str, *, fingerprint: str = "", owner: str = "") -> Sequence[Match]:
        """Every job of that name, by squeue and accounting: this person's own where the owner is told, as of each
        attempt of ours; else everyone's, since a person asks for it (A10).

        Raises Unreachable when no match was found and half of the records could not be asked."""
        rows = self.lookup.named(name, SystemClock().now(), mine=bool(owner))
        return tuple(match(row, fingerprint, owner) for row in rows)

    def observe(self, refs: Sequence[Ref]) -> Mapping[str, Observation]:
        """One squeue call for all of this person's jobs; for those that it does not list one more, over everyone's,
        and one of sacct. Raises Refused for a name that several jobs answer to, with their ids."""
        at = SystemClock().now()
        found = self.lookup.find(refs, at)
        return {ref.name: observation(found[ref], at) for ref in refs}

    def list(self, *, everyone: bool = False) -> Sequence[JobLine]:
        """What the controller remembers, newest last."""
        at = SystemClock().now()
        rows = self.lookup.queue(everyone=everyone)
        me = self.lookup.user()
        running = running_of(row for row in rows if row["UserId"] == me)
        return tuple(
            JobLine(
                cluster_job_id=row["JobId"],
                name=row["JobName"],
                observation=observation(Found(row, running=running if row["UserId"] == me else None), at),
                ours=row["UserId"] == me,
            )
            for row in one_row_each(rows)
            if not is_deleted(row)
        )

    def logs(self, ref: Ref, *, lines: int = 200, cursor: str = "", head: bool = False) -> LogPiece:
        """From the run's folder; of a job that was not started by us, from the file that scontrol names. The
        cursor is a file's name and a byte offset in it. Of an array: the log that was written last."""
        row = self._row(ref)
        path = self._log_path(row)
        if path is None:
            return LogPiece(text="", cursor=cursor, ready=False)
        name, _, offset = cursor.rpartition(":")
        try:
            piece = logfile.read(
                path,
                lines=lines,
                cursor=offset if name == path.name else "",
                head=head,
                ended=not is_live(row),
                now=SystemClock().now(),
            )
        except OSError as error:
            raise Unreachable(f"the log {path} cannot be read here: {error.strerror}") from None
        return piece.model_copy(update={"cursor": f"{path.name}:{piece.cursor}" if piece.cursor else ""})

    def events(self, ref: Ref) -> Sequence[NativeEvent]:
        """Queued, started and left the queue, once for each stay (accounting keeps those before a requeue)."""
        row = self._row(ref)
        try:
            past = self.lookup.stays(
                f"--jobs={row['JobId']}", ref.submitted_at, SystemClock().now(), mine=False
            )
        except Unreachable:
            past = []
        earlier = [
            stay
            for stay in past
            if stay["JobName"] == row["JobName"]
            and stay["SubmitTime"] < row["SubmitTime"]
            and "Tasks" not in row
        ]
        told = [event for stay in (*earlier, row) for event in events(stay)]
        return tuple(sorted(told, key=lambda event: event.at or datetime.max.replace(tzinfo=UTC)))

    def capacity(self, group: str | None = None) -> Capacity:
        """Of the group's partition (`account/partition`), else the configured one, else the site's default. What
        an account or QOS may use of it shows in the reason of a job that waits for it."""
        _, _, named = (group or "").partition("/")
        wanted = named or self.options.partition
        where = [f"--partition={wanted}"] if wanted else ["-a"]  # sinfo takes one of them
        partition, all_ = nodes(self.commands.ask("sinfo", "-h", "-N", *where, "-O", node_columns()), wanted)
        if wanted and not all_:
            raise Refused(
                f"there is no partition {wanted!r} on {self.name}", cause="scheduling.unsatisfiable"
            )
        there = [f"--partition={partition}"] if partition else []
        waiting = self.commands.ask("squeue", "-h", "-a", "-t", "PENDING", *there, "-o", "%K")
        usable = [node for node in all_ if node.usable]
        return Capacity(
            group=group or "",
            free_gpu=sum(node.free_gpu for node in usable),
            free_cpu=sum(node.free_cpu for node in usable),
            free_memory_mib=sum(node.free_mib for node in usable),
            total_gpu=sum(node.total_gpu for node in all_),
            total_cpu=sum(node.total_cpu for node in all_),
            total_memory_mib=sum(node.total_mib for node in all_),
            block_gpu=max((node.free_gpu for node in usable), default=0),
            queued=sum(tasks(word) for word in waiting.splitlines()),
        )

    # --- acting on jobs ------------------------------------------------------------------------------------

    def submit(self, submission: Submission) -> Submitted:
        """One sbatch call. The run's folder is made first: Slurm opens the log in it."""
        sent, folder = self._native(submission)
        workspace = _at(submission.spec).workspace
        try:
            wrapper.stage(workspace)
            folder.mkdir(exist_ok=True)
        except OSError as error:
            reason = f"the workspace {workspace} cannot be written: {error.strerror}"
            raise Refused(f"{reason}; make it, or give another one", cause="mount.permission") from None
        try:
            ran = self.commands.run(
                "sbatch", *sent.words, stdin=sent.script, timeout_s=self.options.submit_timeout_s
            )
        except Silent as error:
            raise Unclear(f"{error}; the job may exist") from None
        if ran.rc != 0:
            raise self.commands.submit_failure(ran)
        accepted = SUBMITTED.search(ran.stdout)
        if accepted is None:
            raise Unclear(f"sbatch named no job, which may exist all the same: {said(ran)}")
        return Submitted(accepted[1], "; ".join([*sent.notes, *ran.stderr.split("\n")]).strip("; ")[:400])

    def stop(self, ref: Ref) -> None:
        """scancel by id, once the id is known to be this job's: TERM, and KILL after the site's KillWait."""
        row = self._row(ref)
        if not is_live(row):
            return
        ran = self.commands.run("scancel", row["JobId"])
        if ran.rc == 0 or NO_SUCH_JOB.search(ran.stderr):
            return
        if AWAY.search(ran.stderr) or SILENT.search(ran.stderr):
            raise self.commands.failure("scancel", ran)
        raise refused(f"scancel: {said(ran)}")

    def delete(self, ref: Ref) -> None:
        """Forget an ended job here: a note beside its record says so, and it is gone for every client that sees the
        workspace. Slurm keeps its own accounting, and nobody but its administrators can remove that."""
        row = self._row(ref)
        if is_live(row):
            raise Refused(
                f"job {row['JobId']} ({row['JobName']}) has not ended; stop it first", retryable=True
            )
        folder = folder_of(row)
        if folder is None or not os.path.isdir(folder):
            raise Refused(
                f"job {row['JobId']} was not started from here: Slurm keeps its records, and there is no other"
            )
        try:
            with (folder / DELETED).open("a", encoding="ascii") as file:
                file.write(f"{row['JobId']}\n")
        except OSError as error:
            raise Unreachable(f"the folder {folder} cannot be written: {error.strerror}") from None

    # --- before a job --------------------------------------------------------------------------------------

    def predict(self, submission: Submission) -> str:
        """`sbatch --test-only`: when and where it would start. Raises Refused with why it never would."""
        sent, _ = self._native(submission)
        ran = self.commands.run("sbatch", "--test-only", *sent.words, stdin=sent.script)
        if ran.rc != 0:
            away = AWAY.search(ran.stderr) or SILENT.search(ran.stderr)
            raise self.commands.failure("sbatch", ran) if away else self.commands.submit_failure(ran)
        return with_times(said(ran), SystemClock().now())

    def render(self, submission: Submission) -> str:
        """The sbatch call and its script, without the values of variables."""
        sent, _ = self._native(submission)
        return rendered(sent, submission.spec)

    def facts(self) -> Facts:
        """What the cluster says of itself; asked once. Raises Unreachable."""
        return self.lookup.facts()

    def doctor(self) -> Sequence[Finding]:
        """Programs, version, controller, clock, accounting, partition: what is fine, and how to mend the rest."""
        return examine(self.commands, self.options)

    # --- parts ---------------------------------------------------------------------------------------------

    def _native(self, submission: Submission) -> tuple[Native, Path]:
        check(submission, self.options)
        spec = _at(submission.spec)
        if not Path(spec.workspace).is_dir():
            raise Refused(
                f"the workspace {spec.workspace} is not a folder; make it, or give another one",
                cause="mount.missing",
            )
        folder = wrapper.run_dir(spec.workspace, submission.name)
        sent = native(
            submission.model_copy(update={"spec": spec}),
            self.options,
            wrapper=str(_wrapper_at(spec.workspace)),
            folder=str(folder),
            user_script=script_of(spec.command, spec.workspace),
        )
        return sent, folder

    def _row(self, ref: Ref) -> Row:
        found = self.lookup.find([ref], SystemClock().now())[ref]
        if found.row is not None:
            return found.row
        called = f"{ref.cluster_job_id} ({ref.name})" if ref.cluster_job_id else ref.name
        if not found.asked:
            raise Unreachable(f"job {called}: {found.why}")
        raise NotThere(f"no job {called} on {self.name}: {found.why}")

    def _log_path(self, row: Row) -> Path | None:
        folder = folder_of(row)
        if folder is not None and os.path.isdir(folder):  # Path.is_dir raises for a stranger's closed folder
            own = sorted(folder.glob("log.*"), key=lambda path: path.stat().st_mtime)
            return own[-1] if own else folder / "log"
        if row.get("StdOut"):
            return Path(row["StdOut"])
        ran = self.commands.run("scontrol", "-o", "show", "job", row["JobId"])
        if ran.rc != 0 and not NO_SUCH_JOB.search(ran.stderr):
            raise self.commands.failure("scontrol", ran)
        named = fields(ran.stdout).get("StdOut", "")
        return Path(named) if named else None


# --- what goes in ------------------------------------------------------------------------------------------


def _at(spec: Spec) -> Spec:
    """The spec with its workspace as a whole path."""
    workspace = os.path.abspath(os.path.expanduser(spec.workspace or "."))
    return spec.model_copy(update={"workspace": workspace})


def _wrapper_at(workspace: str) -> Path:
    """Where `wrapper.stage` puts the script, without putting it there."""
    return wrapper.run_dir(workspace, f"wrapper-{zlib.crc32(wrapper.SCRIPT.read_bytes()):08x}.sh")
