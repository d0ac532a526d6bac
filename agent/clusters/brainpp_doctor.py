"""Is this machine set up for Brain++? One row a thing, each with how to mend it.

Another public tool is called `rjob` too (a Slurm wrapper), so the right one is known by its sub-commands (RJOB 0.9).

Never: create, change or stop anything; show a key or the list of groups.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

from agent.clusters.base import ClusterError, Refused
from agent.clusters.brainpp_argv import KEYS
from agent.clusters.brainpp_cli import ENTRY_VARIABLE, GROUP, Cli
from agent.clusters.brainpp_parse import plain
from agent.secrets import advice
from states.credentials import MalformedGroups, Pair, groups

SUBCOMMANDS = ("submit", "events", "download-logs")
PROBE = "watchkeeper-doctor-probe"
"""A name that no job has: asking for it proves the way there and the keys, and creates nothing."""


class Finding(NamedTuple):
    """One row. level: fine, warn (works, with less), wrong. mend: what to do, "" when nothing is to be done."""

    name: str
    level: Literal["fine", "warn", "wrong"]
    said: str
    mend: str = ""


def examine(cli: Cli, storage: Mapping[str, str]) -> list[Finding]:
    """Tools, keys, group, mapped folders, and whether the cluster answers."""
    rows = [_rjob(cli), _brainctl(cli), _keys(cli), *_group(cli), _storage(storage)]
    if all(row.level == "fine" for row in rows if row.name in ("rjob", "keys", "group")):
        rows.append(_reach(cli, groups(cli.setting(GROUP))[0]))
    return rows


def _rjob(cli: Cli) -> Finding:
    try:
        usage = plain(cli.usage("rjob"))
    except ClusterError as error:
        return Finding(
            "rjob", "wrong", str(error), "Install the Brain++ tools, or set `rjob: PATH` for the cluster."
        )
    if missing := [word for word in SUBCOMMANDS if word not in usage]:
        said = f"`{cli.programs['rjob']}` is another program: its help does not offer {', '.join(missing)}"
        return Finding(
            "rjob", "wrong", said, "Set `rjob: PATH` in the cluster's options to the one of Brain++."
        )
    return Finding("rjob", "fine", f"`{cli.programs['rjob']}` is the one of Brain++")


def _brainctl(cli: Cli) -> Finding:
    try:
        cli.usage("brainctl")
    except ClusterError as error:
        mend = "Set `brainctl: PATH`. Without it capacity cannot be told, nor what was created be checked."
        return Finding("brainctl", "warn", str(error), mend)
    return Finding("brainctl", "fine", f"`{cli.programs['brainctl']}` is there")


def _keys(cli: Cli) -> Finding:
    try:
        missing = [name for name in KEYS if not cli.setting(name)]
    except Refused as error:
        return Finding("keys", "wrong", str(error))
    if missing:
        mend = " ".join(advice(name) for name in missing)
        return Finding("keys", "wrong", f"not set: {', '.join(missing)}", mend)
    return Finding("keys", "fine", "both are set")


def _group(cli: Cli) -> list[Finding]:
    try:
        value = cli.setting(GROUP)
    except Refused:
        return []  # said of the keys already
    if not value:
        return [Finding("group", "wrong", f"not set: {GROUP}", advice(GROUP))]
    try:
        pairs = groups(value)
    except MalformedGroups as error:
        return [Finding("group", "wrong", str(error), advice(GROUP))]
    return [Finding("group", "fine", f"{len(pairs)} configured, the first is the default")]


def _storage(storage: Mapping[str, str]) -> Finding:
    if not storage:
        mend = "Set `storage: {/workspace: gpfs://FILESYSTEM/FOLDER}` in the cluster's options."
        return Finding("storage", "wrong", "no folder is mapped, so no workspace can be mounted", mend)
    return Finding("storage", "fine", f"mapped: {', '.join(sorted(storage))}")


def _reach(cli: Cli, pair: Pair) -> Finding:
    try:
        ran = cli.rjob(["get", PROBE, f"--namespace={pair.namespace}"], pair.namespace)
    except Refused as error:
        return Finding("cluster", "wrong", str(error))
    except ClusterError as error:
        return Finding(
            "cluster", "wrong", str(error), f"Is {ENTRY_VARIABLE} right? Set `entry:` for the cluster."
        )
    if ran.rc != 0:
        mend = f"Check the keys, and {ENTRY_VARIABLE} (`entry:` in the cluster's options)."
        return Finding("cluster", "wrong", cli.words(ran), mend)
    return Finding("cluster", "fine", "it answers, with these keys; it does not tell its time")
