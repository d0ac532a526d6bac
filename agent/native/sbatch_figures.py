"""What the options of sbatch come to for one node, which is what a request counts in. Pure.

A request's figures are per replica, and a replica is a node: tasks of a node are counted together, `--gpus` is a
total of the job (sbatch's manual). Where a word says more than a figure can (a GPU's type), the word is kept too.
Cores and memory that nobody gives, or that a kept word gives, are 0: left to Slurm, whose site has its own defaults.

Never: a figure from a word that cannot be read (the word is passed through as it is); one of ours where the site has
its own.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import NamedTuple

from agent.native.converted import Building
from agent.native.sbatch_options import Option

MEMORY = re.compile(r"(\d+(?:\.\d+)?)([KMGT]?)B?", re.I)
MIB_OF = {"K": 1 / 1024, "": 1.0, "M": 1.0, "G": 1024.0, "T": 1024.0**2}
TIME = re.compile(r"(?:(\d+)-)?(\d+)(?::(\d+))?(?::(\d+))?")
NODES = re.compile(r"(\d+)(?:-(\d+))?")

Given = Mapping[str, Option]
"""The options that count, by name."""

TAKEN = frozenset(
    "nodes ntasks ntasks-per-node cpus-per-task cpus-per-gpu mem mem-per-cpu mem-per-gpu gres gpus gpus-per-node"
    " gpus-per-task time".split()
)
"""Options that this file settles."""


class Shape(NamedTuple):
    """nodes: None where Slurm is to choose. tasks: of one node."""

    nodes: int | None
    tasks: int


def put(built: Building, given: Given, *, bare: bool) -> None:
    """Nodes, GPUs, cores, memory and time into the request; what else must be said, into the words kept. bare: the
    command is no script with `#SBATCH` lines of its own."""
    shape = _shape(built, given, bare)
    gpus = _gpus(built, given, shape)
    cpus = _cpus(built, given, shape, gpus)
    _memory(built, given, gpus, cpus)
    _time(built, given)


def _shape(built: Building, given: Given, bare: bool) -> Shape:
    """Nodes, and tasks of each. Several replicas of a bare command are one on each node, while sbatch runs it once on
    the first: there the nodes stay a word of Slurm's."""
    nodes, ntasks, per_node = (_value(given, name) for name in ("nodes", "ntasks", "ntasks-per-node"))
    span = NODES.fullmatch(nodes)
    count = int(span[1]) if span else None
    several, open_ended = count is not None and count > 1, bool(nodes) and (span is None or bool(span[2]))
    if several and not bare:
        built.request["replicas"] = count
    if open_ended or (several and bare):
        built.keep(f"--nodes={nodes}", backing="replicas")
    if open_ended:
        built.note(f"--nodes={nodes}: Slurm chooses how many; the least is what the run counts with")
    if several and bare:
        built.note(f"--nodes={nodes}: the command runs once, as by sbatch; its own srun reaches every node")
    total = int(ntasks) if ntasks.isdigit() else None
    if ntasks and total != 1:
        built.keep(f"--ntasks={ntasks}", backing="replicas")
    tasks = int(per_node) if per_node.isdigit() else math.ceil((total or 1) / (count or 1))
    if tasks > 1 and (per_node or count is not None or given["ntasks"].of_line):
        built.keep(f"--ntasks-per-node={per_node or tasks}", backing="replicas")
    if count is None and tasks > 1:
        built.note(
            f"{tasks} tasks without --nodes are counted as those of one node; give --nodes for several"
        )
    return Shape(count, tasks)


def _gpus(built: Building, given: Given, shape: Shape) -> int:
    """GPUs of a node; 0 where none are asked for or their number cannot be read."""
    found, exact = 0, ""
    for name in ("gres", "gpus-per-node", "gpus-per-task", "gpus"):
        value = _value(given, name)
        if not value:
            continue
        listed = value.split(",")
        counts = [_gpu_count(part if name == "gres" else f"gpu:{part}") for part in listed]
        number = sum(count for count in counts if count)
        if name == "gpus-per-task":
            number *= shape.tasks
        elif name == "gpus":
            number = math.ceil(number / (shape.nodes or 1))
            if (shape.nodes or 1) == 1 and number > 1 and not _value(given, "nodes"):
                built.note(
                    f"--gpus={value} is a total of the job; without --nodes it is counted as one node's"
                )
        found = found or number
        if name == "gpus-per-node" and ":" in value and not exact:
            exact = f"--gres={','.join(f'gpu:{part}' for part in listed)}"
        elif name == "gres" and value != f"gpu:{number}":
            exact = f"--gres={value}"
        if name in ("gpus", "gpus-per-task"):
            built.keep(f"--{name}={value}", backing="gpu")
    if exact:
        built.keep(exact, backing="gpu")
    if found:
        built.request["gpu"] = found
    return found


def _gpu_count(gres: str) -> int | None:
    """`gpu`, `gpu:2`, `gpu:a100:4`, `gpu:a100:4(S:0)`; None for what is no GPU."""
    parts = re.sub(r"\(.*", "", gres).removeprefix("gres:").split(":")
    if parts[0] != "gpu":
        return None
    return int(parts[-1]) if parts[-1].isdigit() else 1


def _cpus(built: Building, given: Given, shape: Shape, gpus: int) -> int:
    """Cores of a node; 0 where they are Slurm's to say."""
    per_task, per_gpu = given.get("cpus-per-task"), given.get("cpus-per-gpu")
    if per_task is not None and (per_task.value or "").isdigit():
        cpus = int(per_task.value or 0) * shape.tasks
        built.request["cpu"] = cpus
        if shape.tasks > 1:
            built.keep(per_task.word, backing="cpu")
        return cpus
    if per_gpu is not None and per_gpu.of_line and gpus and (per_gpu.value or "").isdigit():
        built.request["cpu"] = cpus = int(per_gpu.value or 0) * gpus
        return cpus
    for option in filter(None, (per_task, per_gpu)):
        built.keep(option.word, backing="cpu")
    built.request["cpu"] = 0
    if per_task is None and per_gpu is None and "exclusive" not in given and gpus:
        built.note(
            "no cores are given: a task gets what the site has set, one as a rule; `--cpu` asks for more"
        )
    return 0


def _memory(built: Building, given: Given, gpus: int, cpus: int) -> None:
    whole = mebibytes(_value(given, "mem"))
    if whole:
        built.request["memory_mib"] = whole
        return
    built.request["memory_mib"] = 0
    if "mem" in given:
        built.keep(given["mem"].word, backing="memory_mib")
        return
    for name, count in (("mem-per-gpu", gpus), ("mem-per-cpu", cpus)):
        option = given.get(name)
        each = mebibytes(_value(given, name))
        if option is not None and option.of_line and each and count:
            built.request["memory_mib"] = each * count
            return
        if option is not None:
            built.keep(option.word, backing="memory_mib")
            return
    built.note("no memory is given: the job gets what the site has set; `--memory-mib` asks for some")


def _time(built: Building, given: Given) -> None:
    limit = seconds(_value(given, "time"))
    if limit:
        built.request["time_limit_s"] = limit
    elif "time" in given:
        built.keep(given["time"].word, backing="time_limit_s")


def mebibytes(text: str) -> int:
    """`64G`, `400000` (MiB), `32gb`; 0 for what is no figure or means "all of it"."""
    match = MEMORY.fullmatch(text)
    return math.ceil(float(match[1]) * MIB_OF[match[2].upper()]) if match else 0


def seconds(text: str) -> int:
    """`90` (minutes), `m:s`, `h:m:s`, `d-h`, `d-h:m`, `d-h:m:s` (sbatch's manual); 0 for what is none of them."""
    match = TIME.fullmatch(text)
    if match is None:
        return 0
    days, first, second, third = (int(part) if part else 0 for part in match.groups())
    if match[1]:
        return ((days * 24 + first) * 60 + second) * 60 + third
    if match[4]:
        return (first * 60 + second) * 60 + third
    return first * 60 + second


def _value(given: Given, name: str) -> str:
    option = given.get(name)
    return option.value or "" if option is not None else ""
