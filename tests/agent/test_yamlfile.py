"""What people write in YAML: read without guessing, refused with the line and the way out.

Never: a credential that is one; a file outside the test's own folder.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field, field_validator

from agent.yamlfile import SIZE_MAX, UserFileError, read_document, read_yaml


class Part(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: str
    weight: float = 1.0


class Order(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    command: list[str] = Field(default_factory=list)
    env: dict[str, str] = Field(default_factory=dict)
    gpu: int = 0
    lane: Literal["normal", "idle"] = "normal"
    wait: str | None = None
    detach: bool = False
    parts: list[Part] = Field(default_factory=list)
    main: Part | None = None
    ratio: float = 0.5
    free: Any = None

    @field_validator("gpu")
    @classmethod
    def _not_negative(cls, value: int) -> int:
        if value < 0:
            raise ValueError("give 0 for a CPU job")
        return value


def read(text: str) -> Order:
    return read_yaml(text, model=Order, what="the request")


def faults(text: str) -> list[str]:
    with pytest.raises(UserFileError) as caught:
        read(text)
    return list(caught.value.faults)


# --- values as they are written -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "written",
    ["on", "off", "yes", "no", "y", "N", "1:30", "007", "1.10", "2026-11-30", "1e3", "true", "0x1F", "64Gi"],
)
def test_a_text_field_gets_what_was_written(written: str) -> None:
    order = read(f"wait: {written}\nenv: {{A: {written}}}\ncommand: [run, {written}]")
    assert (order.wait, order.env["A"], order.command[1]) == (written, written, written)


@pytest.mark.parametrize(
    ("written", "value"), [("on", True), ("no", False), ("true", True), ("False", False)]
)
def test_a_boolean_field_takes_the_usual_words(written: str, value: bool) -> None:
    assert read(f"detach: {written}").detach is value


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("12", 12), ("-3", -3), ("1e-4", 1e-4), (".5", 0.5), ("007", "007"), ("0o17", 15), ("~", None),
        ("", None), ("2026-11-30", "2026-11-30"), ("1:30", "1:30"), ("'12'", "12"), ("!!str 12", "12"),
        ("1_000", "1_000"), ("yes", "yes"), ("=", "="), (".inf", float("inf")), ("|\n  a\n  b\n", "a\nb\n"),
    ],
)  # fmt: skip
def test_a_free_field_follows_yaml_1_2(written: str, value: object) -> None:
    assert read(f"free: {written}").free == value


def test_aliases_and_merges_are_followed() -> None:
    order = read("free: &base {name: a, weight: 2}\nmain:\n  name: b\n  <<: *base\nparts: [*base, *base]\n")
    assert order.main == Part(name="b", weight=2)
    assert order.parts == [Part(name="a", weight=2)] * 2


def test_an_empty_file_is_an_empty_mapping(tmp_path: Path) -> None:
    (tmp_path / "order.yaml").write_bytes(b"\xef\xbb\xbf# nothing yet\n---\n")
    assert read_yaml(tmp_path / "order.yaml", model=Order, what="the request") == Order()


# --- faults, with their lines -------------------------------------------------------------------------------


def test_all_faults_come_at_once_in_the_order_of_the_file() -> None:
    text = "gpus: 2\nlane: fast\nratio: much\nparts:\n- name: a\n  wieght: 2\n- weight: 1\ngpu: -1\n"
    assert faults(text) == [
        "the request:1: unknown field 'gpus'; did you mean 'gpu'?",
        "the request:2: 'lane' must be one of normal, idle, not 'fast'",
        "the request:3: 'ratio' must be a number, not 'much'",
        "the request:6: unknown field 'wieght'; did you mean 'weight'?",
        "the request:7: 'parts.1.name' is missing; add `name: ...`",
        "the request:8: 'gpu': give 0 for a CPU job",
    ]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("\nmain: {name: x, zzz: 1}", "the request:2: unknown field 'zzz'; known here: name, weight"),
        ("gpu: 1\n\ngpu: 2", "the request:3: 'gpu' is there twice (line 1 too); keep one"),
        ("gpu:", "the request:1: 'gpu' is empty; it must be a whole number"),
        ("gpu: yes", "the request:1: 'gpu' must be a whole number, not 'yes'"),
        ("env:\n  A:\n", "the request:2: 'env.A' is empty; it must be text"),
        ("command: run", "the request:1: 'command' must be a list, not 'run'"),
        ("lane: idel", "the request:1: 'lane' must be one of normal, idle, not 'idel'; did you mean 'idle'?"),
        ("- a", "the request:1: the request is `name: value` lines, not a list or a bare value"),
        ("gpu: 1\n---\ngpu: 2", "the request:2: a second document begins (`---`); one file, one document"),
        ("free: !!python/object/apply:os.getcwd []", "the request:1: the tag"),
        ("free: !include x", "the request:1: the tag !include is not read here"),
        ("free: &a [*a]", "the request:1: the alias *a is unknown, or inside itself"),
        ("free: *b", "the request:1: "),
        ("a: b: c", "the request:1: not valid YAML: mapping values are not allowed"),
        ("gpu: 1\n\tlane: idle", "the request:2: not valid YAML: "),
        ("free: \x00", "the request:1: "),
        ("? [a, b]\n: 1", "the request:1: a field's name is a word"),
        ("<<: 3", "the request:1: `<<` takes a mapping"),
    ],
)
def test_a_fault_says_where_and_what_to_do(text: str, fault: str) -> None:
    assert faults(text)[0].startswith(fault)


def test_a_fault_in_a_file_names_the_file(tmp_path: Path) -> None:
    path = tmp_path / "order.yaml"
    path.write_text("lane: fast")
    with pytest.raises(UserFileError, match=rf"^{path}:1: 'lane' must be one of"):
        read_yaml(path, model=Order, what="the request")


@pytest.mark.parametrize("make", ["missing", "folder", "binary"])
def test_a_file_that_cannot_be_read_is_said_so(tmp_path: Path, make: str) -> None:
    path = tmp_path / "order.yaml"
    if make == "folder":
        path.mkdir()
    if make == "binary":
        path.write_bytes(b"gpu: 1\nwait: \xff\xfe")
    with pytest.raises(UserFileError) as caught:
        read_yaml(path, model=Order, what="the request")
    expected = {"missing": ": no such file", "folder": ": is a directory", "binary": ":2: not UTF-8 text"}[
        make
    ]
    assert str(caught.value).startswith(f"{path}{expected}")


@pytest.mark.parametrize(
    "text", ["gpu: hf" + "_QwErTyUiOpAsDfGhJkLz", "main: {name: x, weight: 'password=hunter2'}"]
)
def test_a_message_repeats_no_credential(text: str) -> None:
    (fault,) = faults(text)
    assert "QwErTy" not in fault
    assert "hunter2" not in fault


# --- limits -------------------------------------------------------------------------------------------------

BOMB = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 10)
)


@pytest.mark.parametrize(
    "text",
    [
        "free: " + "x" * SIZE_MAX,
        "free: " + "[" * 100_000,
        "free: " + "{a: " * 50_000,
        "".join(" " * n + "a:\n" for n in range(60)),
        BOMB,
        "free: [" + "1," * 200_000 + "]",
        "free: [&a 1, " + "*a," * 500 + "]",
    ],
    ids=["size", "flow depth", "mapping depth", "block depth", "unfolding", "values", "aliases"],
)
def test_what_is_oversized_is_refused_soon(text: str) -> None:
    start = time.thread_time()
    (fault,) = faults(text)
    assert fault.startswith("the request")
    assert time.thread_time() - start < 5


def test_a_large_file_is_not_read_whole(tmp_path: Path) -> None:
    with (tmp_path / "big.yaml").open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(UserFileError, match="larger than 1 MiB"):
        read_yaml(tmp_path / "big.yaml", model=Order, what="the request")


@given(st.text(st.sampled_from("ab: -[]{},&*!|>'\"#\n\t?%@<~01.é\u2028\x85"), max_size=60))
def test_any_text_is_read_or_refused_with_a_fault(text: str) -> None:
    try:
        data, said = read_document(text, what="the request").data, ()
    except UserFileError as error:
        data, said = {}, error.faults
    assert isinstance(data, dict)
    assert [fault for fault in said if not fault.startswith("the request:")] == []
