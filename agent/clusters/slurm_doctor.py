"""Is this machine set up for a Slurm cluster? One row a thing, each with how to mend it.

Never: create, change or stop anything.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from agent.clock import SystemClock
from agent.clusters.base import ClusterError
from agent.clusters.slurm_commands import Commands, Facts
from agent.clusters.slurm_options import Options
from agent.clusters.slurm_parse import version

PROGRAMS = ("sbatch", "squeue", "scontrol", "scancel", "sinfo")
OLDEST = (20, 11)
"""The first version whose `squeue -O` takes a separator."""
CLOCKS_APART_S = 120
MIN_JOB_AGE_S = 300


class Finding(NamedTuple):
    """One row. level: fine, warn (works, with less), wrong. mend: what to do, "" when nothing is to be done."""

    name: str
    level: Literal["fine", "warn", "wrong"]
    said: str
    mend: str = ""


def examine(commands: Commands, options: Options) -> list[Finding]:
    """Programs and version, then the controller, its clock, accounting and partition."""
    rows = [_programs(commands)]
    if rows[0].level == "wrong":
        return rows
    began_s = SystemClock().now().timestamp()
    try:
        facts = commands.facts()
    except ClusterError as error:
        mend = (
            "Check that this machine may talk to the controller; set `conf:`, or `prefix: [ssh, LOGIN-NODE]`."
        )
        return [*rows, Finding("controller", "wrong", str(error), mend)]
    rows.append(Finding("controller", "fine", f"the controller of {facts.cluster!r} answers"))
    return [*rows, _clock(facts, began_s), _accounting(commands, facts), *_partitions(commands, options)]


def _programs(commands: Commands) -> Finding:
    found = (0, 0)
    for program in PROGRAMS:
        try:
            ran = commands.run(program, "--version")
        except ClusterError as error:
            mend = "Install Slurm's client commands, or set `programs:` or `prefix:`."
            return Finding("programs", "wrong", str(error), mend)
        found = version(ran.stdout)
        if ran.rc != 0 or found == (0, 0):
            said = f"`{program} --version` does not answer as Slurm's own: {(ran.stdout or ran.stderr).strip()[:200]}"
            return Finding("programs", "wrong", said, "Set `programs:` to the folder of Slurm's commands.")
    told = f"Slurm {found[0]}.{found[1]:02}"
    if found < OLDEST:
        return Finding(
            "programs", "wrong", f"{told} is too old", f"{OLDEST[0]}.{OLDEST[1]} or newer is needed."
        )
    return Finding("programs", "fine", told)


def _clock(facts: Facts, began_s: float) -> Finding:
    """The controller's clock against ours; only a large difference can mislead."""
    ahead_s = facts.as_of_s - began_s if facts.as_of_s else 0.0
    if abs(ahead_s) > CLOCKS_APART_S:
        said = f"the controller's clock is {ahead_s:+.0f} s from this machine's"
        return Finding(
            "clock", "warn", said, "Set one of them right (NTP): times in reports are off by that much."
        )
    return Finding("clock", "fine", f"{ahead_s:+.0f} s from this machine's")


def _accounting(commands: Commands, facts: Facts) -> Finding:
    if not facts.accounting:
        said = f"off: an ended job is forgotten after {facts.min_job_age_s} s (MinJobAge)"
        mend = "Nothing to do for jobs of your own: their wrapper writes down how they ended."
        return Finding("accounting", "warn" if facts.min_job_age_s < MIN_JOB_AGE_S else "fine", said, mend)
    try:
        commands.ask("sacct", "-X", "-n", "-P", "-o", "JobIDRaw", "-S", "now-1minutes")
    except ClusterError as error:
        return Finding(
            "accounting", "warn", str(error), "Ended jobs can be looked up again once slurmdbd answers."
        )
    return Finding("accounting", "fine", "sacct answers")


def _partitions(commands: Commands, options: Options) -> list[Finding]:
    """The configured partitions exist and are up."""
    rows: list[Finding] = []
    for name in dict.fromkeys(
        filter(None, (options.partition, options.idle.partition if options.idle else ""))
    ):
        try:
            state = commands.ask("sinfo", "-h", f"--partition={name}", "-o", "%a").split()
        except ClusterError as error:
            return [*rows, Finding("partition", "wrong", str(error))]
        if not state:
            rows.append(
                Finding("partition", "wrong", f"there is no partition {name!r}", "`sinfo -s` lists them.")
            )
        else:
            level: Literal["fine", "warn"] = "fine" if state[0] == "up" else "warn"
            rows.append(Finding("partition", level, f"{name} is {state[0]}"))
    return rows
