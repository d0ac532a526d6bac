"""What people and jobs write is read within bounds: size, depth, aliases; nothing of it is built or run.

Never: a limit that only one of the readers keeps.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from agent.clusters import wrapper
from agent.clusters.base import Refused
from agent.clusters.kubernetes_overlay import fragment
from agent.native import convert
from agent.yamlfile import SIZE_MAX, UserFileError, read_document
from agent.yamlparse import parse

MANIFEST = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: x}\nspec:\n  template: "
LETTERS = "abcdefghij"
LAUGHS = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{here}: &{here} [{', '.join([f'*{before}'] * 10)}]\n" for before, here in pairwise(LETTERS)
)
"""Ten lines that would unfold into ten thousand million values."""

HOSTILE = {
    "laughs": LAUGHS,
    "merged laughs": "a: &a {x: 1}\n"
    + "".join(f"m{n}: {{<<: [{', '.join(['*a'] * 90)}]}}\n" for n in range(9)),
    "inside itself": "a: &a\n  b: *a\n",
    "deep lists": "a: " + "[" * 20_000,
    "deep mappings": "{a: " * 20_000,
    "deep blocks": "\n".join(" " * n + "a:" for n in range(3_000)),
    "a call": "a: !!python/object/apply:os.system ['touch pwned']",
    "a class": "a: !!python/name:os.system",
    "a file": "a: !include /etc/passwd",
    "large": "a: " + "x" * SIZE_MAX,
    "many values": "a: [" + "1, " * 100_000 + "1]",
    "two documents": "a: 1\n---\na: 2\n",
    "NUL": "a: b\0c",
}

READERS: dict[str, Callable[[str], Any]] = {
    "a request, scenario or setting": lambda text: read_document(text, what="the request"),
    "a manifest": lambda text: convert(
        MANIFEST + "\n    " + text.replace("\n", "\n    "), path="x.yaml", home="/x"
    ),
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_is_refused_in_words_and_within_bounds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reader: str, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserFileError):
        READERS[reader](HOSTILE[name])
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", HOSTILE)
def test_the_lint_reads_any_manifest_and_builds_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    text = HOSTILE[name]
    parse(text if len(text) < 100_000 else text[:100_000])
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("opening", ["[", '{"a":', '[{"a":'])
def test_json_without_a_bottom_is_no_crash(tmp_path: Path, opening: str) -> None:
    """The record of a job lies where the job can write it; extra arguments are a person's."""
    deep = opening * 100_000
    with pytest.raises(Refused):
        fragment(deep)
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "exit.json").write_text(deep)
    (folder / "start").write_text(deep[: wrapper.RECORD_BYTES_MAX])
    assert wrapper.record(folder) is None


LEAVES = some.none() | some.booleans() | some.integers() | some.floats() | some.text(max_size=9)
ANYTHING = some.recursive(
    LEAVES,
    lambda inner: some.lists(inner, max_size=4) | some.dictionaries(some.text(max_size=9), inner, max_size=4),
    max_leaves=12,
)


@given(ANYTHING)
def test_the_record_of_a_job_may_be_anything(tmp_path_factory: pytest.TempPathFactory, found: Any) -> None:
    folder = tmp_path_factory.getbasetemp() / "any-record"
    folder.mkdir(exist_ok=True)
    for name in ("exit.json", "start"):
        (folder / name).write_text(json.dumps(found))
    assert wrapper.record(folder) is None


PIECES = [
    "a: ", "- ", "&a ", "*a", "<<: ", "!!str ", "!x ", "{", "}", "[", "]", "\n", "  ", "'", '"', "|", ">", "#",
    "---", "?", ",", "\t", "\x00",
]  # fmt: skip


@given(some.text(max_size=200) | some.lists(some.sampled_from(PIECES), max_size=40).map("".join))
def test_any_text_is_read_or_refused_in_words(text: str) -> None:
    parse(text)
    try:
        read_document(text, what="the request")
    except UserFileError as refused:
        words = str(refused)
    else:
        words = "read"
    assert words
