"""Batch scripts and `sbatch` lines: which lines count, what they come to for one node, what is passed through."""

from __future__ import annotations

from pathlib import PurePath
from typing import Any

import pytest

from agent.native import Converted, convert, recognise
from agent.native.sbatch_figures import mebibytes, seconds
from agent.yamlfile import UserFileError
from states.spec import Request, draft


def script(*lines: str, body: str = "srun python train.py\n", first: str = "#!/bin/bash") -> str:
    return "\n".join([first, *(f"#SBATCH {line}" for line in lines), "", body])


def made(*lines: str, **given: Any) -> Converted:
    found = convert(script(*lines), path="train.sbatch", **given)
    Request.model_validate(found.request)
    return found


def of_line(*words: str, text: str = "") -> Converted:
    return convert(argv=("sbatch", *words), read=lambda path: text or script(), home="/home/kim")


class TestWhichLinesCount:
    def test_long_short_joined_and_with_comments(self) -> None:
        found = made(
            "--job-name=ner  # a comment", "-N2", "--gres gpu:4", '-A "lab one"', "-c 8", "--time=90"
        )
        assert found.request == {
            "name": "ner", "group": "lab one", "replicas": 2, "gpu": 4, "cpu": 8, "memory_mib": 0,
            "time_limit_s": 5400, "command": ["/bin/bash", "train.sbatch"],
        }  # fmt: skip

    def test_a_line_after_the_first_command_does_not_count(self) -> None:
        text = script("--gres=gpu:1", body="module load cuda\n#SBATCH --gres=gpu:8\n#SBATCH --mem=1T\n")
        assert convert(text, path="a.sh").request["gpu"] == 1
        assert convert(text, path="a.sh").request["memory_mib"] == 0

    def test_a_line_in_a_here_document_does_not_count(self) -> None:
        body = "cat > inner.sh <<'END'\n#!/bin/bash\n#SBATCH --gres=gpu:8\nEND\nbash inner.sh\n"
        assert "gpu" not in convert(script("-c 1", body=body), path="a.sh").request
        assert recognise(f"#!/bin/bash\n{body}", path=PurePath("a.sh")) is None

    @pytest.mark.parametrize(
        "line", ["##SBATCH --gres=gpu:8", "# SBATCH --gres=gpu:8", " #SBATCH --gres=gpu:8"]
    )
    def test_what_only_looks_like_one_does_not_count(self, line: str) -> None:
        text = f"#!/bin/bash\n{line}\n#SBATCH --mem=1G\nsrun x\n"
        assert "gpu" not in convert(text, path="a.sh").request

    def test_blank_and_comment_lines_do_not_end_them(self) -> None:
        text = "#!/bin/sh\n\n# which queue\n   # indented\n#SBATCH --gres=gpu:2\nx\n"
        assert convert(text, path="a.sh").request["gpu"] == 2

    def test_of_the_same_option_the_last_counts(self) -> None:
        assert made("--mem=1G", "--mem=2G").request["memory_mib"] == 2048

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ("# note\n#!/bin/bash\n#SBATCH -N1\nx\n", r"a\.sh:1: .*`#!`"),
            ("#!/bin/bash\r\n#SBATCH -N1\r\nx\r\n", r"a\.sh:1: .*DOS"),
            ('#!/bin/bash\n#SBATCH --comment="open\nx\n', r"a\.sh:2: .*close the quote"),
            ("#!/bin/bash\n#SBATCH hetjob\nx\n", r"a\.sh:2: .*one by one"),
            ("#!/bin/bash\n#SBATCH --mem\nx\n", r"a\.sh:2: --mem lacks its value"),
            ("#!/bin/bash\n#SBATCH -N1 stray\nx\n", r"a\.sh:2: 'stray'"),
        ],
    )
    def test_what_sbatch_refuses_is_refused_with_its_line(self, text: str, said: str) -> None:
        with pytest.raises(UserFileError, match=said):
            convert(text, path="a.sh")


class TestFigures:
    @pytest.mark.parametrize(
        ("lines", "gpu", "kept"),
        [
            (["--gres=gpu:2"], 2, ()),
            (["--gres=gpu"], 1, ("--gres=gpu",)),
            (["--gres=gpu:a100:4"], 4, ("--gres=gpu:a100:4",)),
            (["--gres=nvme:1,gpu:3"], 3, ("--gres=nvme:1,gpu:3",)),
            (["--gpus-per-node=h200:8"], 8, ("--gres=gpu:h200:8",)),
            (["-N4", "--gpus=8"], 2, ("--gpus=8",)),
            (["-N1", "--ntasks=4", "--gpus-per-task=1"], 4, ("--gpus-per-task=1",)),
            (["--gres=nvme:1"], None, ("--gres=nvme:1",)),
        ],
    )
    def test_gpus_are_those_of_one_node(
        self, lines: list[str], gpu: int | None, kept: tuple[str, ...]
    ) -> None:
        found = made(*lines)
        assert found.request.get("gpu") == gpu
        assert tuple(word for word in found.passed_through if "g" in word.split("=")[0]) == kept

    def test_tasks_of_a_node_are_counted_together_and_stay_apart_for_slurm(self) -> None:
        found = made("--nodes=2", "--ntasks-per-node=4", "--cpus-per-task=8")
        assert (found.request["replicas"], found.request["cpu"]) == (2, 32)
        assert set(found.passed_through) == {"--ntasks-per-node=4", "--cpus-per-task=8"}

    def test_tasks_in_all_are_divided_by_the_nodes(self) -> None:
        assert "--ntasks-per-node=4" in made("--nodes=2", "--ntasks=8").passed_through

    def test_how_many_nodes_is_left_to_slurm_where_the_script_leaves_it(self) -> None:
        found = made("--ntasks=8")
        assert "replicas" not in found.request
        assert "--ntasks=8" in found.passed_through
        assert any("--nodes" in note for note in found.notes)

    def test_memory_for_each_core_stays_slurms_own_word(self) -> None:
        found = made("--cpus-per-task=4", "--mem-per-cpu=2G")
        assert found.request["memory_mib"] == 0
        assert found.passed_through == ("--mem-per-cpu=2G",)

    def test_memory_for_each_core_of_a_line_is_added_up(self) -> None:
        assert of_line("-c4", "--mem-per-cpu=2G", "a.sh").request["memory_mib"] == 8192

    @pytest.mark.parametrize(
        ("lines", "cpu", "mib"),
        [
            (["--gres=gpu:8"], 0, 0),
            (["-N2", "--ntasks-per-node=4"], 0, 0),
            (["--exclusive"], 0, 0),
            (["--cpus-per-gpu=8", "--gres=gpu:2", "--mem-per-gpu=4G"], 0, 0),
            (["-c1", "--mem=1G"], 1, 1024),
            (["-c8", "--mem=0"], 8, 0),
        ],
    )
    def test_a_figure_that_no_option_gives_is_the_sites_own(
        self, lines: list[str], cpu: int, mib: int
    ) -> None:
        """0, so that no guess of ours goes over the site's default; what is given is said to be given."""
        request = Request.model_validate(made(*lines).request)
        spec = draft(request, workspace="/data")
        assert (request.cpu, request.memory_mib, spec.cpu, spec.memory_mib) == (cpu, mib, cpu, mib)
        assert spec.stated == ("cpu", "memory_mib")

    def test_a_bare_script_of_several_nodes_runs_once(self) -> None:
        """Without lines of its own it would be one replica for each node, started by srun."""
        bare = of_line("-N2", "a.sh", text="#!/bin/sh\n#SBATCH -J x -o y\nsrun hostname\n")
        assert "replicas" not in bare.request
        assert bare.passed_through == ("--nodes=2",)
        assert any("runs once" in note for note in bare.notes)
        assert of_line("-N2", "--wrap=srun hostname").passed_through == ("--nodes=2",)
        own = of_line("-N2", "a.sh", text=script("-t 5"))
        assert (own.request["replicas"], own.passed_through) == (2, ())

    @pytest.mark.parametrize(
        ("text", "mib"), [("64G", 65536), ("400000", 400000), ("32gb", 32768), ("1.5T", 1572864), ("0", 0)]
    )
    def test_memory(self, text: str, mib: int) -> None:
        assert mebibytes(text) == mib

    @pytest.mark.parametrize(
        ("text", "s"),
        [
            ("30", 1800), ("1:30", 90), ("2:00:00", 7200), ("1-0", 86400), ("2-12:00", 216000),
            ("1-00:30:05", 88205), ("UNLIMITED", 0),
        ],
    )  # fmt: skip
    def test_time(self, text: str, s: int) -> None:
        assert seconds(text) == s

    def test_no_limit_is_passed_through_as_it_is(self) -> None:
        assert "--time=UNLIMITED" in made("--time=UNLIMITED").passed_through


class TestPassedThrough:
    def test_every_option_without_a_field_goes_on(self) -> None:
        lines = ["--constraint=a&b", "--qos=high", "--exclusive", "-x n7", "--mail-type=END", "--requeue"]
        assert made(*lines).passed_through == (
            "--constraint=a&b", "--qos=high", "--exclusive", "--exclude=n7", "--mail-type=END", "--requeue",
        )  # fmt: skip

    def test_an_array_goes_on_with_a_note(self) -> None:
        found = made("--array=0-11%4")
        assert found.passed_through == ("--array=0-11%4",)
        assert any("--array" in note and "one run" in note for note in found.notes)

    def test_the_log_and_the_name_are_watchkeepers_own_and_noted(self) -> None:
        found = made("--output=logs/%j.out", "-e err", "--job-name=My_Run")
        assert found.passed_through == ()
        assert found.request["name"] == "my-run"
        assert sum("left out" in note for note in found.notes) == 2

    def test_account_and_partition_are_the_group(self) -> None:
        assert made("-A lab", "-p gpu").request["group"] == "lab/gpu"
        assert made("-p gpu").request["group"] == "/gpu"
        several = made("-A lab", "-p gpu,big")
        assert "group" not in several.request
        assert several.passed_through == ("--account=lab", "--partition=gpu,big")

    def test_the_folder_is_the_workspace(self) -> None:
        assert made("--chdir=/data/run").request["workspace"] == "/data/run"


class TestCommand:
    def test_the_script_itself_with_its_shell_and_its_words(self) -> None:
        text = script("-N1", first="#!/bin/bash -l")
        found = convert(text, path="jobs/a.sh", home="/home/kim", args=("--lr", "1e-4"))
        assert found.request["command"] == ["/bin/bash", "-l", "/home/kim/jobs/a.sh", "--lr", "1e-4"]

    def test_one_that_can_be_run_is_run(self) -> None:
        assert made("-N1", executable=True).request["command"] == ["train.sbatch"]

    def test_a_line_beats_the_script(self) -> None:
        found = of_line(
            "--gres=gpu:8", "-p", "big", "a.sh", "seed=1", text=script("--gres=gpu:1", "-p small")
        )
        assert (found.request["gpu"], found.request["group"]) == (8, "/big")
        assert found.request["command"] == ["/bin/bash", "/home/kim/a.sh", "seed=1"]

    def test_wrap_is_a_line_for_a_shell(self) -> None:
        found = of_line("-N1", "--wrap=python train.py && echo done")
        assert found.request["command"] == "python train.py && echo done"

    def test_a_line_without_a_script_is_refused(self) -> None:
        with pytest.raises(UserFileError, match="names no script"):
            of_line("-N1")

    def test_a_script_that_cannot_be_read_is_refused(self) -> None:
        with pytest.raises(UserFileError, match="cannot be read"):
            convert(argv=("sbatch", "missing.sh"))


def test_what_backs_a_field_is_told() -> None:
    found = made("--gres=gpu:a100:4", "-N2", "--ntasks-per-node=4", "--cpus-per-task=8")
    assert found.backing == {
        "gpu": ("--gres=gpu:a100:4",),
        "replicas": ("--ntasks-per-node=4",),
        "cpu": ("--cpus-per-task=8",),
    }
