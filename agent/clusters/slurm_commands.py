"""Slurm's commands as processes, here or behind a prefix (`ssh HOST`), and what their failures mean.

`ssh` joins its words with blanks and hands them to a shell on the other side: there the whole command is ONE word,
quoted by `shlex.join`. Clocks and zones: SLURM_TIME_FORMAT=%s makes every time seconds since 1970.

Never: take a call that gave no answer for an answer; say of a submit that it did not land when it may have.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from typing import NamedTuple

from agent.clusters.base import ClusterError, Refused, Unclear, Unreachable
from agent.clusters.run import NotInstalled, NotStarted, Ran, TimedOut, run
from agent.clusters.slurm_options import Options
from agent.clusters.slurm_parse import fields, version

PROGRAMS = frozenset({"sbatch", "squeue", "sacct", "scontrol", "scancel", "sinfo"})

SSH_FAILED = 255
"""ssh's own exit status when it could not connect or lost the connection."""
WORDS_MAX = 400

AWAY = re.compile(r"Unable to contact slurm controller|Connection refused|Problem talking to the database"
                  r"|Unable to establish controller|Could not establish a configuration source|Unable to connect to|"
                  r"failed to (?:open persistent connection|fetch config)", re.I)  # fmt: skip
"""Nobody was there to take the words."""

SILENT = re.compile(r"Socket timed out|Zero Bytes were transmitted|Connection (?:timed out|reset)|Transport endpoint"
                    r"|Unexpected message|Communication connection failure|Message (?:send|receive) failure"
                    r"|Incomplete|Broken pipe", re.I)  # fmt: skip
"""The words may have arrived; the answer did not."""

NO_ACCOUNTING = re.compile(r"accounting storage is disabled", re.I)
NO_SUCH_JOB = re.compile(r"Invalid job id specified", re.I)

REFUSALS: Sequence[tuple[re.Pattern[str], str, bool]] = tuple(
    (re.compile(pattern, re.I), cause, retryable)
    for pattern, cause, retryable in (
        (
            r"MaxSubmitJob|submit job limit|Resource temporarily unavailable|temporarily unable to accept",
            "scheduling.quota",
            True,
        ),
        (r"MaxWall|time limit is invalid|Requested time limit", "scheduling.time_limit", False),
        (
            r"node configuration is not available|Memory specification can ?not|More (?:processors|nodes) requested"
            r"|Node count specification invalid|(?:QOS|Assoc)Max\w+Per(?:Job|Node)|QOSMin\w+"
            r"|Invalid (?:partition|qos|feature|generic resource|node name|license|reservation)",
            "scheduling.unsatisfiable",
            False,
        ),
        (r"Invalid account|not permitted to use|Access/permission denied|Invalid user", "auth.denied", False),
        (r"violates accounting/QOS policy|(?:QOS|Assoc)Grp", "scheduling.quota", False),
        (
            r"Invalid --|unrecognized option|invalid option|does not look like a batch script|DOS line breaks",
            "command.bad_argument",
            False,
        ),
    )
)
"""Words of a refusal, its cause, and whether the same words may be accepted later. The first that fits."""


class Facts(NamedTuple):
    """What a cluster says of itself, asked once. as_of_s: its clock, seconds since 1970. hides_jobs: it shows nobody
    the jobs of others (PrivateData)."""

    version: tuple[int, int]
    accounting: bool
    min_job_age_s: int
    as_of_s: int
    cluster: str
    hides_jobs: bool = False


class Commands:
    """Runs Slurm's programs for one configured cluster."""

    def __init__(self, options: Options) -> None:
        self.options = options

    def run(self, program: str, *words: str, stdin: str | None = None, timeout_s: float | None = None) -> Ran:
        """One program to its end. Raises Unreachable when it could not be started or did not answer in time."""
        variables = {"SLURM_TIME_FORMAT": "%s"}
        if self.options.conf:
            variables["SLURM_CONF"] = self.options.conf
        folder = self.options.programs.rstrip("/")
        argv = [f"{folder}/{program}" if folder and program in PROGRAMS else program, *words]
        if self.options.prefix:
            told = ["env", *(f"{name}={value}" for name, value in variables.items()), *argv]
            argv = [*self.options.prefix, shlex.join(told)]
        try:
            return run(
                argv,
                timeout_s=self.options.timeout_s if timeout_s is None else timeout_s,
                env=variables,
                stdin=stdin,
                install="the Slurm client commands (on Debian: slurm-client)",
            )
        except TimedOut as error:
            raise Silent(f"{program}: {error}") from None
        except NotInstalled as error:
            raise Unreachable(f"{error}; or set `programs:` or `prefix:` for this cluster") from None
        except NotStarted as error:
            raise Unreachable(str(error)) from None

    def ask(self, program: str, *words: str, timeout_s: float | None = None) -> str:
        """What a reading command printed. Raises Unreachable when it failed, whatever the reason."""
        ran = self.run(program, *words, timeout_s=timeout_s)
        if ran.rc != 0:
            raise self.failure(program, ran)
        return ran.stdout

    def failure(self, program: str, ran: Ran) -> Unreachable:
        """A reading command that failed: nothing is known. retry_after_s leaves a busy controller alone."""
        return Unreachable(
            f"{program}: {said(ran)}", retry_after_s=60.0 if SILENT.search(ran.stderr) else None
        )

    def facts(self) -> Facts:
        """`scontrol show config`. Raises Unreachable."""
        told = fields(self.ask("scontrol", "show", "config"))
        age = re.match(r"\d+", told.get("MinJobAge", ""))
        return Facts(
            version=version(told.get("SLURM_VERSION", "")),
            accounting=told.get("AccountingStorageType", "").endswith("slurmdbd"),
            min_job_age_s=int(age[0]) if age else 300,
            as_of_s=int(told.get("AsOf", "0")),
            cluster=told.get("ClusterName", ""),
            hides_jobs="jobs" in told.get("PrivateData", "").lower().split(","),
        )

    def submit_failure(self, ran: Ran) -> ClusterError:
        """What a failed sbatch means: it may have landed (Unclear), nobody was there, or the words of a refusal."""
        words = said(ran)
        lost_ssh = bool(self.options.prefix) and ran.rc == SSH_FAILED and "sbatch:" not in ran.stderr
        if SILENT.search(ran.stderr) or lost_ssh or ran.rc < 0:
            return Unclear(f"sbatch gave no clear answer, the job may exist: {words}")
        if AWAY.search(ran.stderr):
            return Unreachable(f"sbatch: {words}")
        return refused(words)


class Silent(Unreachable):
    """No answer in time. For a submit that is unclear: what was sent may land when the controller wakes."""


def refused(words: str) -> Refused:
    """Slurm said no: its words, and the cause they tell."""
    for pattern, cause, retryable in REFUSALS:
        if pattern.search(words):
            return Refused(words, cause=cause, retryable=retryable)
    return Refused(words)


def said(ran: Ran) -> str:
    """What a call said, in one bounded line; without words its exit status."""
    words = " ".join(f"{ran.stderr}\n{ran.stdout}".split())
    return words[:WORDS_MAX] or f"it ended with status {ran.rc} and said nothing"
