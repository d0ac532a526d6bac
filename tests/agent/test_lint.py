"""The lint on the disk: files that are started are looked up, `wk lint` prints, preflight answers with one row."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from agent import yamlparse
from agent.cli import lint as command
from agent.lint import LOOKS_MAX, lint_file, scene
from agent.perform.checks_lint import lint_check
from agent.shellparse import parse
from states.job import Check
from states.lint.manifest import Table
from tests.agent.fakes import Desk
from tests.states.builders import new_job

KEY = "0f1e2d3c" * 5


def ran(*words: str) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of `wk lint`."""
    app = typer.Typer()
    command.register(app)
    result = CliRunner().invoke(app, list(words))
    return result.exit_code, result.stdout, result.stderr


def kinds(report: Any) -> set[str]:
    return {f"{f.kind} {f.file}:{f.line}" for f in report.findings if f.level != "note"}


def test_scripts_are_followed_on_the_disk(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "job.sh").write_text("bash sub/go.sh\n")
    (tmp_path / "sub/go.sh").write_text("cd sub\npython -u train.py --config c.yaml\n")
    (tmp_path / "sub/train.py").write_text("import os\nos.system('pip install x')\n")
    report = lint_file(tmp_path / "job.sh", scene(gpu=1), tmp_path)
    assert kinds(report) == {"package_install sub/train.py:2", "missing_path sub/go.sh:2"}
    assert report.unread == ()


def test_a_large_folder_is_not_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("a folder was listed")

    monkeypatch.setattr("os.scandir", refuse)
    monkeypatch.setattr("os.listdir", refuse)
    (tmp_path / "job.sh").write_text("python -u a.py\n" * LOOKS_MAX)
    assert kinds(lint_file(tmp_path / "job.sh", scene(gpu=1), tmp_path)) == {"missing_path job.sh:1"}


def test_a_link_out_of_the_folder_is_there_and_not_read(tmp_path: Path) -> None:
    inside, outside = tmp_path / "ws", tmp_path / "other.py"
    inside.mkdir()
    outside.write_text("import os\nos.system('pip install x')\n")
    (inside / "train.py").symlink_to(outside)
    (inside / "job.sh").write_text("python -u train.py\n")
    assert kinds(lint_file(inside / "job.sh", scene(gpu=1), inside)) == set()


def test_what_cannot_be_seen_is_said(tmp_path: Path) -> None:
    (tmp_path / "job.sh").write_text("python -u missing.py\n")
    report = lint_file(tmp_path / "job.sh", scene(gpu=1), None)
    assert kinds(report) == set()
    assert "cannot be seen" in report.unread[0]


def test_the_command_prints_a_list(tmp_path: Path) -> None:
    script = tmp_path / "job.sh"
    script.write_text(f"export WANDB_API_KEY={KEY}\ntorchrun --nproc_per_node=8 t.py\n")
    code, out, err = ran(str(script), "--json", "--gpu", "4", "--tree", "none")
    found = json.loads(out)
    assert code == 5
    assert {"kind", "level", "line", "text", "mend"} <= found[0].keys()
    assert {(f["level"], f["kind"], f["line"]) for f in found if f["level"] != "note"} == {
        ("refuse", "credential", 1),
        ("ask", "figures_contradict", 2),
    }
    assert KEY not in out + err
    assert "cannot be seen" in err


def test_the_command_in_words(tmp_path: Path) -> None:
    script = tmp_path / "job.sh"
    script.write_text("set -e\npython -u t.py --out /tmp/o\n")
    (tmp_path / "t.py").write_text("print(1)\n")
    code, out, _ = ran(str(script), "--workspace", "/ws", "--tree", str(tmp_path))
    assert code == 0
    assert out.startswith("warn output_node_local at job.sh:2: /tmp/o is on the node's own disk")
    script.write_text("set -e\npython -u t.py\n")
    assert ran(str(script), "--tree", str(tmp_path))[1] == "Nothing found.\n"


@pytest.fixture
def checked(desk: Callable[..., Desk], tmp_path: Path) -> Callable[..., Check]:
    """The row that the check gives for a request in a workspace of its own."""

    def check(text: str, **request: Any) -> Check:
        asked = {"command": text, "gpu": 4, **request}
        job = new_job(request=asked)
        return lint_check(
            job.but(spec=job.spec.model_copy(update={"workspace": str(tmp_path)})), desk().ports
        )

    return check


def test_preflight_refuses_an_install_with_the_staged_way(checked: Callable[..., Check]) -> None:
    row = checked("pip install x && python -u t.py")
    assert (row.name, row.level, row.rule, row.question) == ("request", "refuse", "C12", "")
    assert "preparation job" in row.mend


def test_preflight_asks_about_a_contradiction(checked: Callable[..., Check], tmp_path: Path) -> None:
    (tmp_path / "t.py").write_text("print(1)\n")
    row = checked("torchrun --nproc_per_node=8 t.py --output_dir /tmp/o")
    assert (row.level, row.question) == ("ask", "command")
    assert "8 processes for 4 GPUs" in row.evidence
    assert "output_node_local" in row.evidence


def test_preflight_warns_and_passes(checked: Callable[..., Check], tmp_path: Path) -> None:
    (tmp_path / "t.py").write_text("print(1)\n")
    assert checked("python -u t.py --output_dir /tmp/o").level == "warn"
    assert checked("python t.py").level == "note"
    assert checked("python -u t.py").level == "fine"


def test_preflight_never_stores_a_credential(checked: Callable[..., Check]) -> None:
    row = checked("python -u -m t", env={"WANDB_API_KEY": KEY})
    assert (row.level, row.rule) == ("refuse", "B4")
    assert KEY not in row.model_dump_json()
    assert checked("python -u -m t", extra_args=("--token", KEY)).level == "refuse"


def test_preflight_says_what_it_could_not_see(desk: Callable[..., Desk]) -> None:
    job = new_job(request={"command": "python -u t.py"})
    job = job.but(spec=job.spec.model_copy(update={"workspace": "/not/here/at/all"}))
    row = lint_check(job, desk().ports)
    assert row.level == "could_not"
    assert "Could not check" in row.evidence


def test_a_preparation_run_may_install(desk: Callable[..., Desk], tmp_path: Path) -> None:
    asked = {"command": "python -m venv e && e/bin/pip install x", "purpose": "environment of a-1"}
    job = new_job(request=asked).but(parent="a-1")
    job = job.but(spec=job.spec.model_copy(update={"workspace": str(tmp_path)}))
    assert lint_check(job, desk().ports).level == "note"


def test_an_alias_bomb_is_given_up() -> None:
    rows = [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 10)]
    manifest = yamlparse.parse("a0: &a0 x\n" + "\n".join(rows))
    assert manifest.documents == ()
    assert manifest.faults


def test_yaml_lines() -> None:
    manifest = yamlparse.parse("a: 1\nb:\n  - |\n    x\n    y\n")
    (document,) = manifest.documents
    assert isinstance(document, Table)
    assert document.row("b")[0][:2] == ("x\ny\n", 4)


def test_shell_parsing_survives_what_is_broken() -> None:
    script = parse('echo a\npython t.py --x "abc\n')
    assert next(node.line for node in script.nodes) == 1
    assert script.broken
    assert parse("").items == ()
