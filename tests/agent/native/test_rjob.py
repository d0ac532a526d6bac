"""`rjob submit` lines: what has a field, what goes through, what says whose job it is."""

from __future__ import annotations

import shlex

import pytest

from agent.clusters.base import Submission
from agent.clusters.brainpp_argv import Site, submit_argv
from agent.native import Converted, convert
from agent.yamlfile import UserFileError
from states.credentials import Pair
from states.spec import Request, draft

LINE = """rjob submit --name=Ner_Big --gpu=8 --cpu 64 --memory=480000 -P 4 --image=registry.example/team/base:2
 --charged-group=team_gpu --namespace=lab-a --private-machine=group --gang-start=true --host-network=true
 --mount=gpfs://fs1/team:/shared/team gpfs://fs1/kim:/shared/kim -e SEED=1 -e A=x=y
 --custom-resources rdma/mlnx_shared=8 --custom-resources brainpp.cn/fuse=1 --enable-sshd
 -- bash -lc 'cd /shared/kim && python train.py'"""


def made(line: str) -> Converted:
    return convert(argv=shlex.split(line))


def test_a_whole_line() -> None:
    found = made(LINE)
    assert found.request == {
        "gpu": 8,
        "cpu": 64,
        "memory_mib": 480000,
        "replicas": 4,
        "image": "registry.example/team/base:2",
        "mounts": ["gpfs://fs1/team:/shared/team", "gpfs://fs1/kim:/shared/kim"],
        "env": {"SEED": "1", "A": "x=y"},
        "name": "ner-big",
        "group": "lab-a:team_gpu",
        "command": ["bash", "-lc", "cd /shared/kim && python train.py"],
        "extra_args": [
            "--private-machine=group",
            "--gang-start=true",
            "--host-network=true",
            "--custom-resources=rdma/mlnx_shared=8",
            "--custom-resources=brainpp.cn/fuse=1",
            "--enable-sshd",
        ],
    }


def test_the_driver_takes_it_and_says_the_same_again() -> None:
    request = Request.model_validate(made(LINE).request)
    spec = draft(request, workspace="/shared/kim")
    submission = Submission(name="ner-x-a1-00000000", fingerprint="00000000", owner="kim", spec=spec)
    argv = submit_argv(submission, Pair("lab-a", "team_gpu"), Site({"/shared/kim": ""}))
    wanted = {"--gpu=8", "--cpu=64", "--memory=480000", "--replica=4", "--host-network=true", "--enable-sshd"}
    assert wanted <= set(argv)
    assert argv[argv.index("--") :][-3:] == ["bash", "-lc", "cd /shared/kim && python train.py"]


def test_lane_and_priority() -> None:
    found = made("rjob submit --task-type idle --image=r/x:1 -- true")
    assert found.request["lane"] == "idle"
    assert made("rjob submit --priority=9 --image=r/x:1 -- true").request["priority"] == 9


@pytest.mark.parametrize(
    "flag", ["--metadata-name=a", "--predict-only true", "--dry-run=true", "--namespace=lab-a"]
)
def test_what_is_not_the_runs_own_is_left_out_with_a_note(flag: str) -> None:
    found = made(f"rjob submit {flag} --image=r/x:1 -- true")
    assert found.passed_through == ()
    assert any(note.startswith(flag.replace("=", " ").split()[0]) for note in found.notes)


def test_restarts_of_the_platform_go_on_with_a_note() -> None:
    found = made("rjob submit --image=r/x:1 -r onfailure --backoff_limit=3 -- true")
    assert found.passed_through == ("--restart-policy=onfailure", "--backoff_limit=3")
    assert len(found.notes) == 2


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("rjob submit --gpu=1 python train.py", "no command behind `--`"),
        ("rjob submit --gpu=1 --", "no command behind `--`"),
        ("rjob submit --- --task_name=a -- x --- --task_name=b -- y", "several tasks"),
        ("rjob submit --image=x -- a --- --task_name=b -- y", "several tasks"),
        ("rjob submit --gpu=eight -- x", "--gpu takes a number, not 'eight'"),
        ("rjob submit stray --gpu=1 -- x", "'stray' belongs to no flag"),
        ("rjob submit -e NAME -- x", "NAME=VALUE"),
    ],
)
def test_what_cannot_be_one_run_is_refused(line: str, said: str) -> None:
    with pytest.raises(UserFileError, match=said):
        made(line)
