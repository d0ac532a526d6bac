"""What holds for every command: help, `--json`, no coroutine, light imports; and the errors that exist by name."""

from __future__ import annotations

import importlib
import inspect
import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import typer

from agent.cli import app, split
from agent.cli.output import BY_NAME, CODES_IN_WORDS, Exit
from tests.cli.program import Wk

EXPECTED = {
    "chat", "run", "follow", "serve", "submit", "check", "watch", "jobs", "show", "why", "questions", "answer",
    "capacity", "list", "get", "logs", "events", "stop", "delete", "key set", "key list", "key forget",
    "library list", "library forget", "library export", "library import", "orders check",
    "people add", "people list", "people remove", "convert", "lint", "read",
    "channels list", "channels test", "scenario run", "scenario record", "scenario new", "doctor", "config", "mcp",
    "backup", "restore", "export", "import", "simulate",
}  # fmt: skip

LIGHT = {
    "--help": {"pydantic", "yaml", "sqlite3"},
    "jobs": set(),
    "complete": set(),
}
"""What each light command must not import beyond HEAVY."""

HEAVY = {
    "alembic", "anthropic", "apscheduler", "keyring", "psutil", "sqlalchemy", "sqlmodel", "transitions",
    "states.job", "states.machine", "agent.app", "agent.store", "agent.service", "agent.settings",
}  # fmt: skip


def leaves(command: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    for word, inner in getattr(command, "commands", {}).items():
        yield from leaves(inner, f"{name} {word}".strip())
    if not getattr(command, "commands", {}):
        yield name, command


COMMANDS = dict(leaves(typer.main.get_command(app)))


def test_every_command_is_there() -> None:
    assert set(COMMANDS) == EXPECTED


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_every_command_takes_json_and_says_what_it_does(name: str) -> None:
    command = COMMANDS[name]
    assert "--json" in [word for parameter in command.params for word in parameter.opts]
    assert command.help
    assert not inspect.iscoroutinefunction(inspect.unwrap(command.callback))
    assert all(p.help for p in command.params if p.param_type_name == "option"), "an option without a word"


def test_help_is_printed_for_each(wk: Wk) -> None:
    shown = wk("--help")
    assert shown.code == 0
    assert all(name.split()[0] in shown.out for name in EXPECTED)
    for name in ("run", "key", "key set", "delete"):
        assert wk(*name.split(), "--help").code == 0
    assert "130" in shown.out


def test_every_exit_code_is_documented() -> None:
    assert all(f" {int(code)} " in f" {CODES_IN_WORDS} " for code in Exit)


@pytest.mark.parametrize("name", sorted(BY_NAME))
def test_every_error_that_is_named_exists(name: str) -> None:
    module, _, attribute = name.rpartition(".")
    assert issubclass(getattr(importlib.import_module(module), attribute), Exception)


@pytest.mark.parametrize("what", sorted(LIGHT))
def test_light_commands_import_light_modules(wk: Wk, what: str) -> None:
    words = [what] if what != "complete" else []
    asked = {"_WK_COMPLETE": "complete_bash", "COMP_WORDS": "wk follow x", "COMP_CWORD": "2"}
    code = (
        "import json, sys\n"
        "from agent.cli import run\n"
        f"try: run({words!r})\n"
        "except SystemExit: pass\n"
        "print(json.dumps(sorted(sys.modules)), file=sys.stderr)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code],
        env={**wk.env, **(asked if what == "complete" else {})},
        capture_output=True,
        text=True,
        check=True,
    )
    imported = set(json.loads(ran.stderr))
    assert imported & (HEAVY | LIGHT[what]) == set()


def test_the_words_after_the_dashes_are_the_jobs_own() -> None:
    assert split(["run", "-d", "--", "ls", "--json"]) == (["run", "-d"], ("ls", "--json"))
    assert split(["run", "job.yaml"]) == (["run", "job.yaml"], None)
    assert split(["run", "--", "a", "--", "b"]) == (["run"], ("a", "--", "b"))
    assert split(["logs", "--", "x"]) == (["logs", "--", "x"], None)


def test_a_wrong_command_is_a_usage_error(wk: Wk) -> None:
    ran = wk("jobz", "--json")
    assert ran.code == 2
    assert ran.data["error"]["code"] == "usage"
    assert wk("answer").code == 2
