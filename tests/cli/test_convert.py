"""`wk convert`, and what people have as the request of `wk run` and `wk submit`; a submit to a fake Brain++."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from agent.requestfile import request_from
from agent.service import Refusal
from agent.yamlfile import UserFileError
from states.spec import Request
from tests.cli.program import Wk
from tests.clusters.brainpp_bench import BrainppBench

SCRIPT = (
    "#!/bin/bash\n#SBATCH -J ner\n#SBATCH --gres=gpu:a100:2\n#SBATCH --constraint=big\nsrun python train.py\n"
)
RJOB = ("rjob", "submit", "--name=ner", "--image=r/x:1", "--host-network=true", "--", "python", "a b.py")
SECRET = "AKIA" + "Q3EGRZT7XBNVJW5D"
"""Shaped like a key, and none."""
CLUSTERS = {"local": "local", "big": "slurm"}


def made(
    file: Path | None = None, *, clusters: Any = CLUSTERS, cwd: Path = Path("/somewhere"), **given: Any
) -> Request:
    command = given.pop("command", None)
    told: list[str] = given.pop("told", [])
    return request_from(
        file, flags=given, command=command, default_workspace=None, cwd=cwd, clusters=clusters,
        default_cluster="local", tell=told.append,
    )  # fmt: skip


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "train.sbatch"
    path.write_text(SCRIPT, encoding="utf-8")
    return path


class TestARequestFromWhatIsThere:
    def test_a_batch_script_goes_to_the_slurm_that_is_configured(self, script: Path, tmp_path: Path) -> None:
        told: list[str] = []
        request = made(script, cwd=tmp_path, told=told)
        assert (request.cluster, request.gpu, request.name) == ("big", 2, "ner")
        assert request.extra_args == ("--gres=gpu:a100:2", "--constraint=big")
        assert request.command == ("/bin/bash", str(script))
        assert request.workspace == str(tmp_path)
        assert told

    def test_flags_go_over_it_and_take_the_words_behind_a_figure_with_them(self, script: Path) -> None:
        request = made(script, gpu=1, name="other")
        assert (request.gpu, request.name) == (1, "other")
        assert request.extra_args == ("--constraint=big",)

    def test_words_after_the_dashes_are_those_of_the_script(self, script: Path) -> None:
        assert made(script, command=("--lr", "1")).command[-2:] == ("--lr", "1")

    def test_an_sbatch_line_reads_its_script(self, script: Path, tmp_path: Path) -> None:
        request = made(command=("sbatch", "--mem=4G", "train.sbatch", "x"), cwd=tmp_path)
        assert (request.gpu, request.memory_mib) == (2, 4096)
        assert request.command == ("/bin/bash", str(script), "x")

    def test_a_script_that_can_be_run_is_run(self, script: Path) -> None:
        script.chmod(0o755)
        assert made(script).command == (str(script),)

    def test_without_a_cluster_of_its_kind_it_is_refused(self, script: Path) -> None:
        with pytest.raises(UserFileError, match=r"kind slurm.*configure one under `clusters:`"):
            made(script, clusters={"local": "local"})
        with pytest.raises(UserFileError, match="choose by --cluster: a, b"):
            made(script, clusters={"local": "local", "a": "slurm", "b": "slurm"})
        assert made(script, clusters={"a": "slurm", "b": "slurm"}, cluster="b").cluster == "b"

    def test_a_script_that_submits_nothing_is_told_how_to_run(self, tmp_path: Path) -> None:
        file = tmp_path / "a.sh"
        file.write_text("#!/bin/bash\npython a.py\n", encoding="utf-8")
        with pytest.raises(UserFileError, match=r"wk run -- bash .*a\.sh"):
            made(file)

    def test_a_manifest_brings_its_command(self, tmp_path: Path) -> None:
        file = tmp_path / "job.yaml"
        file.write_text("apiVersion: batch/v1\nkind: Job\n", encoding="utf-8")
        with pytest.raises(UserFileError, match="brings its command"):
            made(file, command=("x",))

    def test_a_fault_of_a_figure_names_where_it_stands(self, script: Path) -> None:
        with pytest.raises(UserFileError, match="after `--`: 'gpu' must be"):
            made(command=("rjob", "submit", "--gpu=-1", "--", "x"), clusters={"b": "brainpp"})

    @pytest.mark.parametrize("line", [f"export KEY={SECRET}", f"#SBATCH --export=ALL,AWS_SECRET={SECRET}"])
    def test_a_credential_anywhere_in_it_is_refused_without_its_value(self, script: Path, line: str) -> None:
        """B4: also in the body, of which the request holds nothing."""
        script.write_text(SCRIPT + line + "\n", encoding="utf-8")
        with pytest.raises(Refusal, match="line 6") as refused:
            made(script)
        assert SECRET not in str(refused.value)
        with pytest.raises(Refusal):
            made(command=("sbatch", str(script)))

    def test_a_credential_among_the_words_is_refused(self) -> None:
        with pytest.raises(Refusal, match="after `--`"):
            made(command=(*RJOB[:3], "-e", f"AWS_SECRET={SECRET}", *RJOB[3:]), clusters={"b": "brainpp"})


class TestConvert:
    def test_what_it_shows_is_the_request_file(self, wk: Wk) -> None:
        (wk.workspace / "train.sbatch").write_text(SCRIPT, encoding="utf-8")
        ran = wk("convert", "train.sbatch")
        assert ran.code == 0, ran.err
        request = Request.model_validate(yaml.safe_load(ran.out))
        assert (request.gpu, request.extra_args) == (2, ("--gres=gpu:a100:2", "--constraint=big"))
        assert "# passed through as they are:" in ran.out
        assert "no memory is given" in ran.out

    def test_of_a_line_as_json(self, wk: Wk) -> None:
        told = wk("convert", "--json", "--", *RJOB).data
        assert told["kind"] == "rjob"
        assert told["request"]["command"] == ["python", "a b.py"]
        assert told["passed_through"] == ["--host-network=true"]

    def test_of_stdin(self, wk: Wk) -> None:
        ran = wk("convert", "-", stdin="ray job submit -- python a.py\n")
        assert yaml.safe_load(ran.out)["command"] == ["python", "a.py"]

    def test_what_it_cannot_convert_says_what_to_do(self, wk: Wk) -> None:
        (wk.workspace / "job.yaml").write_text("command: 'true'\n", encoding="utf-8")
        ran = wk("convert", "job.yaml")
        assert ran.code == 2
        assert "`wk run` takes it as it is" in ran.err

    def test_a_credential_is_refused(self, wk: Wk) -> None:
        ran = wk("convert", "--json", "-", stdin=f"rjob submit -e AWS_SECRET={SECRET} -- x\n")
        assert ran.code == 5
        assert SECRET not in ran.out + ran.err


@pytest.fixture
def brainpp(wk: Wk, tmp_path: Path) -> Iterator[BrainppBench]:
    bench = BrainppBench(tmp_path)
    options = {key: value for key, value in bench.options.items() if key != "secrets"}
    settings = {"clusters": {"brainpp": {**options, "storage": {str(wk.workspace): "gpfs://fs1/kim"}}}}
    config = wk.home / "config" / "config.yaml"
    config.write_text(config.read_text(encoding="utf-8") + json.dumps(settings)[1:-1], encoding="utf-8")
    wk.env |= bench.secrets
    yield bench
    bench.close()


def test_an_rjob_line_is_submitted_as_it_was_meant(wk: Wk, brainpp: BrainppBench) -> None:
    ran = wk("submit", "--", "rjob", "submit", "--name=ner", "--image=r/x:1", "--cpu=1", "--memory=100",
             "--charged-group=team_cpu", "--namespace=lab-a", "--host-network=true", "-e", "SEED=7",
             "--", "sh", "-c", "echo seed $SEED")  # fmt: skip
    assert ran.code == 0, ran.err
    (argv,) = [call["argv"] for call in brainpp.said() if "submit" in call["argv"]]
    assert {"--host-network=true", "--charged-group=team_cpu", "SEED=7", "--image=r/x:1"} <= set(argv)
    assert argv[-3:] == ["sh", "-c", "echo seed $SEED"]
