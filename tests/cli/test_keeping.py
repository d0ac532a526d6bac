"""`backup`, `restore`, `export`, `import` and `doctor --upgrade` from the command line, from one home to another."""

from __future__ import annotations

from pathlib import Path

from tests.cli.program import Ran, Wk


def test_a_run_goes_to_another_home_and_is_explained_there(
    finished: tuple[Wk, Ran, str], tmp_path: Path
) -> None:
    program, _, run = finished
    other = Wk(tmp_path / "other")
    file = tmp_path / "run.jsonl"
    assert program("export", run, "--to", str(file)).code == 0
    again = program("export", run, "--to", str(file), "--json")
    assert again.code == 5
    assert "another name" in again.err
    taken = other("import", str(file), "--json")
    assert taken.code == 0, taken.err
    assert taken.data == {"run": run, "state": "succeeded"}
    assert other("why", run, "--json").data == program("why", run, "--json").data
    assert other("import", str(file)).code == 5
    assert program("export", run).out.count("\n") == file.read_text().count("\n")


def test_a_home_is_backed_up_and_restored_elsewhere(finished: tuple[Wk, Ran, str], tmp_path: Path) -> None:
    program, _, run = finished
    other = Wk(tmp_path / "other")
    copy = tmp_path / "copy.db"
    made = program("backup", str(copy), "--json")
    assert made.code == 0, made.err
    assert (made.data["runs"], made.data["live"]) == (1, 0)
    assert program("backup", str(copy)).code == 5
    assert other("restore", str(copy)).code == 0
    assert [row["id"] for row in other.board()] == [run]
    refused = other("restore", str(copy))
    assert refused.code == 5
    assert "move it away" in refused.err


def test_before_an_upgrade_nothing_is_changed(tmp_path: Path, finished: tuple[Wk, Ran, str]) -> None:
    empty = Wk(tmp_path / "empty")
    looked = empty("doctor", "--upgrade", "--json")
    assert looked.code == 0, looked.err
    assert looked.data == [{"name": "database", "level": "ok", "said": "there is none yet", "mend": ""}]
    assert not list(empty.home.rglob("*.db"))
    program, _, _ = finished
    looked = program("doctor", "--upgrade")
    assert looked.code == 0, looked.err
    assert "0 of 0" in looked.out
