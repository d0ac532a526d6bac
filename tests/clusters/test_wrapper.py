"""The job's wrapper, run by every POSIX shell that is here: what it records, whatever happens to it."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import psutil
import pytest

from agent.clock import SystemClock
from agent.clusters import wrapper
from agent.clusters.wrapper import WrapperRecord
from tests.clusters.bench import HOSTILE, Eventually

KNOWN = ("dash", "bash", "busybox", "ksh", "mksh", "yash", "zsh")
SHELLS = [name for name in KNOWN if shutil.which(name)] or ["sh"]
SAYS_INT = (
    sys.executable,
    "-c",
    "import time\ntry: print('ready', flush=True); time.sleep(60)\nexcept KeyboardInterrupt: raise SystemExit(7)",
)
RESETS_INT = subprocess.run(["env", "--default-signal=INT", "true"], capture_output=True).returncode == 0


@pytest.fixture(params=SHELLS)
def shell(request: pytest.FixtureRequest) -> list[str]:
    return ["busybox", "sh"] if request.param == "busybox" else [str(request.param)]


class Job:
    """One wrapped command in a session of its own."""

    def __init__(self, shell: list[str], folder: Path, command: tuple[str, ...], **flags: bool) -> None:
        wrapped = wrapper.argv(wrapper.SCRIPT, folder, command, **flags)
        self.folder = folder
        self.process = subprocess.Popen(
            [*shell, *wrapped[1:]],
            env={"PATH": os.environ["PATH"], "WATCHKEEPER_HEARTBEAT_S": "0.05", "WATCHKEEPER_ID": "j-1.x"},
            cwd=folder.parent,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )

    def end(self) -> tuple[int, str, str]:
        """Exit status, output and errors at its end."""
        out, err = self.process.communicate(timeout=20)
        return self.process.returncode, out.decode(), err.decode()

    def record(self) -> WrapperRecord | None:
        return wrapper.record(self.folder)

    def kill(self) -> None:
        """Whatever is left of it."""
        with self.process, contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)


class Jobs:
    """Starts wrapped commands and leaves none behind."""

    def __init__(self, shell: list[str], folder: Path) -> None:
        self.shell = shell
        self.folder = folder
        self.made: list[Job] = []

    def __call__(self, *command: str, **flags: bool) -> Job:
        self.made.append(Job(self.shell, self.folder, command, **flags))
        return self.made[-1]


@pytest.fixture
def jobs(shell: list[str], tmp_path: Path) -> Iterator[Jobs]:
    jobs = Jobs(shell, tmp_path / "run of it")
    yield jobs
    for job in jobs.made:
        job.kill()


@pytest.mark.parametrize("code", [0, 1, 3, 127, 255])
def test_the_commands_end_is_recorded_and_passed_on(jobs: Jobs, code: int) -> None:
    job = jobs("sh", "-c", f"echo out; echo err >&2; exit {code}")
    assert job.end() == (code, "out\n", "err\n")
    record = job.record()
    assert record is not None
    assert (record.exit_code, record.signal, record.pid, record.id) == (code, None, job.process.pid, "j-1.x")
    assert record.host == os.uname().nodename
    assert record.ended_at is not None
    assert timedelta(0) <= record.ended_at - record.started_at < timedelta(seconds=20)
    assert abs(record.started_at - SystemClock().now()) < timedelta(seconds=20)


@pytest.mark.parametrize("time", range(5))
def test_a_command_killed_by_a_signal_is_recorded_as_the_shells_say_it(jobs: Jobs, time: int) -> None:
    """Several times: so short a command ends while the heartbeat is only beginning."""
    job = jobs("sh", "-c", "kill -9 $$")
    assert job.end() == (137, "", "")
    record = job.record()
    assert record is not None
    assert (record.exit_code, record.signal) == (137, 9)


def test_a_command_that_is_not_there_ends_with_127(jobs: Jobs) -> None:
    code, _, errors = jobs("no-such-program-here").end()
    assert code == 127
    assert "no-such-program-here" in errors


def test_words_arrive_as_they_were_written(jobs: Jobs) -> None:
    assert jobs("printf", "<%s>", HOSTILE, "", "a=b", "-x", "--").end()[1] == f"<{HOSTILE}><><a=b><-x><-->"


def test_a_program_with_an_equals_sign_in_its_name_runs(jobs: Jobs, tmp_path: Path) -> None:
    program = tmp_path / "a=b"
    program.write_text("#!/bin/sh\necho ran\n")
    program.chmod(0o755)
    assert jobs(str(program)).end() == (0, "ran\n", "")


def test_the_log_takes_both_streams_and_is_added_to(jobs: Jobs) -> None:
    assert jobs("sh", "-c", "echo one; echo two >&2", log=True).end() == (0, "", "")
    assert jobs("echo", "three", log=True, restart=True).end() == (0, "", "")
    assert (jobs.folder / "log").read_text() == "one\ntwo\nthree\n"


def test_a_second_run_under_the_same_name_does_not_happen(jobs: Jobs) -> None:
    assert jobs("echo", "first").end()[0] == 0
    code, output, errors = jobs("echo", "second").end()
    assert (code, output) == (wrapper.REFUSED_CODE, "")
    assert "nothing was started" in errors
    record = jobs.made[0].record()
    assert record is not None
    assert record.pid == jobs.made[0].process.pid


def test_of_two_that_start_at_once_one_runs(jobs: Jobs) -> None:
    both = [jobs("echo", "ran") for _ in range(2)]
    assert sorted(job.end()[:2] for job in both) == [(0, "ran\n"), (wrapper.REFUSED_CODE, "")]


def test_a_restart_replaces_the_record(jobs: Jobs) -> None:
    jobs("sh", "-c", "exit 3").end()
    job = jobs("sh", "-c", "exit 4", restart=True)
    job.end()
    record = job.record()
    assert record is not None
    assert (record.exit_code, record.pid) == (4, job.process.pid)


def test_a_folder_that_cannot_be_written_keeps_nothing_from_running(jobs: Jobs) -> None:
    jobs.folder.touch()
    assert jobs("echo", "ran").end()[:2] == (0, "ran\n")
    assert wrapper.record(jobs.folder) is None


# --- signals -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["TERM", "HUP", "USR1"])
def test_a_signal_to_the_wrapper_reaches_the_command(jobs: Jobs, name: str) -> None:
    traps = f"trap 'echo caught; exit 5' {name}; echo ready; while :; do sleep 0.02; done"
    job = jobs("sh", "-c", traps)
    assert job.process.stdout is not None
    assert job.process.stdout.readline() == b"ready\n"
    job.process.send_signal(signal.Signals[f"SIG{name}"])
    assert job.end() == (5, "caught\n", "")
    record = job.record()
    assert record is not None
    assert (record.exit_code, record.signal) == (5, None)


@pytest.mark.skipif(not RESETS_INT, reason="the env of this system cannot undo what shells do to INT")
def test_an_interrupt_reaches_the_command(jobs: Jobs) -> None:
    job = jobs(*SAYS_INT)
    assert job.process.stdout is not None
    assert job.process.stdout.readline() == b"ready\n"
    job.process.send_signal(signal.SIGINT)
    assert job.end()[0] == 7


def test_a_signal_to_the_whole_group_comes_once(jobs: Jobs) -> None:
    counts = (
        "n=0; trap 'n=$((n+1)); echo $n' TERM; echo ready; while [ ! -e \"$1\" ]; do sleep 0.02; done; exit 0"
    )
    gate = jobs.folder.with_name("gate")
    job = jobs("sh", "-c", counts, "sh", str(gate), whole_group=True)
    assert job.process.stdout is not None
    assert job.process.stdout.readline() == b"ready\n"
    os.killpg(job.process.pid, signal.SIGTERM)
    assert job.process.stdout.readline() == b"1\n"
    gate.touch()
    assert job.end()[:2] == (0, "")


@pytest.mark.parametrize("time", range(3))
@pytest.mark.parametrize("whole_group", [False, True])
def test_a_group_that_dies_of_the_signal_leaves_the_right_record(
    jobs: Jobs, time: int, whole_group: bool
) -> None:
    """The command and the wrapper get it in the same moment, so a shell may be told either first."""
    job = jobs("sh", "-c", f"echo ready; exec sleep 6{time}", whole_group=whole_group)
    assert job.process.stdout is not None
    assert job.process.stdout.readline() == b"ready\n"
    os.killpg(job.process.pid, signal.SIGTERM)
    job.end()
    record = job.record()
    assert record is not None
    assert (record.exit_code, record.signal) == (143, 15)


@pytest.mark.parametrize("whole_group", [False, True])
def test_a_signal_before_the_start_keeps_the_command_from_starting(
    jobs: Jobs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole_group: bool
) -> None:
    """The wrapper's own first step sends it: a `mkdir` that stands before the system's."""
    (tmp_path / "mkdir").write_text(f'#!/bin/sh\nkill -TERM $PPID\nexec {shutil.which("mkdir")} "$@"\n')
    (tmp_path / "mkdir").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    job = jobs("echo", "ran", whole_group=whole_group)
    assert job.end()[:2] == (143, "")
    record = job.record()
    assert record is not None
    assert (record.exit_code, record.signal) == (143, 15)


# --- the heartbeat -----------------------------------------------------------------------------------------


def test_the_heart_beats_while_the_command_runs_and_stops_with_it(jobs: Jobs, eventually: Eventually) -> None:
    job = jobs("sleep", "60")
    seen: set[object] = set()

    def beats() -> bool:
        record = job.record()
        if record is not None and record.heartbeat_at is not None:
            seen.add(record.heartbeat_at)
        return len(seen) >= 3

    eventually(beats)
    family = psutil.Process(job.process.pid).children(recursive=True)
    job.process.terminate()
    job.end()
    eventually(lambda: not [one for one in family if one.is_running() and one.status() != "zombie"])


def test_the_heart_stops_when_the_wrapper_is_killed(jobs: Jobs, eventually: Eventually) -> None:
    job = jobs("sh", "-c", "touch begun; exec sleep 0.3")
    eventually(lambda: (jobs.folder / "heartbeat").exists() and (jobs.folder.parent / "begun").exists())
    family = psutil.Process(job.process.pid).children(recursive=True)
    job.process.kill()
    job.process.communicate(timeout=20)
    eventually(lambda: not [one for one in family if one.is_running() and one.status() != "zombie"])
    record = job.record()
    assert record is not None
    assert record.exit_code is None


def test_no_pipe_is_held_open_after_the_end(jobs: Jobs) -> None:
    """`communicate` would wait for the heartbeat's sleep if that had kept the output."""
    job = jobs("true")
    started = SystemClock().now()
    job.end()
    assert SystemClock().now() - started < timedelta(seconds=10)


# --- what drivers use --------------------------------------------------------------------------------------


def test_staging_is_idempotent_and_out_of_the_way_of_git(tmp_path: Path) -> None:
    script = wrapper.stage(tmp_path)
    before = script.stat()
    assert wrapper.stage(tmp_path) == script
    assert script.stat().st_mtime_ns == before.st_mtime_ns
    assert script.read_bytes() == wrapper.SCRIPT.read_bytes()
    assert os.access(script, os.X_OK)
    assert wrapper.run_dir(tmp_path, "x").parent == script.parent
    assert (script.parent / ".gitignore").read_text() == "*\n"
    assert sorted(path.name for path in script.parent.iterdir()) == sorted([".gitignore", script.name])


GOOD = {"started_at": "2026-01-02T03:04:05Z", "pid": 7, "host": "h", "id": ""}
ENDED = {**GOOD, "exit_code": 3, "signal": None, "ended_at": "2026-01-02T03:05:05Z"}


@pytest.mark.parametrize(
    ("start", "end", "code"),
    [
        (None, None, "no record"),
        ("", None, "no record"),
        (json.dumps(GOOD)[:-5], None, "no record"),
        (json.dumps([1]), None, "no record"),
        (json.dumps({**GOOD, "pid": "x"}), None, "no record"),
        (json.dumps({**GOOD, "started_at": "yesterday"}), None, "no record"),
        (json.dumps(GOOD), None, None),
        (json.dumps(GOOD), "", None),
        (json.dumps(GOOD), json.dumps(ENDED)[:40], None),
        (json.dumps(GOOD), json.dumps({**ENDED, "exit_code": None}), None),
        (json.dumps(GOOD), json.dumps(ENDED), 3),
        (None, json.dumps(ENDED), 3),
        ("\0\0", json.dumps(ENDED), 3),
    ],
)
def test_a_partial_record_is_none(tmp_path: Path, start: str | None, end: str | None, code: object) -> None:
    for name, text in (("start", start), ("exit.json", end)):
        if text is not None:
            (tmp_path / name).write_text(text)
    record = wrapper.record(tmp_path)
    assert ("no record" if record is None else record.exit_code) == code


def test_a_forgotten_record_leaves_the_log(tmp_path: Path) -> None:
    for name in ("start", "exit.json", "heartbeat", "log"):
        (tmp_path / name).touch()
    wrapper.forget(tmp_path)
    wrapper.forget(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["log"]
