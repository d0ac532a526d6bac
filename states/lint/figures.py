"""Figures that contradict each other (RULES C3, C11): processes against GPUs, launcher nodes against replicas.

A launcher is held against what it will really get: the submit line around it if there is one, else the spec. A
figure that only the run knows is no figure; a range is met by its ends.

Never: object to one plain process on several GPUs: it may start its own workers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from states.lint.directives import read
from states.lint.environment import setting
from states.lint.facts import Run, Walked
from states.lint.finding import Finding
from states.lint.launchers import Wrapper
from states.lint.options import options
from states.lint.python_code import Code
from states.lint.scene import Scene
from states.lint.words import Arg
from states.lint.wrappers import WORKERS

_RANGE = re.compile(r"(\d{1,5})(?::(\d{1,5}))?")
A_MACHINE = frozenset({"n_gpus_per_node", "gpus_per_node", "num_gpus_per_node"})
AT_MOST = frozenset({"devices", "num_gpus", "n_gpus", "n_gpu", "ngpus", "num_devices"})
_KNOWN_BY_SLURM = {
    "nodes": ("SLURM_NNODES", "SLURM_JOB_NUM_NODES", "NNODES", "NODE_COUNT", "PET_NNODES", "WORLD_NODES"),
    "gpus": ("SLURM_GPUS_PER_NODE", "SLURM_GPUS_ON_NODE"),
}


class Have(NamedTuple):
    """What a run gets. gpu: on each machine; replicas: machines."""

    gpu: int | None
    replicas: int | None


def find(walked: Walked, scene: Scene) -> Iterator[Finding]:
    """Contradictions of launchers, device lists and known single-process programs."""
    said: set[tuple[str, int]] = set()
    for run in walked.runs:
        have = _have(run, scene)
        tasks = _tasks(run, walked)
        for arg, why in (
            *_launcher(run, have, tasks),
            *_devices(run, have),
            *_parallel(run, have),
            *_one_process(run, have),
        ):
            if (run.unit.file, arg.line) not in said:
                said.add((run.unit.file, arg.line))
                yield _finding(arg.line, why, run.unit.file)


def find_in_code(code: Code, scene: Scene) -> Iterator[Finding]:
    """`Trainer(devices=4, num_nodes=2)` of Lightning."""
    for call in code.calls:
        if call.name.rsplit(".", 1)[-1] not in ("Trainer", "Fabric") or not (
            "lightning" in call.name or call.keyword("devices", "gpus")
        ):
            continue
        for names, have in ((("devices", "gpus"), scene.gpu), (("num_nodes",), scene.replicas)):
            keyword = call.keyword(*names)
            figure = code.number(keyword.value) if keyword is not None else None
            if (
                keyword is not None
                and figure is not None
                and figure > 0
                and have is not None
                and figure != have
            ):
                what = "GPUs a machine" if names[0] == "devices" else "machines"
                yield _finding(
                    code.at(keyword), f"{names[0]} {figure}, but the spec has {have} {what}", code.file
                )


def _finding(line: int, why: str, file: str) -> Finding:
    mend = "Make the two agree: change this figure, or the GPUs and replicas that are asked for."
    return Finding("figures_contradict", "ask", line, why, mend, file)


def _have(run: Run, scene: Scene) -> Have:
    """The figures of the submit line around the run, else the spec's."""
    gpu, replicas = scene.gpu, scene.replicas
    for wrapper in run.via:
        if wrapper.name in ("rjob", "rlaunch"):
            given, count = (
                count_of(wrapper.option("gpu")),
                count_of(wrapper.option("P", "replica", "replicas")),
            )
            gpu = given if given is not None else gpu
            replicas = count if count is not None else replicas
        elif wrapper.name == "sbatch":
            nodes = count_of(wrapper.option("N", "nodes"))
            replicas = nodes if nodes is not None else replicas
        elif wrapper.name == "srun":
            nodes = count_of(wrapper.option("N", "nodes"))
            if nodes is not None and replicas is not None and nodes < replicas:
                replicas = nodes
    return Have(gpu, replicas)


def count_of(arg: Arg | None) -> int | None:
    """The whole number that a word is, where the text tells it."""
    return int(arg.text) if arg is not None and arg.known and arg.text.isdigit() else None


def _span(arg: Arg | None, run: Run, have: int | None, names: tuple[str, ...]) -> tuple[int, int] | None:
    """The figure of an option as (least, most); the scheduler's own variables stand for what is there."""
    if arg is None:
        return None
    text = arg.text.strip("${}")
    if text in names and have is not None:
        return have, have
    match = _RANGE.fullmatch(arg.text)
    if match is None or not arg.known:
        return None
    return int(match[1]), int(match[2] or match[1])


def visible(run: Run) -> int | None:
    """Cards that the run is restricted to."""
    given = setting(run, "CUDA_VISIBLE_DEVICES")
    return len(given.split(",")) if given is not None and re.fullmatch(r"\d+(?:,\d+)*,?", given) else None


def _launcher(run: Run, have: Have, tasks: int) -> Iterator[tuple[Arg, str]]:
    """Processes a machine against GPUs, and machines against replicas."""
    wrapper = next(
        (w for w in reversed(run.via) if w.name in WORKERS and w.name not in ("srun", "mpirun")), None
    )
    if wrapper is None:
        yield from _ranks(run, have)
        return
    processes, nodes = asked(wrapper)
    shown = visible(run)
    cards = shown if shown is not None else have.gpu
    machines = _span(nodes, run, have.replicas, _KNOWN_BY_SLURM["nodes"])
    count = _span(processes, run, have.gpu, _KNOWN_BY_SLURM["gpus"])
    if nodes is not None and machines is not None and not _nodes_fit(run, machines, count, have):
        yield nodes, f"{nodes.text} machines for the launcher, {have.replicas} in the spec"
        return
    if processes is None or count is None or cards is None or count[0] == 0:
        return
    if tasks > 1 and have.gpu and tasks * count[0] > have.gpu and wrapper.name in ("torchrun", "accelerate"):
        yield (
            processes,
            f"{tasks} launchers a machine, each with {processes.text} processes, for {have.gpu} GPUs",
        )
        return
    total = wrapper.name in ("accelerate", "horovodrun")
    machines_have = machines[0] if machines is not None else (have.replicas or 1)
    want = cards * (machines_have if total and wrapper.option("num_machines") else 1)
    ways = {want, cards * (have.replicas or 1)} if total else {want}
    if count[0] not in ways and not (count[0] <= want <= count[1]) and cards > 0:
        if count[0] < want and ((count[0] == 1 and total) or _tasks_per_node(run) > 1 or _in_parallel(run)):
            return
        yield processes, f"{processes.text} processes for {want} GPUs"


def asked(wrapper: Wrapper) -> tuple[Arg | None, Arg | None]:
    """The options for processes a machine (or in all) and for machines."""
    match wrapper.name:
        case "accelerate":
            return wrapper.option("num_processes", "n"), wrapper.option("num_machines")
        case "deepspeed":
            return wrapper.option("num_gpus", "num_accelerators"), wrapper.option("num_nodes")
        case "composer":
            return wrapper.option("n", "nproc"), None
        case "horovodrun":
            return wrapper.option("np", "num_proc"), None
        case _:
            return wrapper.option("nproc_per_node", "nproc_per_gpu"), wrapper.option("nnodes", "n_nodes")


def _tasks(run: Run, walked: Walked) -> int:
    """How many times srun starts the launcher on one machine; 1 where the text does not say."""
    srun = next((w for w in run.via if w.name == "srun"), None)
    if srun is None:
        return 1
    given = {d.option: d.value for d in read(walked.units[0].text)}
    tasks = _figure(srun.option("n", "ntasks"), given.get("ntasks", given.get("n", "")))
    nodes = _figure(srun.option("N", "nodes"), given.get("nodes", given.get("N", "1")))
    each = _figure(srun.option("ntasks_per_node"), given.get("ntasks-per-node", ""))
    if srun.option("n", "ntasks") is None and each:
        return each
    return max(1, tasks // nodes) if tasks and nodes else 1


def _figure(arg: Arg | None, otherwise: str) -> int:
    count = count_of(arg)
    return count if count is not None else int(otherwise) if otherwise.isdigit() else 0


def _nodes_fit(run: Run, machines: tuple[int, int], count: tuple[int, int] | None, have: Have) -> bool:
    """Whether the launcher's machines are those of the spec (a range is met inside)."""
    if have.replicas is None or machines[0] <= have.replicas <= machines[1]:
        return True
    return _tasks_cover(run, machines, count, have)


def _tasks_cover(run: Run, machines: tuple[int, int], count: tuple[int, int] | None, have: Have) -> bool:
    """A launcher started once a task with several tasks a machine: its nodes are the tasks."""
    srun = next((w for w in run.via if w.name == "srun"), None)
    tasks = count_of(srun.option("n", "ntasks")) if srun is not None else None
    if tasks is None or count is None or have.gpu is None or have.replicas is None:
        return False
    return machines[0] == tasks and machines[0] * count[0] == have.gpu * have.replicas


def _tasks_per_node(run: Run) -> int:
    srun = next((w for w in run.via if w.name == "srun"), None)
    return count_of(srun.option("ntasks_per_node")) or 1 if srun is not None else 1


def _in_parallel(run: Run) -> bool:
    """Several launchers side by side share the cards."""
    return run.where.background or sum(other.where.background for other in run.unit.runs) > 0


def _ranks(run: Run, have: Have) -> Iterator[tuple[Arg, str]]:
    """`mpirun -np N python`: one rank a card, if there are cards."""
    wrapper = next((w for w in reversed(run.via) if w.name == "mpirun"), None)
    if wrapper is None or not run.python or not have.gpu or have.replicas is None:
        return
    ranks = wrapper.option("np", "n", "c", "num_proc")
    count = count_of(ranks)
    total = have.gpu * have.replicas
    if ranks is not None and count is not None and count > total:
        yield ranks, f"{count} ranks for {total} GPUs"


def _devices(run: Run, have: Have) -> Iterator[tuple[Arg, str]]:
    """A device list that names cards which the job does not have."""
    arg = run.settings.get("CUDA_VISIBLE_DEVICES")
    if arg is None:
        value = run.env.get("CUDA_VISIBLE_DEVICES")
        arg = (
            value.args[0]._replace(line=value.line)
            if value is not None and value.exported and value.args
            else None
        )
    if arg is None or not have.gpu or not re.fullmatch(r"\d+(?:,\d+)*,?", arg.text):
        return
    cards = arg.text.strip(",").split(",")
    if len(cards) > have.gpu and (run.python or run.via):
        yield arg, f"{len(cards)} cards are named, the spec has {have.gpu}"


def _parallel(run: Run, have: Have) -> Iterator[tuple[Arg, str]]:
    """Tensor, data and pipeline sizes of a server or a trainer against the GPUs."""
    if not have.gpu or have.replicas is None:
        return
    for option in options(run):
        figure = count_of(option.value)
        if figure is not None and option.name in A_MACHINE and figure != have.gpu:
            yield option.flag, f"{figure} GPUs a machine, the spec has {have.gpu}"
        elif figure is not None and option.name in AT_MOST and run.python and figure > have.gpu:
            yield option.flag, f"{figure} GPUs, the spec has {have.gpu}"
        if option.name in ("tensor_parallel_size", "tp_size", "tensor_parallel") and option.value is not None:
            size = count_of(option.value)
            if size is not None and size > have.gpu * have.replicas:
                yield option.flag, f"{size} cards for one model, the spec has {have.gpu * have.replicas}"


def _one_process(run: Run, have: Have) -> Iterator[tuple[Arg, str]]:
    """lm_eval's own model runs on one card unless it is told or launched otherwise."""
    first = run.args[0].text if run.args else ""
    if run.name not in ("lm_eval", "lm-eval") and not (run.module and first == "lm_eval"):
        return
    if not have.gpu or have.gpu < 2 or any(w.name in WORKERS for w in run.via):
        return
    given = {option.name: option.value.text for option in options(run) if option.value is not None}
    words = " ".join(given.values())
    if "parallel" in words or given.get("model", "hf").startswith(
        ("vllm", "local", "openai", "sglang", "api")
    ):
        return
    yield Arg("", run.line), f"one process for {have.gpu} GPUs"
