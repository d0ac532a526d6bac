"""The script and arguments that a spec becomes, and what a failed submit means; no Slurm is needed."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from agent.clusters import wrapper
from agent.clusters.base import Refused, Submission, Unclear, Unreachable
from agent.clusters.run import Ran
from agent.clusters.slurm import SlurmCluster
from agent.clusters.slurm_answers import with_times
from agent.clusters.slurm_commands import Commands
from agent.clusters.slurm_directives import directives
from agent.clusters.slurm_options import Options
from agent.clusters.slurm_script import agrees, check, comment, native
from states.spec import Request, Spec, draft

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)


# --- the script --------------------------------------------------------------------------------------------


def sent(spec: Spec, *, script: str = "", **options: Any) -> tuple[tuple[str, ...], str]:
    submission = Submission(name="job-a0-0123abcd", fingerprint="0123abcd", owner="me", spec=spec)
    made = Options.model_validate(options)
    check(submission, made)
    told = native(submission, made, wrapper="/w/wrapper.sh", folder="/w/.watchkeeper/job", user_script=script)
    return told.words, told.script


def spec(*command: str, **changes: Any) -> Spec:
    return Spec(command=command or ("true",), workspace="/w", **changes)


def test_figures_become_arguments() -> None:
    words, script = sent(
        spec("python", "train.py", gpu=8, cpu=63.5, memory_mib=500_000, replicas=4, time_limit_s=90, lane="idle",
             group="lab/big", exclude_nodes=("n1", "n2"), extra_args=("--constraint=a&b",)),
        gres="gpu:h200", idle={"qos": "spare"}, partition="usual", requeue=True,
    )  # fmt: skip
    assert set(words) >= {
        "--nodes=4", "--ntasks-per-node=1", "--cpus-per-task=64", "--mem=500000M", "--gres=gpu:h200:8", "--time=2",
        "--partition=big", "--account=lab", "--qos=spare", "--exclude=n1,n2", "--requeue", "--parsable",
    }  # fmt: skip
    assert words[-1] == "--constraint=a&b"
    assert "srun --kill-on-bad-exit=1 python train.py" in script
    assert "MASTER_ADDR" in script


def test_a_container_goes_around_the_command() -> None:
    words: dict[str, Any] = {"container": ["apptainer", "exec", "--nv"]}
    _, script = sent(spec("python", "x.py", image="a b.sif", mounts=("/data:/data",)), **words)
    assert (
        shlex.join(["apptainer", "exec", "--nv", "--bind", "/data:/data", "a b.sif", "python", "x.py"])
        in script
    )


def started(folder: Path, turn: str, command: str, **env: str) -> subprocess.Popen[bytes]:
    """The script as Slurm starts it: SLURM_JOB_ID and, of a requeue, SLURM_RESTART_COUNT."""
    submission = Submission(
        name="job-a0-0123abcd",
        fingerprint="0123abcd",
        owner="me",
        spec=Spec(command=("sh", "-c", f'echo "$TURN" >>turns; {command}'), workspace="/w"),
    )
    wrapped = wrapper.stage(folder)
    told = native(submission, Options(), wrapper=str(wrapped), folder=str(folder / "a run's record"))
    given = {"PATH": os.environ["PATH"], "TURN": turn, "WATCHKEEPER_PATIENCE_S": "1", **env}
    return subprocess.Popen(["sh", "-c", told.script], cwd=folder, env=given, start_new_session=True)


def turns(folder: Path) -> list[str]:
    return (folder / "turns").read_text().split()


@pytest.mark.parametrize(
    ("ends", "second", "code", "ran"),
    [
        ("exit 0", {"SLURM_JOB_ID": "7"}, 0, ["1"]),
        ("exit 3", {"SLURM_JOB_ID": "7"}, 3, ["1"]),
        ("kill -TERM $$", {"SLURM_JOB_ID": "7"}, 143, ["1", "2"]),
        ("exit 0", {"SLURM_JOB_ID": "8"}, wrapper.REFUSED_CODE, ["1"]),
        ("exit 0", {"SLURM_JOB_ID": "77"}, wrapper.REFUSED_CODE, ["1"]),
        ("exit 0", {"SLURM_JOB_ID": "7", "SLURM_RESTART_COUNT": "1"}, 0, ["1", "2"]),
    ],
    ids=["it had ended well", "it had failed", "it was aborted", "another job", "an id alike", "a requeue"],
)
def test_what_is_started_again_is_told_from_a_double(
    tmp_path: Path, ends: str, second: dict[str, str], code: int, ran: list[str]
) -> None:
    started(tmp_path, "1", ends, SLURM_JOB_ID="7").wait()
    assert started(tmp_path, "2", ends, **second).wait() == code
    assert turns(tmp_path) == ran


@pytest.mark.parametrize("again", [{}, {"SLURM_RESTART_COUNT": "1"}], ids=["forgotten", "requeued"])
def test_two_starts_of_one_job_never_run_at_once(
    tmp_path: Path, again: dict[str, str], eventually: Callable[..., None]
) -> None:
    first = started(tmp_path, "1", "exec sleep 60", SLURM_JOB_ID="7")
    eventually(lambda: (tmp_path / "turns").exists())
    assert started(tmp_path, "2", "exit 0", SLURM_JOB_ID="7", **again).wait() == wrapper.REFUSED_CODE
    assert turns(tmp_path) == ["1"]
    os.killpg(first.pid, signal.SIGKILL)
    first.wait()
    assert started(tmp_path, "3", "exit 0", SLURM_JOB_ID="7", **again).wait() == 0
    assert turns(tmp_path) == ["1", "3"]


def test_environment_and_proxy() -> None:
    _, script = sent(spec(environment="/w/my env", proxy="http://proxy:1", env={"A": "it's"}))
    assert "PATH='/w/my env'/bin:\"$PATH\"" in script
    assert "HTTPS_PROXY=http://proxy:1" in script
    assert f"export A={shlex.quote(chr(105) + 't' + chr(39) + 's')}" in script


def test_a_script_wins_over_defaults_and_loses_to_figures() -> None:
    text = "#!/bin/bash\n\n#SBATCH -c 12 --mem=9G\n#SBATCH --account=theirs # why\n#SBATCH -J x\npython y\n"
    text += "#SBATCH --late\n"
    words, script = sent(spec("bash", "x.sh"), script=text, account="usual")
    assert not [word for word in words if word.startswith(("--cpus", "--mem", "--account"))]
    assert "#SBATCH -c 12\n#SBATCH --mem=9G\n#SBATCH --account=theirs\n" in script
    assert "# from the script, set aside: -J x" in script
    assert "--late" not in script
    words, _ = sent(spec("bash", "x.sh", cpu=3.0, group="other"), script=text)
    assert {"--cpus-per-task=3", "--account=other"} <= set(words)
    assert "--mem=1024M" not in words


BATCH = "#!/bin/bash\n#SBATCH -p big --gres=gpu:1\nsrun x\n"


@pytest.mark.parametrize(
    ("request_", "script", "expected"),
    [
        ({}, "", "--cpus-per-task=1 --mem=1024M"),
        ({"gpu": 1}, "#!/bin/sh\nx\n", "--cpus-per-task=8 --mem=32768M"),
        ({"gpu": 1}, BATCH, ""),
        ({"gpu": 1, "cpu": 8, "memory_mib": 32_768}, BATCH, "--cpus-per-task=8 --mem=32768M"),
        ({"memory_mib": 2048}, BATCH, "--mem=2048M"),
        ({"memory_mib": 1024}, BATCH.replace("-p big", "--mem=9G"), "--mem=1024M"),
        ({"cpu": 0, "memory_mib": 0}, "", ""),
        ({"cpu": 0, "memory_mib": 4096}, "", "--mem=4096M"),
        ({"extra_args": ["--mem-per-cpu=2G", "--cpus-per-task=4"]}, "", "--mem-per-cpu=2G --cpus-per-task=4"),
        ({"extra_args": ["--cpus-per-gpu=4", "--mem=0"]}, "", "--mem=0"),
    ],
)
def test_whose_word_counts_for_cores_and_memory(request_: dict[str, Any], script: str, expected: str) -> None:
    """The request's own; else the script's; else the site's for a batch script, and our default for the rest."""
    made = draft(Request(command=("bash", "x.sh"), **request_), workspace="/w")
    words, _ = sent(made, script=script)
    told = [word for word in words if word.startswith(("--cpus-per-task", "--mem"))]
    assert told == expected.split()


def test_gpus_take_the_word_of_the_script() -> None:
    per_node = "#!/bin/sh\n#SBATCH --gpus-per-node=2\nx\n"
    words, _ = sent(spec("sh", "x.sh", gpu=4), script=per_node, gres="gpu:h200")
    assert "--gpus-per-node=h200:4" in words
    assert not [word for word in words if word.startswith("--gres")]
    assert "--gpus-per-node=4" in sent(spec("sh", "x.sh", gpu=4), script=per_node)[0]


def test_a_line_that_does_not_close_is_refused() -> None:
    with pytest.raises(Refused, match="cannot be read"):
        directives("#!/bin/sh\n#SBATCH --comment='open\n")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"extra_args": ("-Jother",)}, "leave --job-name out"),
        ({"extra_args": ("--wait",)}, "leave --wait out"),
        ({"extra_args": ("--output=x",)}, "leave --output out"),
        ({"lane": "idle"}, "no idle lane"),
        ({"image": "x.sif"}, "without containers"),
        ({"mounts": ("/a",)}, "without containers"),
        ({"env": {"A-B": "x"}}, "name of a variable"),
        ({"env": {"A": "a\0b"}}, "NUL"),
    ],
)
def test_what_cannot_be_done_as_asked_is_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(Refused, match=words):
        sent(spec(**changes))


def test_a_name_is_no_pattern_and_no_path() -> None:
    with pytest.raises(Refused, match="job's name"):
        check(Submission(name="../x", fingerprint="f", owner="o", spec=spec()), Options())


def test_the_comment_knows_its_own() -> None:
    told = comment("0123abcd", "some:one else")
    assert agrees(told, fingerprint="0123abcd", owner="some:one else", name="x")
    assert not agrees(told, fingerprint="ffffffff", owner="", name="x")
    assert not agrees(told, fingerprint="", owner="some", name="x")
    assert agrees("theirs", fingerprint="", owner="", name="x")
    assert not agrees("theirs", fingerprint="0123abcd", owner="", name="x-0123abcd")
    assert agrees("", fingerprint="0123abcd", owner="me", name="x-0123abcd"), (
        "accounting may keep no comments"
    )


def test_the_shown_wrapper_is_the_staged_one(tmp_path: Path) -> None:
    shown = SlurmCluster().render(
        Submission(
            name="x-a0-0123abcd",
            fingerprint="f",
            owner="o",
            spec=spec().model_copy(update={"workspace": str(tmp_path)}),
        )
    )
    assert list(tmp_path.iterdir()) == []
    assert str(wrapper.stage(tmp_path)) in shown


# --- failures ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stderr", "kind", "cause"),
    [
        ("Unable to contact slurm controller (connect failure)", Unreachable, None),
        ("Socket timed out on send/recv operation", Unclear, None),
        ("Zero Bytes were transmitted or received", Unclear, None),
        ("Requested node configuration is not available", Refused, "scheduling.unsatisfiable"),
        ("Invalid partition name specified", Refused, "scheduling.unsatisfiable"),
        ("QOSMaxSubmitJobPerUserLimit Job violates accounting/QOS policy", Refused, "scheduling.quota"),
        ("QOSMaxWallDurationPerJobLimit Job violates accounting/QOS policy", Refused, "scheduling.time_limit"),
        ("AssocMaxCpuPerJobLimit Job violates accounting/QOS policy", Refused, "scheduling.unsatisfiable"),
        ("Invalid account or account/partition combination specified", Refused, "auth.denied"),
        ("something nobody has heard of", Refused, ""),
    ],
)  # fmt: skip
def test_what_a_failed_submit_means(stderr: str, kind: type[Exception], cause: str | None) -> None:
    told = Commands(Options()).submit_failure(
        Ran(1, "", f"sbatch: error: Batch job submission failed: {stderr}", 0.1)
    )
    assert type(told) is kind
    assert getattr(told, "cause", None) == cause


def test_a_start_beyond_all_years_is_not_known() -> None:
    assert (
        with_times("Job 5 to start at 1796038104 using", NOW)
        == "Job 5 to start at 2026-11-30T11:28:24+00:00 using"
    )
    assert "does not know" in with_times("Job 8 to start at 3809384312 using", NOW)
