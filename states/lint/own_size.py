"""What size a command says that it is: cards on each machine, machines, memory (RULES C4, C9).

Read from launchers, device lists, sizes of a parallel model, Lightning's trainer and memory options, in the command
and in the scripts that it starts as far as they are seen. Memory is MiB.

Never: judge whether that fits (`states/sizing.py` does); take a figure that only the run knows for one that is given.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from states.lint import python_code
from states.lint.environment import setting
from states.lint.facts import Run, Walked
from states.lint.figures import A_MACHINE, AT_MOST, asked, count_of
from states.lint.launchers import Wrapper
from states.lint.lint import CHARS_MAX
from states.lint.options import options
from states.lint.scene import Scene
from states.lint.walk import Walker
from states.lint.wrappers import WORKERS

ONE_MODEL = (
    frozenset({"tensor_parallel_size", "tp_size", "tensor_parallel", "tp"}),
    frozenset({"pipeline_parallel_size", "pp_size", "pp"}),
)
"""Options whose product is the number of cards of one model."""

MEMORY = frozenset({"driver_memory", "executor_memory", "memory_limit", "max_memory"})
ON_GPUS = frozenset(
    {"vllm", "sglang", "trtexec", "tritonserver", "lm_eval", "lm-eval", "nvidia-smi", "gmx", "namd3"}
)
"""Programs that work on a GPU and are not started by Python by name."""

TOTALS = frozenset({"accelerate", "horovodrun"})
"""Launchers that count the processes of all machines together."""

_XMX = re.compile(r"-Xmx(\d{1,9}[kKmMgGtT])")
_AMOUNT = re.compile(r"(\d{1,9}(?:\.\d{1,3})?)\s*([kmgt])(?:i?b)?", re.IGNORECASE)
_MIB = {"k": 1 / 1024, "m": 1.0, "g": 1024.0, "t": 1024.0 * 1024.0}
FIGURE_MAX = 1024


class Said(NamedTuple):
    """gpu: on each machine (None: the text does not say); gpu_why: the words for it; uses_gpus: whether anything in
    it looks as if it used one; replicas, memory_mib: None where nothing is said."""

    gpu: int | None = None
    gpu_why: str = ""
    uses_gpus: bool = False
    replicas: int | None = None
    memory_mib: int | None = None


def read(text: str, scene: Scene) -> tuple[Said, tuple[str, ...]]:
    """What the shell text says, and the paths that were asked for and are not known. Raises nothing."""
    walker = Walker(scene)
    try:
        walker.walk_text(text[:CHARS_MAX], "command")
    except RecursionError:
        return Said(), ()  # nested too deeply to be read
    walked = walker.walked()
    return of(walked), walked.wanted


def of(walked: Walked) -> Said:
    """The largest figures of all programs that take part."""
    cards = [found for run in walked.runs for found in _cards(run)]
    machines = [count for run in walked.runs if (count := _machines(run)) is not None]
    for python in walked.pythons:
        code = python_code.read(python)
        if code is not None:
            taken = _of_trainer(code, "devices", "gpus")
            cards += [(figure, f"the trainer takes {figure} devices") for figure in taken]
            machines += _of_trainer(code, "num_nodes")
    gpu, why = max((one for one in cards if 0 < one[0] <= FIGURE_MAX), default=(None, ""))
    memory = [amount for run in walked.runs for amount in _memory(run)]
    return Said(
        gpu,
        why,
        gpu is not None or any(_uses_gpus(run) for run in walked.runs),
        max((count for count in machines if 0 < count <= FIGURE_MAX), default=None),
        max(memory, default=None),
    )


def _cards(run: Run) -> Iterator[tuple[int, str]]:
    """Figures of one program, each with its words."""
    wrapper = _launcher(run)
    if wrapper is not None:
        processes, nodes = asked(wrapper)
        count, machines = count_of(processes), count_of(nodes) or 1
        if count is not None and wrapper.name in TOTALS and count % machines == 0:
            count //= machines
        if count is not None:
            yield count, f"{wrapper.name} starts {count} processes on a machine"
    shown = setting(run, "CUDA_VISIBLE_DEVICES") or ""
    if re.fullmatch(r"\d{1,3}(?:,\d{1,3})*,?", shown) and not run.where.loops:
        yield 1 + max(int(card) for card in shown.strip(",").split(",")), f"CUDA_VISIBLE_DEVICES is {shown}"
    model, sizes = 1, list[str]()
    for option in options(run):
        figure = count_of(option.value)
        if figure is None:
            continue
        if option.name in A_MACHINE or (option.name in AT_MOST and run.python):
            yield figure, f"{option.flag.text.partition('=')[0]} {figure}"
        elif any(option.name in names for names in ONE_MODEL):
            model, sizes = model * figure, [*sizes, f"{option.flag.text.partition('=')[0]} {figure}"]
    if sizes:
        yield model, f"one model on {model} cards ({', '.join(sizes)})"


def _machines(run: Run) -> int | None:
    wrapper = _launcher(run)
    return count_of(asked(wrapper)[1]) if wrapper is not None else None


def _launcher(run: Run) -> Wrapper | None:
    """The innermost launcher of several processes that knows of cards."""
    return next(
        (w for w in reversed(run.via) if w.name in WORKERS and w.name not in ("srun", "mpirun")), None
    )


def _of_trainer(code: python_code.Code, *names: str) -> Iterator[int]:
    """`Trainer(devices=4, num_nodes=2)` of Lightning."""
    for call in code.calls:
        keyword = call.keyword(*names)
        lightning = "lightning" in call.name or call.keyword("devices", "gpus") is not None
        if keyword is None or not lightning or call.name.rsplit(".", 1)[-1] not in ("Trainer", "Fabric"):
            continue
        figure = code.number(keyword.value)
        if figure is not None:
            yield figure


def _memory(run: Run) -> Iterator[int]:
    """What the program is told to take at most, MiB."""
    for arg in run.args:
        if match := _XMX.fullmatch(arg.text):
            yield from _mib(match[1])
    for option in options(run):
        if option.name in MEMORY and option.value is not None and option.value.known:
            yield from _mib(option.value.text)


def _mib(text: str) -> Iterator[int]:
    """An amount with its unit; from a bare number nothing is concluded."""
    match = _AMOUNT.fullmatch(text.strip())
    if match is not None:
        yield max(1, round(float(match[1]) * _MIB[match[2].lower()]))


def _uses_gpus(run: Run) -> bool:
    """Python may; so may what is started by a launcher of processes, and what speaks of cards."""
    words = " ".join(arg.text for arg in run.args[:40]).lower()
    return (
        run.python or _launcher(run) is not None or run.name in ON_GPUS or "cuda" in words or "gpu" in words
    )
