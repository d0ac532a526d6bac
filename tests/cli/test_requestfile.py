"""A request from a file, flags and words: which goes over which, and where a fault is said to be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agent.requestfile import pairs, request_from
from agent.yamlfile import UserFileError
from states.spec import Request, StopCondition


def made(file: Path | None = None, *, cwd: Path = Path("/somewhere"), **given: Any) -> Request:
    flags = {n: value for n, value in given.items() if n not in ("settings", "command", "default", "env")}
    return request_from(
        file,
        flags=flags,
        env=given.get("env"),
        settings=given.get("settings", ()),
        command=given.get("command"),
        default_workspace=given.get("default"),
        cwd=cwd,
    )


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "job.yaml"
    path.write_text(
        "command: python train.py\ngpu: 2\nlane: idle\npolicy: {poll_s: 5, hung_s: 60}\n", encoding="utf-8"
    )
    return path


def test_flags_go_over_the_file(file: Path) -> None:
    request = made(file, gpu=4, lane=None, outputs=[], insist=False)
    assert (request.gpu, request.lane, request.outputs, request.insist) == (4, "idle", (), False)
    assert request.command == ("bash", "-c", "python train.py")


def test_a_zero_is_given_and_not_left_out(file: Path) -> None:
    assert made(file, gpu=0).gpu == 0


def test_variables_go_over_those_of_the_file(file: Path) -> None:
    file.write_text("command: 'true'\nenv: {A: 1, B: 2}\n", encoding="utf-8")
    assert made(file, env={"B": "3", "C": "4"}).env == {"A": "1", "B": "3", "C": "4"}
    assert made(command=("true",), env={"C": "4"}).env == {"C": "4"}


def test_the_words_after_the_dashes_are_argv_and_a_single_one_a_line_for_bash(file: Path) -> None:
    assert made(file, command=("python", "a b.py")).command == ("python", "a b.py")
    assert made(command=("echo one; echo two",)).command == ("bash", "-c", "echo one; echo two")


def test_set_reaches_every_field_and_into_mappings(file: Path) -> None:
    wanted = ["max_restarts=0", "policy.poll_s=7", "stop_when=[{step: 100}, {wall_s: 60}]", "purpose=1.10"]
    request = made(file, settings=wanted)
    assert request.max_restarts == 0
    assert request.policy == {"poll_s": 7, "hung_s": 60}
    assert request.stop_when == (StopCondition(step=100), StopCondition(wall_s=60))
    assert request.purpose == "1.10"


def test_every_fault_is_told_with_its_flag_or_its_line(file: Path) -> None:
    file.write_text("command: 'true'\nmemroy_mib: 5\n", encoding="utf-8")
    with pytest.raises(UserFileError) as caught:
        made(file, gpu=-1, lane="fast", settings=["max_restart=3"])
    told = "\n".join(caught.value.faults)
    assert f"{file}:2: unknown field 'memroy_mib'; did you mean 'memory_mib'?" in told
    assert "--gpu: 'gpu' must be" in told
    assert "--lane: 'lane' must be one of normal, idle" in told
    assert "--set max_restart: unknown field 'max_restart'; did you mean 'max_restarts'?" in told


def test_the_workspace_is_beside_the_file_or_where_the_person_stands(file: Path, tmp_path: Path) -> None:
    assert made(file).workspace == "/somewhere"
    assert made(file, default=Path("/data")).workspace == "/data"
    assert made(file, workspace="sub").workspace == str(tmp_path / "sub")
    assert made(command=("true",), workspace="sub").workspace == "/somewhere/sub"


def test_nothing_at_all_is_said_with_an_example() -> None:
    with pytest.raises(UserFileError, match=r"wk run -- python train\.py"):
        made()


@pytest.mark.parametrize("text", ["NAME", "=x", ""])
def test_a_pair_has_a_name_and_a_value(text: str) -> None:
    with pytest.raises(UserFileError, match="NAME=VALUE"):
        pairs([text], "--env")
    assert pairs(["A=1", "B=x=y", "C="], "--env") == {"A": "1", "B": "x=y", "C": ""}
