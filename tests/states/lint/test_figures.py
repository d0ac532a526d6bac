"""Figures that contradict each other, and the many ways to write ones that do not (RULES C3)."""

from __future__ import annotations

import pytest

from tests.states.lint.judged import NOTHING, of, python


@pytest.mark.parametrize(
    ("line", "gpu", "replicas"),
    [
        ("torchrun --nproc_per_node=8 t.py", 4, 1),
        ("torchrun --nproc-per-node 2 t.py", 4, 1),
        ("torchrun --nnodes 4 --nproc_per_node 4 t.py", 4, 2),
        ("python -m torch.distributed.launch --nproc_per_node=8 t.py", 4, 1),
        ("srun bash -c 'torchrun --standalone --nproc_per_node=2 t.py'", 1, 1),
        ("accelerate launch --num_processes 8 t.py", 4, 1),
        ("deepspeed --num_gpus=2 t.py", 4, 1),
        ("mpirun -np 8 python -u t.py", 4, 1),
        ("CUDA_VISIBLE_DEVICES=0,1,2,3,4,5 python -u t.py", 4, 1),
        ("CUDA_VISIBLE_DEVICES=0,1 torchrun --nproc_per_node=4 t.py", 4, 1),
        ("vllm serve /ws/m --tensor-parallel-size 8", 4, 1),
        ("lm_eval --model hf --output_path o --tasks x", 4, 1),
        ("rjob submit --gpu=8 -- torchrun --nproc_per_node=4 t.py", 4, 1),
    ],
)
def test_a_contradiction_is_asked_about(line: str, gpu: int, replicas: int) -> None:
    assert of("figures_contradict", line, gpu=gpu, replicas=replicas) == {"ask 1"}


@pytest.mark.parametrize(
    ("line", "gpu", "replicas"),
    [
        ("torchrun --nproc_per_node=4 t.py", 4, 1),
        ("torchrun --nproc_per_node=gpu t.py", 4, 1),
        ("torchrun --nnodes=1:2 --nproc_per_node=4 t.py", 4, 1),
        ("torchrun --nnodes $SLURM_NNODES --nproc_per_node $SLURM_GPUS_ON_NODE t.py", 4, 2),
        ("N=4\ntorchrun --nproc_per_node=$N t.py", 4, 1),
        ("N=$(nvidia-smi -L | wc -l)\ntorchrun --nproc_per_node=$N t.py", 4, 1),
        ("G=4\naccelerate launch --num_processes $((2 * G)) --num_machines 2 t.py", 4, 2),
        (
            "CUDA_VISIBLE_DEVICES=0,1 torchrun --nproc_per_node=2 a.py & torchrun --nproc_per_node=2 b.py",
            4,
            1,
        ),
        ("python -u t.py", 4, 1),
        ("mpirun -np 64 ./solver", 0, 1),
        ("torchrun --nproc_per_node=2 t.py", 0, 1),
        ("rjob submit --gpu=8 -P 2 -- torchrun --nproc_per_node=8 --nnodes=2 t.py", 4, 1),
        ("lm_eval --model vllm --output_path o", 4, 1),
        ("accelerate launch -m lm_eval --model hf --output_path o", 4, 1),
    ],
)
def test_what_agrees_or_cannot_be_known(line: str, gpu: int, replicas: int) -> None:
    assert of("figures_contradict", line, gpu=gpu, replicas=replicas) == NOTHING


def test_a_launcher_that_is_started_once_a_task() -> None:
    head = "#!/bin/bash\n#SBATCH --time=1\n#SBATCH --ntasks-per-node=4\n"
    line = "torchrun --nproc_per_node=4 t.py\n"
    assert of("figures_contradict", head + "srun " + line) == {"ask 4"}
    assert of("figures_contradict", head + "srun --ntasks-per-node=1 " + line) == NOTHING
    assert of("figures_contradict", head + line) == NOTHING


def test_lightning() -> None:
    code = "import lightning as pl\npl.Trainer(devices=8,\n num_nodes=1)\npl.Trainer(devices=-1)\n"
    assert python("figures_contradict", code) == {"ask 2"}
