"""`ray job submit` lines: the entrypoint, what it reserves, its runtime environment."""

from __future__ import annotations

import json
import shlex

import pytest

from agent.clusters.base import Submission
from agent.clusters.ray_options import Options
from agent.clusters.ray_request import body
from agent.native import Converted, convert
from agent.yamlfile import UserFileError
from states.spec import Request, draft


def made(line: str, files: dict[str, str] | None = None) -> Converted:
    return convert(argv=shlex.split(line), read=(files or {}).get)


def sent(found: Converted) -> dict[str, object]:
    """What the driver would send of it."""
    spec = draft(Request.model_validate(found.request), workspace="/data")
    submission = Submission(name="a-1-a1-00000000", fingerprint="00000000", owner="kim", spec=spec)
    return body(submission, Options(address="http://127.0.0.1:1"), script=None)


def test_a_whole_line() -> None:
    found = made(
        "ray job submit --address http://127.0.0.1:8265 --submission-id tune_7 --entrypoint-num-cpus 4"
        " --entrypoint-num-gpus=2 --entrypoint-memory=2147483648 --working-dir ./code --no-wait"
        """ --runtime-env-json '{"env_vars": {"SEED": "1"}, "excludes": ["*.pt"]}' -- python -m tune --lr 1e-3"""
    )
    assert found.request == {
        "name": "tune-7",
        "cpu": 4,
        "gpu": 2,
        "memory_mib": 2048,
        "workspace": "./code",
        "command": ["python", "-m", "tune", "--lr", "1e-3"],
        "env": {"SEED": "1"},
        "extra_args": ['--runtime-env-json={"excludes": ["*.pt"]}'],
    }
    assert {note.split()[0] for note in found.notes} >= {"--address", "--no-wait"}


def test_an_entrypoint_that_reserves_nothing_reserves_nothing() -> None:
    told = sent(made("ray job submit -- python a.py"))
    assert (told["entrypoint_num_cpus"], told["entrypoint_memory"]) == (0, 0)


def test_a_part_of_a_gpu_is_counted_as_one_and_sent_as_a_part() -> None:
    found = made("ray job submit --entrypoint-num-gpus 0.5 -- python a.py")
    assert found.request["gpu"] == 1
    assert sent(found)["entrypoint_num_gpus"] == 0.5


def test_variables_in_front_of_the_entrypoint_are_its_environment() -> None:
    found = made("ray job submit -- PROJECT=tides SEED=2 python a.py --x=1")
    assert found.request["env"] == {"PROJECT": "tides", "SEED": "2"}
    assert found.request["command"] == ["python", "a.py", "--x=1"]


def test_a_single_word_is_a_line_for_a_shell() -> None:
    assert made("ray job submit -- 'python a.py && echo ok'").request["command"] == "python a.py && echo ok"


def test_the_entrypoint_may_stand_without_dashes_and_behind_a_runner() -> None:
    found = made("uv run ray job submit --working-dir . python a.py --verbose")
    assert found.request["command"] == ["python", "a.py", "--verbose"]


def test_a_runtime_environment_in_a_file_with_json_over_it() -> None:
    files = {"env.yaml": "working_dir: s3://bucket/code.zip\nenv_vars: {A: 1, B: 2}\n"}
    found = made("""ray job submit --runtime-env env.yaml --runtime-env-json '{"config": {}}' -- x""", files)
    assert found.request["env"] == {"A": "1", "B": "2"}
    assert "--working-dir=s3://bucket/code.zip" in found.passed_through
    assert json.loads(found.passed_through[-1].partition("=")[2]) == {"config": {}}


def test_an_install_is_noted() -> None:
    found = made("""ray job submit --runtime-env-json '{"pip": ["torch"]}' -- x""")
    assert any("C12" in note for note in found.notes)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("ray job submit --address http://x", "no entrypoint"),
        ("ray job submit --no-wait --", "no entrypoint"),
        ("ray job submit --address", "--address lacks its value"),
        ("ray job submit --runtime-env-json '{a}' -- x", "no JSON object"),
        ("ray job submit --runtime-env gone.yaml -- x", "gone.yaml cannot be read"),
        ("ray job submit --entrypoint-num-gpus two -- x", "takes a number"),
        ("ray job submit --entrypoint-memory 2G -- x", "takes bytes"),
        ("ray job submit --pool big -- x", "--pool is no option that is known"),
    ],
)
def test_what_cannot_be_read_is_refused(line: str, said: str) -> None:
    with pytest.raises(UserFileError, match=said):
        made(line)
