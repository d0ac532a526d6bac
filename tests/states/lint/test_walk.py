"""The walk: through launchers, functions and inner texts, with the lines of the file."""

from __future__ import annotations

import pytest

from agent.lint import scene
from states.lint.scene import Tree
from states.lint.walk import Walker
from tests.states.lint.judged import findings, of


def programs(text: str, files: dict[str, str | None] | None = None) -> list[str]:
    """`name@line` of what really runs, set-up left out."""
    walker = Walker(scene(tree=Tree(files) if files is not None else None))
    walker.walk_text(text, "job.sh")
    return [f"{run.args[0].text}@{run.line}" for run in walker.walked().runs if run.python]


@pytest.mark.parametrize(
    "text",
    [
        "python t.py",
        "srun -N 2 --ntasks-per-node=4 -l python t.py",
        "srun --label torchrun --nproc_per_node 4 t.py",
        "timeout 5h nice -n 5 env A=1 B=2 python -u t.py",
        "mpirun -np 4 --allow-run-as-root python t.py",
        "apptainer exec --nv --bind /a:/b img.sif python t.py",
        "conda run -n env python t.py",
        "uv run --frozen python t.py",
        "accelerate launch --multi_gpu --num_processes 4 t.py",
        "deepspeed --hostfile h t.py --deepspeed",
        "tune run --nproc_per_node 4 t.py",
        "bash -lc 'cd x && exec python t.py'",
        "sbatch --wrap 'python t.py'",
        "ray job submit --address x -- python t.py",
        "rjob submit --gpu=8 -e A=1 -- bash -exc 'python t.py'",
        "P=python\n$P t.py",
        'CMD="python t.py --x 1"\n$CMD',
        'A=(python t.py)\n"${A[@]}"',
        "alias p=python\np t.py",
        "if [ -f x ]; then\n python t.py\nfi",
        "ssh host 'python t.py'",
        'eval "python t.py"',
        "bash <<EOF\npython t.py\nEOF",
    ],
)
def test_the_program_is_found(text: str) -> None:
    assert [name.split("@")[0] for name in programs(text)] == ["t.py"]


def test_lines_are_those_of_the_file() -> None:
    text = 'X="torchrun \\\n  --nnodes 1 \\\n  "\nsrun bash -c "\necho a\n$X t.py\npython b.py"\n'
    assert programs(text) == ["t.py@6", "b.py@7"]


def test_a_function_runs_when_it_is_called() -> None:
    assert programs("f() {\n python $1\n}\ng() { python b.py; }\nf a.py\n") == ["a.py@2"]


def test_scripts_are_followed_below_the_folder() -> None:
    files: dict[str, str | None] = {"run.sh": "cd sub\nbash go.sh", "sub/go.sh": "python t.py"}
    assert programs("bash run.sh", files) == ["t.py@1"]


def test_a_file_that_the_job_writes_is_read() -> None:
    text = "cat > a.py <<EOF\nimport os\nos.system('pip install x')\nEOF\npython -u a.py\n"
    assert of("package_install", text) == {"refuse 3"}


def test_what_is_wanted_is_said() -> None:
    from agent.lint import source_of
    from states.lint.lint import lint

    about = scene(tree=Tree({}, complete=False, root="/ws"))
    assert "sub/t.py" in lint(source_of("job.sh", "cd sub\npython -u t.py"), about).wanted


def test_an_endless_recursion_ends() -> None:
    assert findings("f() { f; g; }\ng() { f; }\nf\n") == []
