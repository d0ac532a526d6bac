"""No canary gets out by the command line: every command that shows something, as text and as `--json`.

A real job on the local cluster prints them all and fails; the commands are called in this process, each with an app
of its own as in a terminal.

Never: a command that was only listed: each must end as it says.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from agent.app import build
from agent.cli import run as wk
from agent.cli.output import Exit
from states.spec import Request
from tests.cli.program import QUICK
from tests.security.canaries import KNOWN, LEAKY_LOG, OF_NOBODY, leaks


class Ended(NamedTuple):
    """A home with one failed run. run: its id; log: the file that the job printed."""

    home: Path
    run: str
    log: Path


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ended]:
    folder = tmp_path_factory.mktemp("leaky-home")
    for name, mode in (("config", 0o700), ("work", 0o755)):
        (folder / name).mkdir(mode=mode)
    programs = talkative(folder / "programs")
    settings = f"{QUICK}\nclusters:\n  broken: {{kind: slurm, programs: {programs}}}\n"
    (folder / "config" / "config.yaml").write_text(settings, encoding="utf-8")
    printed = folder / "work" / "printed.txt"
    printed.write_text(LEAKY_LOG + "\nstep 3/40 loss 2.3\n", encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WATCHKEEPER_HOME", str(folder))
        patch.setenv("COLUMNS", "200")
        patch.chdir(folder / "work")
        app = build()
        for name, value in KNOWN.items():
            app.secrets.set(name, value)
        app = build()
        asked = Request(command=("bash", "-c", "cat printed.txt; exit 3"), name="leaky", max_restarts=0)
        run = str(app.service.delegate(asked, workspace=str(folder / "work")).job.id)
        wakes = app.wakes()
        wakes.start()
        try:
            yield Ended(folder, _until_over(app, run), printed)
        finally:
            wakes.close()
            app.store.close()


def talkative(folder: Path) -> Path:
    """Programs of a scheduler that fail and tell everything, in its words and in ours."""
    folder.mkdir()
    words = folder / "words.txt"
    words.write_text(LEAKY_LOG.replace("\n", " "), encoding="utf-8")
    for name in ("sbatch", "squeue", "sacct", "scontrol", "scancel", "sinfo"):
        program = folder / name
        program.write_text(f"#!/bin/sh\ncat {words}\ncat {words} >&2\nexit 1\n", encoding="utf-8")
        program.chmod(0o755)
    return folder


def _until_over(app: Any, run: str) -> str:
    from agent.waiting import wait_for

    wait_for(app.ports, run, after=-1, until="end", timeout_s=60.0)
    assert str(app.store.load(run).state) == "failed"
    return run


COMMANDS: dict[str, int] = {
    "jobs": 0, "show {run}": 0, "why {run}": 0, "questions": 0, "follow {run}": Exit.failed,
    "check {run}": 0, "get {run}": 0, "logs {run}": 0, "logs {run} --head -n 500": 0, "events {run}": 0, "list": 0,
    "list --everyone": 0, "capacity": 0, "read {log}": 0, "scenario record {run}": 0, "export {run}": 0,
    "key list": 0, "config": 0,
    "library list": 0, "orders check": Exit.not_found, "people list": 0, "channels list": 0, "chat how is leaky": 0,
    "show swordfish-on-tuesday": Exit.not_found, "get swordfish-on-tuesday": Exit.not_found,
    "logs x --cluster swordfish-on-tuesday": Exit.refused, "delete {run} --name swordfish-on-tuesday": Exit.refused,
    "answer {run}/1 swordfish-on-tuesday": Exit.refused, "run nowhere-swordfish-on-tuesday.yaml": Exit.usage,
}  # fmt: skip
"""Each with the exit code that it ends with."""


@pytest.mark.parametrize("wanted_json", [False, True], ids=["text", "json"])
@pytest.mark.parametrize("line", COMMANDS)
def test_a_command_shows_no_canary(
    ended: Ended, capsys: pytest.CaptureFixture[str], line: str, wanted_json: bool
) -> None:
    words = shlex.split(line.format(run=ended.run, log=ended.log))
    code = wk([*words, *(["--json"] if wanted_json else [])])
    out, err = capsys.readouterr()
    assert code == COMMANDS[line], err
    assert out + err
    assert leaks(out + err) == []


def test_nothing_of_this_home_holds_a_canary_but_the_keys_and_what_the_job_wrote(ended: Ended) -> None:
    own = {"keys.json", "printed.txt", "words.txt"}
    files = [file for file in ended.home.rglob("*") if file.is_file() and file.name not in own]
    logs = [file for file in files if file.name == "log" or file.suffix == ".log"]
    assert any(leaks(file.read_bytes()) for file in logs), "the job did not print them"
    assert (ended.home / "state" / "watchkeeper.db") in files
    found = {str(file): leaks(file.read_bytes()) for file in files if file not in logs}
    assert {file: names for file, names in found.items() if names} == {}


@pytest.mark.parametrize("wanted_json", [False, True], ids=["text", "json"])
@pytest.mark.parametrize(
    "line", ["list", "get 7", "logs 7", "events 7", "capacity", "check 7", "stop 7", "submit -- true"]
)
def test_what_a_program_said_that_failed(
    ended: Ended, capsys: pytest.CaptureFixture[str], line: str, wanted_json: bool
) -> None:
    head, dashes, command = line.partition(" -- ")
    words = [*head.split(), "--cluster", "broken", *(["--json"] if wanted_json else [])]
    code = wk([*words, *(["--", *command.split()] if dashes else [])])
    out, err = capsys.readouterr()
    assert code in (Exit.unreachable, Exit.refused, Exit.not_found), err
    assert out + err
    assert leaks(out + err) == []


@pytest.mark.parametrize("words", [("--password", "{v}"), ("--api-key={v}",), ("-u", "me:{v}", "push")])
def test_a_command_with_a_credential_is_refused_and_not_kept(
    ended: Ended, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    value = OF_NOBODY[4].values[0]
    given = [word.format(v=value) for word in words]
    assert wk(["run", "--json", "--", "curl", *given]) == Exit.refused
    assert wk(["submit", "--json", "--", "curl", *given]) == Exit.refused
    out, err = capsys.readouterr()
    assert leaks(out + err) == []
    files = [file for file in (ended.home / "state").rglob("*") if file.is_file() and file.suffix != ".log"]
    assert [
        str(file) for file in files if value.encode() in file.read_bytes() and "local" not in file.parts
    ] == []


def test_a_word_of_the_key_store_is_refused_wherever_a_request_holds_it(
    ended: Ended, capsys: pytest.CaptureFixture[str]
) -> None:
    for words in (["--purpose", KNOWN["LAB_WORD"], "--", "true"], ["--", "echo", KNOWN["LAB_WORD"]]):
        assert wk(["run", "--json", *words]) == Exit.refused
    out, err = capsys.readouterr()
    assert json.loads(out.splitlines()[0])["error"]["code"] == "refused"
    assert leaks(out + err) == []


def test_a_fault_of_the_program_itself_tells_no_canary(
    ended: Ended, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The trace goes to the person's terminal, and from there into an issue."""

    def breaks(*_: object, **__: object) -> None:
        raise RuntimeError(LEAKY_LOG) from ValueError(KNOWN["LAB_ODD"])

    monkeypatch.setattr("agent.service.Service.why", breaks)
    assert wk(["why", ended.run, "--json"]) == Exit.internal
    out, err = capsys.readouterr()
    assert "RuntimeError" in err
    assert "ValueError" in err
    assert leaks(out + err) == []
