"""The batch script and the arguments of sbatch that a spec becomes. Pure.

The script goes in through stdin, so that values of variables stand in no process list. In it the wrapper runs the
command; after a requeue it replaces the earlier record, and each task of an array has a folder of its own.

A figure that the request gives beats the `#SBATCH` line of the user's script, which beats a default. Cores and
memory that neither gives are left to Slurm where the request came as a batch script: what the site gives is what its
author counts on (issue 3). Any other request has the defaults of `states/spec.py`.

Never: a word of a request that a shell would read as anything but that word.
"""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Iterable
from typing import NamedTuple
from urllib.parse import quote, unquote

from agent.clusters.base import Refused, Submission, refuse_odd_texts
from agent.clusters.slurm_directives import (
    IDENTITY,
    NOT_A_SUBMIT,
    Directives,
    directives,
    option_names,
    options_of,
)
from agent.clusters.slurm_options import Options
from states.spec import FIGURES, Figure, Request, Spec, in_proportion

PROXY_NAMES = ("http_proxy", "https_proxy", "all_proxy")
VARIABLE = re.compile(r"[A-Za-z_]\w*", re.ASCII)
SAFE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")

CPU_OPTIONS = frozenset({"cpus-per-task", "cpus-per-gpu", "exclusive"})
MEMORY_OPTIONS = frozenset({"mem", "mem-per-cpu", "mem-per-gpu"})
SHAPE_OPTIONS = frozenset({"nodes", "ntasks", "ntasks-per-node", "array"})

NO_FIGURES = Request(command=("true",))


class Native(NamedTuple):
    """What would be sent. words: arguments of sbatch; script: its stdin; notes: worth telling the person."""

    words: tuple[str, ...]
    script: str
    notes: tuple[str, ...] = ()


def check(submission: Submission, options: Options) -> None:
    """Raises Refused for what Slurm could not do as asked, or what would hide the job from us."""
    spec = submission.spec
    if not SAFE_NAME.fullmatch(submission.name):
        raise Refused(
            f"{submission.name!r} cannot be a job's name here: letters, digits, `.`, `_` and `-` only"
        )
    if not spec.command:
        raise Refused("there is no command to run")
    refuse_odd_texts(spec)
    if odd := [name for name in spec.env if not VARIABLE.fullmatch(name)]:
        raise Refused(f"{odd[0]!r} cannot be the name of a variable in a batch script")
    if taken := sorted(option_names(spec.extra_args) & (IDENTITY | NOT_A_SUBMIT)):
        raise Refused(
            f"leave --{taken[0]} out of `extra_args`: Watchkeeper sets it, or the job could not be followed",
            cause="command.bad_argument",
        )
    if spec.lane == "idle" and options.idle is None:
        raise Refused("this cluster has no idle lane; set `idle: {partition: ...}` or `{qos: ...}` for it")
    if (spec.image or spec.mounts) and not options.container:
        raise Refused(
            "this cluster runs jobs without containers, so it has neither image nor mounts: leave them out, or set"
            " `container:` (for instance [apptainer, exec, --nv])"
        )


def native(
    submission: Submission, options: Options, *, wrapper: str, folder: str, user_script: str = ""
) -> Native:
    """The submit of a checked submission. wrapper, folder: paths of the wrapper and of the run's record below the
    workspace; user_script: text of the script that the command runs, "" for none."""
    spec = submission.spec
    own = directives(user_script)
    words = [
        "--parsable",
        f"--job-name={submission.name}",
        f"--comment={comment(submission.fingerprint, submission.owner)}",
        f"--chdir={spec.workspace}",
        f"--output={_log_pattern(folder, is_array((*own.kept, *options.sbatch_args, *spec.extra_args)))}",
        "--open-mode=append",
        *_figures(spec, options, own),
        *_place(spec, options, own),
        *options.sbatch_args,
        *spec.extra_args,
    ]
    notes = []
    if own.set_aside:
        notes.append(
            f"set aside from the script, since Watchkeeper sets its own: {shlex.join(own.set_aside)}"
        )
    if spec.priority > 1 and not options.qos_of_priority.get(spec.priority) and not options.nice_step:
        notes.append(f"priority {spec.priority} changes nothing here: set `qos_of_priority` or `nice_step`")
    return Native(tuple(words), _script(submission, options, own, wrapper, folder), tuple(notes))


def is_array(words: Iterable[str]) -> bool:
    return "array" in option_names(words)


def _log_pattern(folder: str, array: bool) -> str:
    """sbatch's file name pattern of the log: `%` is its own sign."""
    return f"{folder.replace('%', '%%')}/log" + (".%a" if array else "")


def _figures(spec: Spec, options: Options, own: Directives) -> list[str]:
    """Nodes, cores, memory, GPUs and time, where the request gives them or the script does not."""
    words = []
    asked = option_names((*options.sbatch_args, *spec.extra_args))
    if spec.replicas > 1 or not (own.has(SHAPE_OPTIONS) or "nodes" in asked):
        words += [f"--nodes={spec.replicas}", "--ntasks-per-node=1"]
    if _is_ours_to_say("cpu", spec, own) and asked.isdisjoint(CPU_OPTIONS):
        words.append(f"--cpus-per-task={math.ceil(spec.cpu)}")
    if _is_ours_to_say("memory_mib", spec, own) and asked.isdisjoint(MEMORY_OPTIONS):
        words.append(f"--mem={spec.memory_mib}M")
    if spec.gpu and own.has(
        {"gpus-per-node"}
    ):  # the same word beats the script's; beside --gres it would add to it
        words.append(f"--gpus-per-node={options.gres}:{spec.gpu}".replace("=gpu:", "="))
    elif spec.gpu:
        words.append(f"--gres={options.gres}:{spec.gpu}")
    if spec.time_limit_s is not None:
        words.append(f"--time={max(1, math.ceil(spec.time_limit_s / 60))}")
    return words


def _is_ours_to_say(figure: Figure, spec: Spec, own: Directives) -> bool:
    """The request gave it, or nobody did and there is no batch script that leaves it to Slurm. 0: left to Slurm."""
    value, guess = getattr(spec, figure), in_proportion(NO_FIGURES, spec.gpu)[FIGURES.index(figure)]
    return bool(value) and (figure in spec.stated or value != guess or not own.kept)


def _place(spec: Spec, options: Options, own: Directives) -> list[str]:
    """Partition, account, QOS, priority and exclusions. A group is an account, or `account/partition`."""
    lane = options.idle if spec.lane == "idle" and options.idle is not None else None
    account, _, partition = spec.group.partition("/")
    named = {
        "partition": partition or (lane.partition if lane else ""),
        "account": account or (lane.account if lane else ""),
        "qos": options.qos_of_priority.get(spec.priority, "") or (lane.qos if lane else ""),
    }
    usual = {"partition": options.partition, "account": options.account, "qos": options.qos}
    words = []
    for name, value in named.items():
        if value or (usual[name] and not own.has({name})):
            words.append(f"--{name}={value or usual[name]}")
    if options.nice_step:
        words.append(f"--nice={(9 - spec.priority) * options.nice_step}")
    if spec.exclude_nodes:
        words.append(f"--exclude={','.join(spec.exclude_nodes)}")
    if options.requeue is not None:
        words.append("--requeue" if options.requeue else "--no-requeue")
    if (
        options.singleton
        and not own.has({"dependency"})
        and "dependency" not in option_names(spec.extra_args)
    ):
        words.append("--dependency=singleton")
    return words


def _script(submission: Submission, options: Options, own: Directives, wrapper: str, folder: str) -> str:
    spec = submission.spec
    lines = ["#!/bin/sh"]
    lines += [f"#SBATCH {shlex.join(option)}" for option in options_of(own.kept)]
    lines += [f"# from the script, set aside: {shlex.join(option)}" for option in options_of(own.set_aside)]
    lines += [f"export {name}={shlex.quote(value)}" for name, value in spec.env.items()]
    lines += _surroundings(submission)
    record = f"{shlex.quote(folder)}${{SLURM_ARRAY_TASK_ID:+/$SLURM_ARRAY_TASK_ID}}"
    command = shlex.join(_command(spec, options, own))
    # -i: a controller that was killed just after a start has the program aborted, and starts it again under its id as
    # if it never had. No count of restarts tells of that; the record in the folder does.
    lines.append(f"exec sh {shlex.quote(wrapper)} -gi ${{SLURM_RESTART_COUNT:+-r}} {record} -- {command}")
    return "\n".join(lines) + "\n"


def _surroundings(submission: Submission) -> list[str]:
    """Variables that every job has; those of several nodes find each other by MASTER_ADDR, unless it is given."""
    spec = submission.spec
    lines = [f'export WATCHKEEPER_JOB={submission.name} WATCHKEEPER_ID="$SLURM_JOB_ID"']
    if spec.environment:
        home = shlex.quote(spec.environment.rstrip("/"))
        lines.append(f'export VIRTUAL_ENV={home} PATH={home}/bin:"$PATH"')
    if spec.proxy:
        names = (spelt for low in PROXY_NAMES for spelt in (low, low.upper()))
        lines.append("export " + " ".join(f"{name}={shlex.quote(spec.proxy)}" for name in names))
    if spec.replicas > 1:
        # Since 22.05 srun does not take the cores of the job over by itself; an empty figure it refuses.
        lines.append('[ -z "$SLURM_CPUS_PER_TASK" ] || export SRUN_CPUS_PER_TASK="$SLURM_CPUS_PER_TASK"')
        if "MASTER_ADDR" not in spec.env:
            lines.append('MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)')
            lines.append("export MASTER_ADDR MASTER_PORT=$((20000 + SLURM_JOB_ID % 10000))")
    return lines


def _command(spec: Spec, options: Options, own: Directives) -> list[str]:
    """The command in its container, once on every node. A batch script calls srun by itself."""
    words = list(spec.command)
    if spec.image:
        binds = [word for mount in spec.mounts for word in (options.bind, mount)]
        words = [*options.container, *binds, spec.image, *words]
    if spec.replicas > 1 and not own.kept:
        words = ["srun", "--kill-on-bad-exit=1", *words]
    return words


def rendered(sent: Native, spec: Spec) -> str:
    """Command line and script for people, without the values of variables (they may be secrets)."""
    script = sent.script
    for name, value in spec.env.items():
        script = script.replace(f"export {name}={shlex.quote(value)}\n", f"export {name}=...\n")
    told = [
        f"$ {shlex.join(['sbatch', *sent.words])} <<'END'",
        script + "END",
        *(f"# {note}" for note in sent.notes),
    ]
    return "\n".join(told)


def comment(fingerprint: str, owner: str) -> str:
    """What is kept with the job, beside its name: `watchkeeper:<fingerprint>:<owner>`."""
    return f"watchkeeper:{fingerprint}:{quote(owner, safe='')}"


def agrees(told: str, *, fingerprint: str, owner: str, name: str) -> bool:
    """Whether a job's comment fits; "" for what is asked fits any. Accounting may not keep comments: then the name
    alone speaks, whose end is the fingerprint."""
    kind, _, rest = told.partition(":")
    if not fingerprint and not owner:
        return True
    if kind != "watchkeeper":
        return told == "" and name.endswith(fingerprint)
    print_, _, whose = rest.partition(":")
    return fingerprint in ("", print_) and owner in ("", unquote(whose))
