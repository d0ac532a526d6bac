"""The runner of other programs: what it passes, what it keeps, and that nothing outlives its time."""

from __future__ import annotations

import os
import signal
import sys
import threading
from datetime import timedelta
from pathlib import Path

import psutil
import pytest

from agent.clock import SystemClock
from agent.clusters import run as runner
from agent.clusters.run import NotInstalled, NotStarted, TimedOut, clean_environment, run
from tests.clusters.bench import HOSTILE, Eventually

PYTHON = sys.executable


def test_it_returns_status_and_both_streams() -> None:
    ran = run(["sh", "-c", "echo out; echo err >&2; exit 3"], timeout_s=20)
    assert ran[:3] == (3, "out\n", "err\n")
    assert 0 < ran.seconds < 20


def test_a_signal_is_a_negative_status() -> None:
    assert run(["sh", "-c", "kill -9 $$"], timeout_s=20).rc == -signal.SIGKILL


def test_words_are_never_read_by_a_shell() -> None:
    assert run(["printf", "%s", HOSTILE], timeout_s=20).stdout == HOSTILE


def test_a_long_input_is_fed_while_the_output_is_read() -> None:
    text = "0123456789" * 20_000
    assert run(["cat"], timeout_s=20, stdin=text).stdout == text


def test_a_program_that_does_not_read_its_input_is_no_trouble() -> None:
    assert run(["true"], timeout_s=20, stdin="x" * 1_000_000).rc == 0


def test_without_input_there_is_nothing_to_wait_for() -> None:
    assert run(["cat"], timeout_s=20).stdout == ""


def test_a_long_output_keeps_its_beginning_and_its_end() -> None:
    code = "for i in range(600_000): print('line', i)"
    text = run([PYTHON, "-c", code], timeout_s=60).stdout
    assert text.startswith("line 0\nline 1\n")
    assert text.endswith("line 599998\nline 599999\n")
    assert "bytes left out" in text
    assert len(text) < 2 * runner.KEPT_BYTES + 100


def test_bytes_that_are_no_text_are_replaced() -> None:
    assert run(["printf", r"caf\303\251 \377"], timeout_s=20).stdout == "café �"


def test_everything_it_says_is_redacted() -> None:
    def redact(text: str) -> str:
        return text.replace("hush", "***")

    ran = run(["sh", "-c", "echo hush; echo hush >&2"], timeout_s=20, redact=redact)
    assert ran[1:3] == ("***\n", "***\n")
    with pytest.raises(NotInstalled, match=r"\*\*\*-prog"):
        run(["hush-prog"], timeout_s=20, redact=redact)
    with pytest.raises(TimedOut) as late:
        run(["sh", "-c", "echo hush; exec sleep 60"], timeout_s=0.3, redact=redact)
    assert late.value.stdout == "***\n"


# --- the environment ---------------------------------------------------------------------------------------


def test_the_environment_is_an_allow_list(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SOME_TOKEN", "HTTPS_PROXY", "PYTHONPATH", "LD_LIBRARY_PATH", "SSH_AUTH_SOCK"):
        monkeypatch.setenv(name, "hush")
    monkeypatch.setenv("LC_TIME", "C")
    out = run(["env"], timeout_s=20, env={"GIVEN": "yes"}).stdout
    env = dict(line.split("=", 1) for line in out.splitlines())
    assert "hush" not in env.values()
    assert (env["GIVEN"], env["LC_TIME"], env["PATH"]) == ("yes", "C", os.environ["PATH"])


def test_given_names_win_and_dropped_ones_are_gone() -> None:
    source = {"PATH": "/bin", "HOME": "/h", "TZ": "UTC"}
    assert clean_environment({"TZ": "Asia/Shanghai", "X": "1"}, drop=["HOME", "X"], source=source) == {
        "PATH": "/bin",
        "TZ": "Asia/Shanghai",
    }


def test_there_is_always_a_path() -> None:
    assert clean_environment(source={}) == {"PATH": os.defpath}


# --- what cannot be run, and what does not end -------------------------------------------------------------


def test_a_program_that_is_not_there_says_what_to_install() -> None:
    with pytest.raises(NotInstalled, match="install the Slurm client"):
        run(["no-such-program-here"], timeout_s=20, install="the Slurm client")


def test_what_the_system_refuses_is_not_called_missing(tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("no program")
    for argv, cwd in ([[str(tmp_path / "plain")], None], [["true"], tmp_path / "away"], [["a\0b"], None]):
        with pytest.raises(NotStarted, match="could not be started") as refused:
            run(argv, timeout_s=20, cwd=cwd)
        assert not isinstance(refused.value, NotInstalled)


def test_at_the_time_out_the_whole_group_is_killed(tmp_path: Path, eventually: Eventually) -> None:
    script = f"trap '' TERM; sleep 600 & echo $! >{tmp_path}/child; echo said; wait"
    with pytest.raises(TimedOut, match=r"within 0\.4 s") as late:
        run(["sh", "-c", script], timeout_s=0.4)
    assert late.value.stdout == "said\n"
    child = int((tmp_path / "child").read_text())
    eventually(lambda: not psutil.pid_exists(child) or psutil.Process(child).status() == "zombie")


def test_a_program_that_closed_its_output_is_still_waited_for_and_timed() -> None:
    assert run(["sh", "-c", "exec >&- 2>&-; sleep 0.1; exit 4"], timeout_s=20).rc == 4
    with pytest.raises(TimedOut):
        run(["sh", "-c", "exec >&- 2>&-; exec sleep 600"], timeout_s=0.3)


def test_what_stays_behind_with_the_pipe_does_not_hold_up_the_answer(tmp_path: Path) -> None:
    started = SystemClock().now()
    ran = run(["sh", "-c", f"sleep 600 & echo $! >{tmp_path}/child; echo done"], timeout_s=60)
    assert ran[:2] == (0, "done\n")
    assert SystemClock().now() - started < timedelta(seconds=30)
    os.kill(int((tmp_path / "child").read_text()), signal.SIGKILL)


def test_it_can_be_used_from_many_threads_at_once() -> None:
    said: dict[int, str] = {}
    threads = [
        threading.Thread(target=lambda n=n: said.update({n: run(["echo", str(n)], timeout_s=30).stdout}))
        for n in range(12)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert said == {n: f"{n}\n" for n in range(12)}
