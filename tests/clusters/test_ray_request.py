"""What a submission becomes for Ray, and that the shell at the other end reads it as it was written."""

from __future__ import annotations

import json
import os
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from agent.clusters import ray_runs, wrapper
from agent.clusters.base import Refused, Submission
from agent.clusters.ray_options import Options
from agent.clusters.ray_request import body, check, is_ours, note, rendered, request_of, variables
from states.spec import Spec
from tests.clusters.bench import HOSTILE

HERE = Options(address="http://127.0.0.1:1", workspace_visible=True)
BLIND = Options(address="http://127.0.0.1:1")
NOW = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)


def sent(options: Options = BLIND, script: Path | None = None, **fields: Any) -> dict[str, Any]:
    return body(submission(**fields), options, script=script)


def submission(**fields: Any) -> Submission:
    spec = Spec(**{"command": ("true",), "workspace": "/tmp", **fields})
    return Submission(name="job-a0-12345678", fingerprint="12345678", owner="me", spec=spec)


@pytest.mark.parametrize("first", ["printf", "exit", "A=1", "if", "~", "-x", "#"])
def test_every_word_reaches_the_program_as_it_was_written(tmp_path: Path, first: str) -> None:
    """As Ray runs it: a line for /bin/sh. The program prints the words it got."""
    program = tmp_path / first
    program.write_text('#!/bin/sh\nfor word; do printf "%s\\0" "$word"; done\n')
    program.chmod(0o755)
    words = [HOSTILE, "", " ", "--", "*", "a\n\nb", "$(exit 3)", "'", '"', "\\"]
    line = sent(command=(first, *words))["entrypoint"]
    env = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    ran = subprocess.run(line, shell=True, cwd=tmp_path, env=env, capture_output=True, check=True)
    assert ran.stdout.decode() == "".join(f"{word}\0" for word in words)


def test_a_visible_workspace_is_where_the_wrapped_command_runs(tmp_path: Path) -> None:
    workspace = tmp_path / "a 'work' space"
    workspace.mkdir()
    script = wrapper.stage(workspace)
    assert script == ray_runs.script_at(str(workspace))
    made = sent(HERE, script, command=("sh", "-c", "pwd; exit 5"), workspace=str(workspace), time_limit_s=9)
    ran = subprocess.run(made["entrypoint"], shell=True, cwd="/")
    folder = wrapper.run_dir(workspace, "job-a0-12345678")
    assert ran.returncode == 5
    assert (folder / "log").read_text() == f"{workspace}\n"
    assert "timeout --kill-after=30 9 sh" in made["entrypoint"]
    record = {"submission_id": "job-a0-12345678", "metadata": made["metadata"]}
    assert ray_runs.folder_of(record) == folder
    run = ray_runs.facts(folder)["run"]
    assert (run["exit_code"], run["id"]) == (5, "")


@pytest.mark.parametrize("ends", ["wait", "exec 2>&-"])
def test_nothing_outlives_the_process_that_ray_started(ends: str) -> None:
    """Ray starts the line in a session of its own; the pipe closes when the last process of it is gone."""
    line = sent(command=("sh", "-c", f"sleep 600 & echo started; {ends}"))["entrypoint"]
    with subprocess.Popen(line, shell=True, start_new_session=True, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"started\n"
        if ends == "wait":
            process.kill()
        assert process.stdout.read() == b""


def test_what_is_withdrawn_runs_nothing_and_what_runs_is_not_withdrawn(tmp_path: Path) -> None:
    script, folder = wrapper.stage(tmp_path), wrapper.run_dir(tmp_path, "job-a0-12345678")
    folder.mkdir()
    assert ray_runs.withdraw(folder, NOW)
    assert not ray_runs.withdraw(folder, NOW)
    made = sent(HERE, script, command=("touch", "ran"), workspace=str(tmp_path))
    assert subprocess.run(made["entrypoint"], shell=True, stderr=subprocess.DEVNULL).returncode == 98
    assert not (tmp_path / "ran").exists()
    record = {"submission_id": "job-a0-12345678", "metadata": made["metadata"]}
    assert ray_runs.facts(ray_runs.folder_of(record)) == {"run_expected": True, "withdrawn": NOW}
    wrapper.forget(folder)
    assert subprocess.run(made["entrypoint"], shell=True).returncode == 0
    assert not ray_runs.withdraw(folder, NOW)
    assert ray_runs.withdrawn_at(folder) is None
    assert sorted(path.name for path in folder.iterdir()) == ["exit.json", "heartbeat", "log", "start"]


@pytest.mark.parametrize(
    "folder", ["/etc", "/tmp/.watchkeeper/another", "relative/.watchkeeper/job", "", None, 3]
)
def test_a_folder_that_is_not_the_runs_own_is_not_followed(folder: Any) -> None:
    record = {"submission_id": "job", "metadata": {ray_runs.FOLDER: folder}}
    assert ray_runs.folder_of(record) is None
    assert ray_runs.facts(None) == {}


def test_figures_names_and_metadata() -> None:
    made = sent(cpu=2.5, gpu=3, memory_mib=100, extra_args=("--entrypoint-resources", '{"licence": 1}'))
    assert made["submission_id"] == "job-a0-12345678"
    assert (made["entrypoint_num_cpus"], made["entrypoint_num_gpus"]) == (2.5, 3)
    assert made["entrypoint_memory"] == 100 << 20
    assert all(isinstance(value, str) for value in made["metadata"].values())
    assert request_of(made) == {"CPU": 2.5, "GPU": 3, "memory": 100 << 20, "licence": 1}
    assert is_ours(made, "12345678", "me")
    assert is_ours(made, "", "")
    assert not is_ours(made, "12345678", "you")
    assert not is_ours({"metadata": None}, "12345678", "me")
    assert request_of({"metadata": {"watchkeeper_request": "[1"}}) == {}


def test_switches_of_rays_own_command_are_passed_on() -> None:
    given = (
        '--runtime-env-json={"env_vars": {"A": "1", "B": "2"}, "conda": "there"}',
        "--metadata-json", '{"team": "x"}', "--entrypoint-num-cpus", "0", "--working-dir=s3://bucket/a.zip",
    )  # fmt: skip
    made = sent(env={"B": "3"}, extra_args=given)
    assert made["runtime_env"]["env_vars"] | {"A": "1", "B": "3"} == made["runtime_env"]["env_vars"]
    assert (made["runtime_env"]["conda"], made["runtime_env"]["working_dir"]) == (
        "there",
        "s3://bucket/a.zip",
    )
    assert (made["metadata"]["team"], made["entrypoint_num_cpus"]) == ("x", 0)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--address=http://other",), "cannot be passed on"),
        (("python",), "no switch"),
        (("--entrypoint-num-gpus", "many"), "cannot be read"),
        (("--entrypoint-num-gpus", '"2"'), "not what it takes"),
        (("--runtime-env-json", "[]"), "not what it takes"),
        (("--runtime-env-json", '{"pip": ["x"]}'), "installs"),
        (("--runtime-env-json", '{"uv": "requirements.txt"}'), "installs"),
        (("--runtime-env-json", '{"conda": {"dependencies": []}}'), "installs"),
        (("--runtime-env-json", '{"conda": "environment.yml"}'), "installs"),
        (("--working-dir", "."), "not uploaded"),
        (("--metadata-json", '{"watchkeeper_owner": "you"}'), "own"),
    ],
)
def test_other_extra_arguments_are_refused(words: tuple[str, ...], why: str) -> None:
    with pytest.raises(Refused, match=why):
        sent(extra_args=words)


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"command": ()}, "no command"),
        ({"command": ("a\0b",)}, "NUL"),
        ({"env": {"A B": "1"}}, "name of a variable"),
        ({"env": {"A": "x${HOME}y"}}, "Ray would replace"),
        ({"replicas": 2}, "num_workers"),
        ({"lane": "idle"}, "no idle lane"),
        ({"image": "registry/x"}, "image_uri"),
        ({"mounts": ("a:b",)}, "mounts"),
        ({"workspace": "/no/such/folder"}, "not a folder"),
    ],
)
def test_what_ray_cannot_do_is_refused(fields: dict[str, Any], why: str) -> None:
    with pytest.raises(Refused, match=why):
        check(submission(**fields), HERE)


def test_a_name_that_would_be_no_file_is_refused() -> None:
    with pytest.raises(Refused, match="id here"):
        check(submission().model_copy(update={"name": "a/b"}), BLIND)


def test_a_dollar_is_sent_as_a_variable_that_holds_one() -> None:
    spec = Spec(env={"A": "1$x", "PATH": "/mine"}, environment="/env/")
    made = variables(spec, "j")
    assert made["A"] == "1${0DOLLAR}x"
    assert made["PATH"] == "/env/bin:/mine"
    assert min(made) == "0DOLLAR"
    assert variables(Spec(environment="/env"), "j")["PATH"] == "/env/bin:${PATH}"
    assert "0DOLLAR" not in variables(Spec(env={"A": "1"}), "j")


def test_nodes_to_stay_away_from_become_a_selector() -> None:
    for ids, wanted in ((["a"], "!a"), (["a", "b"], "!in(a,b)")):
        made = body(submission(), BLIND, script=None, excluded=ids)
        assert made["entrypoint_label_selector"] == {"ray.io/node-id": wanted}


def test_what_is_shown_hides_values_and_says_what_means_nothing() -> None:
    spec = Spec(command=("true",), env={"TOKEN": "hush"}, group="lab", priority=3)
    made = body(submission().model_copy(update={"spec": spec}), BLIND, script=None)
    shown = rendered(made, spec, BLIND)
    assert "hush" not in shown
    assert "TOKEN" in shown
    assert json.dumps(made).count("hush") == 1
    assert shown.endswith(note(made, spec, BLIND))
    assert "no groups" in note(made, spec, BLIND)
    assert note(made, Spec(), HERE) == ""
    assert "none is left out" in note(made, Spec(exclude_nodes=("a",)), HERE)


def test_an_image_is_started_where_nodes_can() -> None:
    images = BLIND.model_copy(update={"image_uri": True})
    check(submission(image="registry/x"), images)
    assert sent(images, image="registry/x")["runtime_env"]["image_uri"] == "registry/x"
