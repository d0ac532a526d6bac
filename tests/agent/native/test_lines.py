"""Which file is what, and the one submit line of a shell file."""

from __future__ import annotations

from pathlib import PurePath

import pytest

from agent.native import convert, recognise
from agent.yamlfile import UserFileError

RJOB = "rjob submit --gpu=1 --image=r/x:1 -- python a.py"


@pytest.mark.parametrize(
    ("name", "text", "kind"),
    [
        ("a.sh", "#!/bin/bash\n#SBATCH -N1\nsrun x\n", "sbatch"),
        ("a.slurm", "#!/bin/bash\nsrun x\n", "sbatch"),
        ("a.sh", f"#!/bin/bash\n{RJOB}\n", "rjob"),
        ("a.sh", "ray job submit -- python a.py", "ray"),
        ("a.sh", "sbatch -N2 job.sh", "sbatch"),
        ("a.yaml", "apiVersion: batch/v1\nkind: Job\n", "kubernetes"),
        ("a.yaml", "apiVersion: v1\nkind: Pod\n", "kubernetes"),
        ("a.yaml", f"command: {RJOB}\n", None),
        ("a.yaml", "command: python a.py\n", None),
        ("a.sh", "#!/bin/bash\npython a.py\n", None),
        ("a.sh", f"echo '{RJOB}'\n", None),
        ("a.sh", f"# {RJOB}\npython a.py\n", None),
    ],
)
def test_a_file_is_known_by_what_stands_in_it(name: str, text: str, kind: str | None) -> None:
    assert recognise(text, path=PurePath(name)) == kind


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        (("rjob", "submit"), "rjob"),
        (("/usr/local/bin/rjob", "submit"), "rjob"),
        (("rjob", "list"), None),
        (("ray", "job", "submit"), "ray"),
        (("uv", "run", "ray", "job", "submit"), "ray"),
        (("ray", "start"), None),
        (("sbatch", "a.sh"), "sbatch"),
        (("python", "a.py"), None),
        ((), None),
    ],
)
def test_words_are_known_by_their_program(words: tuple[str, ...], kind: str | None) -> None:
    assert recognise(argv=words) == kind


def test_variables_that_the_file_sets_are_put_in() -> None:
    text = f"""#!/bin/bash
GROUP=team
IMAGE="registry.example/$GROUP/base:1"
export LR=${{LR:-0.1}}
rjob submit --charged-group=${{GROUP}}_gpu --image=$IMAGE \\
  --gpu=2 \\
  -- bash -c 'python a.py --lr $LR --seed '"{"$"}LR"
"""
    found = convert(text, path="a.sh").request
    assert (found["group"], found["image"], found["gpu"]) == ("team_gpu", "registry.example/team/base:1", 2)
    assert found["command"] == ["bash", "-c", "python a.py --lr $LR --seed 0.1"]


def test_a_word_that_only_the_shell_knows_is_refused_with_its_line() -> None:
    text = (
        "#!/bin/bash\nrjob submit --gpu=$N \\\n  --name=run-$(date +%s) --image=r/x:1 -- python a.py $SEED\n"
    )
    with pytest.raises(UserFileError) as caught:
        convert(text, path="a.sh")
    assert len(caught.value.faults) == 3
    assert "a.sh:2: --gpu=$N: only the shell that runs the file knows it" in caught.value.faults[0]
    assert "wk run --" in caught.value.faults[0]


def test_a_variable_that_is_set_below_or_added_to_is_not_known() -> None:
    for text in (f"{RJOB} $X\nX=1\n", f"X=1\nX+=2\n{RJOB} $X\n", f"if a; then X=1; fi\n{RJOB} $X\n"):
        with pytest.raises(UserFileError, match=r"\$X"):
            convert(text, path="a.sh")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"{RJOB}\n{RJOB}\n", "lines 1, 2"),
        (f"a() {{\n {RJOB}\n}}\nb() {{\n {RJOB}\n}}\na\n", "lines 2, 5"),
        (f"for s in 1 2; do\n {RJOB} $s\ndone\n", "a.sh:2: .*in a loop"),
        ("sbatch -N1 <<END\n#!/bin/bash\nx\nEND\n", "a.sh:1: .*write it to a file"),
    ],
)
def test_several_runs_are_refused(text: str, said: str) -> None:
    with pytest.raises(UserFileError, match=said):
        convert(text, path="a.sh")


def test_what_else_the_file_does_is_noted() -> None:
    found = convert(f"mkdir -p logs\n{RJOB} | tee submit.log\n", path="a.sh")
    assert any("mkdir, tee" in note for note in found.notes)
    assert (
        convert(f"{RJOB} > submit.log 2>&1\n", path="a.sh")
        .notes[-1]
        .startswith("where the line's own output")
    )


def test_the_script_of_a_line_in_a_file_is_read() -> None:
    script = "#!/bin/bash\n#SBATCH --gres=gpu:2\nsrun x\n"
    found = convert("sbatch --mem=4G job.sh\n", path="a.sh", home="/home/kim", read={"job.sh": script}.get)
    assert (found.request["gpu"], found.request["memory_mib"]) == (2, 4096)
    assert found.request["command"] == ["/bin/bash", "/home/kim/job.sh"]


def test_words_for_a_script_are_not_dropped_where_there_is_none() -> None:
    with pytest.raises(UserFileError, match="leave them out"):
        convert(f"{RJOB}\n", path="a.sh", args=("x",))
