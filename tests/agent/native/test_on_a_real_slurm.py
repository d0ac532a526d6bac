"""A batch script goes through Watchkeeper to a real Slurm, and is the same job there as by `sbatch`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agent.clusters.base import Ref, Submission
from agent.native import convert
from states.observation import ENDED, Phase
from states.spec import Request, draft
from tests.clusters.slurm.bench import SlurmBench
from tests.clusters.slurm.engine import Slurm, running

Eventually = Callable[..., Any]
SCRIPT = """\
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
FACTS = r"\b(NumNodes|NumTasks|MinMemoryNode|TimeLimit|Partition|CPUs/Task)=([^\s-]+)"


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    yield from running(tmp_path_factory.mktemp("slurm"), accounting=False)


def facts(slurm: Slurm, job_id: str) -> dict[str, str]:
    return dict(re.findall(FACTS, slurm.out("scontrol", "-o", "show", "job", job_id)))


def test_a_script_is_the_same_job_as_by_sbatch(slurm: Slurm, tmp_path: Path, eventually: Eventually) -> None:
    bench = SlurmBench(slurm, tmp_path)
    script = bench.workspace / "pair.sbatch"
    script.write_text(SCRIPT, encoding="utf-8")
    client = bench.client()
    made = convert(SCRIPT, path="pair.sbatch", home=str(bench.workspace), args=("seven",))
    spec = draft(Request.model_validate(made.request), workspace=str(bench.workspace))
    sent = client.submit(Submission(name="pair-x-a1-00000000", fingerprint="0" * 8, owner="kim", spec=spec))
    ref = Ref("pair-x-a1-00000000", sent.cluster_job_id)
    eventually(lambda: client.observe([ref])[ref.name].phase in ENDED, within_s=40)
    assert client.observe([ref])[ref.name].phase is Phase.succeeded
    log = client.logs(ref).text
    assert sorted(log.splitlines()) == [f"task {n} of 4 with seven" for n in range(4)]
    own = facts(slurm, slurm.sbatch("--hold", str(script), cwd=bench.workspace))
    assert facts(slurm, sent.cluster_job_id) == own
    slurm.clear()
