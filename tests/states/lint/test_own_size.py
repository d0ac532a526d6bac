"""What a command says of its own size (RULES C4, C9), and the figures that only the run knows."""

from __future__ import annotations

import pytest

from agent.lint import scene
from states.lint.own_size import Said, read
from states.lint.scene import Tree


def said(text: str, **files: str) -> Said:
    tree = Tree({name.replace("_", "."): inside for name, inside in files.items()})
    return read(text, scene(tree=tree))[0]


@pytest.mark.parametrize(
    ("line", "gpu", "replicas"),
    [
        ("torchrun --nproc_per_node=8 t.py", 8, None),
        ("torchrun --nnodes 2 --nproc-per-node 4 t.py", 4, 2),
        ("N=4\ntorchrun --nproc_per_node=$N t.py", 4, None),
        ("python -m torch.distributed.run --nproc_per_node=2 t.py", 2, None),
        ("accelerate launch --num_machines 2 --num_processes 8 t.py", 4, 2),
        ("accelerate launch --num_processes 3 t.py", 3, None),
        ("deepspeed --num_gpus 4 --num_nodes 2 t.py", 4, 2),
        ("CUDA_VISIBLE_DEVICES=2,3 python t.py", 4, None),
        ("python t.py --devices 4", 4, None),
        ("vllm serve m --tensor-parallel-size 4 --pipeline-parallel-size 2", 8, None),
        ("torchrun --nproc_per_node=2 a.py && torchrun --nproc_per_node=4 b.py", 4, None),
    ],
)
def test_a_figure_that_is_given(line: str, gpu: int, replicas: int | None) -> None:
    found = said(line)
    assert (found.gpu, found.replicas, found.uses_gpus) == (gpu, replicas, True)
    assert found.gpu_why


@pytest.mark.parametrize(
    "line",
    [
        "python t.py",
        "torchrun --nproc_per_node=gpu t.py",
        "torchrun --nnodes=1:4 --nproc_per_node=$N t.py",
        "for i in 0 1; do CUDA_VISIBLE_DEVICES=$i python t.py & done; wait",
        "torchrun --nproc_per_node=0 t.py",
        "torchrun --nproc_per_node=99999 t.py",
    ],
)
def test_a_figure_that_only_the_run_knows_is_none(line: str) -> None:
    found = said(line)
    assert (found.gpu, found.replicas, found.uses_gpus) == (None, None, True)


@pytest.mark.parametrize(
    "line", ["gzip -9 a.tar", "java -Xmx4g -jar x.jar", "rsync -a a b", "if then ((", ""]
)
def test_what_shows_no_use_for_a_gpu(line: str) -> None:
    assert not said(line).uses_gpus


def test_the_scripts_that_it_starts_are_read() -> None:
    assert said("bash run.sh", run_sh="torchrun --nproc_per_node=4 t.py\n").gpu == 4
    code = "import lightning as L\nL.Trainer(devices=2, num_nodes=3).fit(m)\n"
    assert said("python t.py", t_py=code)[:1] == (2,)
    assert said("python t.py", t_py=code).replicas == 3


def test_what_is_not_there_is_asked_for() -> None:
    _, wanted = read("bash run.sh", scene(tree=Tree({}, complete=False)))
    assert wanted == ("run.sh",)


@pytest.mark.parametrize(
    ("line", "mib"),
    [
        ("java -Xmx64g -jar x.jar", 65536),
        ("java -Xmx512m -jar x.jar", 512),
        ("java -Xmx1073741824 -jar x.jar", None),
        ("spark-submit --driver-memory 20g x.jar", 20480),
        ("tool --memory-limit 16GiB", 16384),
        ("tool --memory-limit 16", None),
        ("tool --memory-limit auto", None),
        ("tool --memory-limit $M", None),
        ("python t.py", None),
    ],
)
def test_memory_with_its_unit(line: str, mib: int | None) -> None:
    assert said(line).memory_mib == mib
