"""The library as a team's file: there and back, folded, validated by line, and never a credential (H1, H4)."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.library import Library, Taken, entry_of
from agent.libraryfile import Entry, read_library, write_library
from agent.store import Store
from agent.yamlfile import UserFileError
from states.effects import Remember
from tests.agent.fakes import at

SECRET = "pa55-" + "word-of-kim"


@pytest.fixture
def library(store: Store) -> Library:
    return Library(store)


def told(what: str, purpose: str = "digits", note: str = "", **values: str) -> Remember:
    return Remember.model_validate({"what": what, "purpose": purpose, "values": values, "note": note})


def filled(library: Library) -> Library:
    library.remember("e1", told("worked", image="reg/a:1", note="needs /dev/shm"), at(1))
    library.remember("e2", told("worked", image="reg/a:1"), at(2))
    library.remember("e3", told("used", image="reg/b:1", environment="envs/x"), at(3))
    library.remember("e4", told("stale", environment="envs/x", note="no bin/python"), at(4))
    return library


def state(library: Library) -> list[dict[str, object]]:
    return [{k: v for k, v in dict(row).items() if k != "id"} for row in library.entries()]


def test_there_and_back_is_the_same_and_twice_changes_nothing(
    library: Library, tmp_path: Path, another: Library
) -> None:
    file = tmp_path / "team.yaml"
    assert write_library(map(entry_of, filled(library).entries()), file) == (2, 0)
    assert another.take_in(read_library(file)) == Taken(new=2, folded=0)
    assert state(another) == state(library)
    assert another.take_in(read_library(file)) == Taken(new=0, folded=2)
    assert state(another) == state(library)
    best = another.best("digits", "image")
    assert best is not None
    assert best.value == "reg/a:1"
    assert another.best("digits", "environment") is None


@pytest.fixture
def another(tmp_path: Path) -> Library:
    store = Store(f"sqlite:///{tmp_path / 'another.db'}")
    store.create_schema()
    return Library(store)


def test_folding_keeps_the_larger_counts_the_longer_life_and_every_note(library: Library) -> None:
    filled(library)
    entry = Entry(
        purpose="Digits",
        image="reg/a:1",
        used=7,
        worked=1,
        first_at=at(-5),
        last_at=at(1),
        notes=("use bf16",),
    )
    assert library.take_in([entry]) == Taken(new=0, folded=1)
    row = next(row for row in library.entries() if row["settings"] == {"image": "reg/a:1"})
    assert (row["used"], row["worked"], row["first_at"], row["last_at"]) == (7, 2, at(-5), at(2))
    assert row["notes"] == ["needs /dev/shm", "use bf16"]


def test_a_teams_stale_mark_counts_unless_it_worked_here_since(library: Library) -> None:
    filled(library)
    gone = {"purpose": "digits", "image": "reg/a:1", "first_at": at(0), "last_at": at(1)}
    library.take_in([Entry.model_validate({**gone, "stale": {"at": at(1), "why": "old news"}})])
    assert library.best("digits", "image") is not None
    library.take_in([Entry.model_validate({**gone, "stale": {"at": at(9), "why": "not found"}})])
    assert library.best("digits", "image") is None


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("entries:\n- purpose: x\n  imege: reg/a:1\n", 3, "unknown field 'imege'; did you mean 'image'?"),
        ("entries:\n- purpose: x\n", 2, "says nothing"),
        ("entries:\n- {image: reg/a:1}\n", 2, "is missing"),
        ("entries:\n- {purpose: x, image: a, worked: -1}\n", 2, "greater than or equal to 0"),
        ("version: 2\n", 1, "1"),
        ("entries:\n- purpose: x\n  image: a\n  last_at: yesterday\n", 4, "datetime"),
    ],
)
def test_a_fault_is_told_with_its_line(tmp_path: Path, text: str, line: int, said: str) -> None:
    file = tmp_path / "team.yaml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(UserFileError) as caught:
        read_library(file)
    assert f"{file}:{line}: " in str(caught.value)
    assert said in str(caught.value)


def test_an_entry_that_a_person_writes_needs_no_dates(tmp_path: Path) -> None:
    file = tmp_path / "team.yaml"
    file.write_text("entries:\n- {purpose: x, image: reg/a:1}\n", encoding="utf-8")
    (entry,) = read_library(file)
    assert entry.first_at == entry.last_at
    assert entry.first_at.year == 1970


@pytest.mark.parametrize(
    "line",
    [
        f"proxy: http://kim:{SECRET}@proxy.example:3128",
        f"notes: ['password={SECRET}']",
        f"HF_TOKEN: {SECRET}",
    ],
)
def test_a_credential_ends_the_import_unrepeated(tmp_path: Path, line: str) -> None:
    """H4: by value, inside a note, by name."""
    file = tmp_path / "team.yaml"
    file.write_text(f"entries:\n- purpose: x\n  image: a\n  {line}\n", encoding="utf-8")
    with pytest.raises(UserFileError) as caught:
        read_library(file)
    assert f"{file}:4: " in str(caught.value)
    assert "nothing was taken in" in str(caught.value)
    assert SECRET not in str(caught.value)


def test_a_credential_is_never_written(tmp_path: Path) -> None:
    bad = Entry(purpose="x", proxy=f"http://kim:{SECRET}@proxy.example:3128", first_at=at(0), last_at=at(0))
    good = Entry(purpose="y", image="reg/a:1", first_at=at(0), last_at=at(0))
    file = tmp_path / "team.yaml"
    assert write_library([bad, good], file) == (1, 1)
    assert SECRET not in file.read_text(encoding="utf-8")
    assert [entry.purpose for entry in read_library(file)] == ["y"]
