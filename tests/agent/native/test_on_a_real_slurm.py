"""A batch script goes through Watchkeeper to a real Slurm, and is the same job there as by `sbatch`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from agent.clusters.base import Ref, Submission
from agent.native import Converted, convert
from states.observation import ENDED, Phase
from states.spec import Request, draft
from tests.clusters.slurm.bench import SlurmBench
from tests.clusters.slurm.engine import Slurm, running

Eventually = Callable[..., Any]
NAME = "pair-x-a1-00000000"
STATES_ALL = """\
#!/bin/bash
#SBATCH --job-name=pair
#SBATCH --partition=normal
#SBATCH -N 2
#SBATCH --ntasks-per-node=2
#SBATCH --gpus-per-node=2
#SBATCH --mem=60M          # of each node
#SBATCH --time=00:10:00
#SBATCH --output=elsewhere/%j.out

srun sh -c 'echo task $SLURM_PROCID of $SLURM_NTASKS with $1' - "$1"
"""
LEAVES_FIGURES_TO_THE_SITE = """\
#!/usr/bin/env -S bash -e
#SBATCH -p normal -N 2 --gres=gpu:1
srun sh -c 'echo task $SLURM_PROCID of $SLURM_NTASKS with $1' - "$1"
"""
BARE = """\
#!/bin/bash -l
echo "once on $SLURM_JOB_NUM_NODES nodes with $1"
"""
FACTS = r"\b(NumNodes|NumTasks|MinMemoryNode|MinMemoryCPU|TimeLimit|Partition|CPUs/Task|TresPerNode)=(\S+)"


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    yield from running(tmp_path_factory.mktemp("slurm"), accounting=False)


@pytest.fixture
def bench(slurm: Slurm, tmp_path: Any) -> Iterator[SlurmBench]:
    yield SlurmBench(slurm, tmp_path, partition="normal")
    slurm.clear()


def facts(slurm: Slurm, job_id: str) -> dict[str, str]:
    told = dict(re.findall(FACTS, slurm.out("scontrol", "-o", "show", "job", job_id)))
    return {name: value.replace("2-2", "2") for name, value in told.items()}


def carried(bench: SlurmBench, made: Converted, eventually: Eventually) -> tuple[str, list[str]]:
    """Through Watchkeeper to its end: the id, and the lines of its log."""
    client = bench.client()
    spec = draft(Request.model_validate(made.request), workspace=str(bench.workspace))
    sent = client.submit(Submission(name=NAME, fingerprint="0" * 8, owner="kim", spec=spec))
    ref = Ref(NAME, sent.cluster_job_id)
    eventually(lambda: client.observe([ref])[ref.name].phase in ENDED)
    assert client.observe([ref])[ref.name].phase is Phase.succeeded, client.logs(ref).text
    return sent.cluster_job_id, sorted(client.logs(ref).text.splitlines())


@pytest.mark.parametrize(
    ("text", "tasks"),
    [(STATES_ALL, 4), (LEAVES_FIGURES_TO_THE_SITE, 2)],
    ids=["figures", "the site's own"],
)
def test_a_script_is_the_same_job_as_by_sbatch(
    bench: SlurmBench, slurm: Slurm, eventually: Eventually, text: str, tasks: int
) -> None:
    script = bench.workspace / "pair.sbatch"
    script.write_text(text, encoding="utf-8")
    made = convert(text, path="pair.sbatch", home=str(bench.workspace), args=("seven",))
    job_id, lines = carried(bench, made, eventually)
    assert lines == [f"task {number} of {tasks} with seven" for number in range(tasks)]
    own = facts(slurm, slurm.sbatch("--hold", str(script), cwd=bench.workspace))
    assert facts(slurm, job_id) == own


@pytest.mark.parametrize(
    ("options", "nodes"), [(["-N2"], 2), (["--mem=200M"], 1), (["-c2", "--mem-per-cpu=70M"], 1)]
)
def test_a_line_is_the_same_job_as_by_sbatch(
    bench: SlurmBench, slurm: Slurm, eventually: Eventually, options: Sequence[str], nodes: int
) -> None:
    """Of a script without `#SBATCH` lines, too: it runs once, whatever the number of nodes."""
    script = bench.workspace / "bare.sh"
    script.write_text(BARE, encoding="utf-8")
    line = ("sbatch", *options, "bare.sh", "seven")
    made = convert(argv=line, home=str(bench.workspace), read=lambda path: BARE)
    job_id, lines = carried(bench, made, eventually)
    assert lines == [f"once on {nodes} nodes with seven"]
    own = facts(slurm, slurm.sbatch("--hold", *options, str(script), cwd=bench.workspace))
    if "--mem-per-cpu=70M" in options:
        own = {name: value for name, value in own.items() if name != "MinMemoryCPU"} | {
            "MinMemoryNode": "140M"
        }
    assert facts(slurm, job_id) == own
