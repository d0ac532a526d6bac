"""Processes told apart by more than their id."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from agent.clock import SystemClock
from agent.clusters import local_process
from agent.clusters.local_process import (
    Process,
    alive,
    born_about,
    detach,
    group_alive,
    identify,
    signal_group,
)
from tests.clusters.bench import Eventually


@pytest.fixture(params=[True, False], ids=["proc", "psutil"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ways of telling when a process was born: this system's and the one for systems without /proc."""
    if not request.param or not local_process.PROC.exists():
        monkeypatch.setattr(local_process, "_has_proc", lambda: False)


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "60"], start_new_session=True) as process:
        yield process
        process.kill()


@pytest.mark.usefixtures("way")
def test_a_process_is_known_until_it_ends(sleeper: subprocess.Popen[bytes], eventually: Eventually) -> None:
    process = identify(sleeper.pid)
    assert process is not None
    assert process == identify(sleeper.pid)
    assert alive(process)
    assert not alive(process._replace(born="another birth"))
    sleeper.kill()
    # Nobody has asked for its status yet: its id is taken by its remains alone.
    eventually(lambda: not alive(process))
    assert sleeper.returncode is None
    sleeper.wait()
    assert identify(sleeper.pid) is None
    assert not alive(None)


def test_a_group_lives_as_long_as_a_member(eventually: Eventually, tmp_path: Path) -> None:
    script = f"sleep 60 & echo $! >{tmp_path}/child; wait"
    with subprocess.Popen(["sh", "-c", script], start_new_session=True) as leader:
        process = identify(leader.pid)
        assert process is not None
        eventually(lambda: (tmp_path / "child").exists() and (tmp_path / "child").read_text())
        leader.kill()
        leader.wait()
        assert not alive(process)
        assert group_alive(process)
        signal_group(process, signal.SIGKILL)
        eventually(lambda: not group_alive(process))


def test_a_strangers_group_is_not_signalled(sleeper: subprocess.Popen[bytes]) -> None:
    stranger = Process(sleeper.pid, "another birth")
    assert not group_alive(stranger)
    signal_group(stranger, signal.SIGKILL)
    assert sleeper.poll() is None


def test_a_record_is_believed_only_of_a_process_born_then(sleeper: subprocess.Popen[bytes]) -> None:
    now = SystemClock().now()
    assert born_about(sleeper.pid, now) == identify(sleeper.pid)
    assert born_about(sleeper.pid, now - timedelta(minutes=1)) is None
    sleeper.kill()
    sleeper.wait()
    assert born_about(sleeper.pid, now) is None


def test_a_detached_process_is_nobodys_child(tmp_path: Path, eventually: Eventually) -> None:
    code = "import os, sys; print(os.getppid(), os.getsid(0), sorted(os.environ), flush=True)"
    detach([sys.executable, "-S", "-c", code], env={"ONLY": "this"}, log=tmp_path / "log")
    text = eventually(lambda: (tmp_path / "log").read_text())
    parent, session, *names = text.split(maxsplit=2)
    assert int(session) != os.getsid(0)
    assert int(parent) != os.getpid()
    assert "ONLY" in names[0]
    assert "HOME" not in names[0]
