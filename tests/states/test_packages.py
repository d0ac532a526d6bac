"""Whether a staged set is whole: the closure for the target, and each way in which a package is missing (D2)."""

from __future__ import annotations

import pytest

from states.packages import (
    Closure,
    Staged,
    Target,
    closure,
    headers,
    installed,
    locked_lines,
    requirement_lines,
    source_archive,
    staged_wheel,
)

TARGET = Target("3.11", "manylinux_2_28_x86_64")


def wheel(file: str, *needs: str, python: str = "") -> Staged:
    fields = ["Metadata-Version: 2.1", *(f"Requires-Dist: {need}" for need in needs)]
    fields += [f"Requires-Python: {python}"] if python else []
    found = staged_wheel(file, "\n".join(fields) + "\n\nRequires-Dist: not-a-field\n")
    assert found is not None
    return found


def missing(wanted: str, *staged: Staged, target: Target = TARGET) -> list[str]:
    found: Closure = closure(requirement_lines(wanted), staged, target)
    return [one.words for one in found.missing]


def test_a_whole_set_is_complete_and_tells_what_it_takes() -> None:
    staged = (
        wheel("Grid_Tools-1.2-py3-none-any.whl", "fast.path>=1"),
        wheel("fast_path-1.4-py3-none-any.whl"),
    )
    found = closure(requirement_lines("grid-tools\n"), staged, TARGET)
    assert found.complete
    assert found.chosen == {"fast-path": "1.4", "grid-tools": "1.2"}


def test_what_a_requirement_requires_is_missed_by_name_with_who_asks() -> None:
    """The half-staged set: the top is there, what is below it is not."""
    staged = (
        wheel("grid-1.2-py3-none-any.whl", "fastpath>=1", "units"),
        wheel("units-3-py3-none-any.whl", "deep<2"),
    )
    assert missing("grid", *staged) == ["fastpath>=1 (for grid)", "deep<2 (for units)"]


@pytest.mark.parametrize(
    ("file", "said"),
    [
        ("a-2.0-cp311-cp311-macosx_11_0_arm64.whl", "is for another platform"),
        ("a-2.0-cp311-cp311-manylinux_2_35_x86_64.whl", "is for another platform"),
        ("a-2.0-cp312-cp312-manylinux_2_17_x86_64.whl", "is for another Python"),
        ("a-2.0.tar.gz", "is a source archive, which would have to be built"),
    ],
)
def test_what_is_there_and_does_not_do_is_named(file: str, said: str) -> None:
    staged = source_archive(file) if file.endswith(".gz") else wheel(file)
    assert staged is not None
    assert missing("a>=2", staged) == [f"a>=2 ({file} {said})"]


def test_a_version_or_a_python_that_does_not_do_is_named() -> None:
    assert missing("a>=2", wheel("a-1.0-py3-none-any.whl")) == ["a>=2 (only 1.0 is staged)"]
    newer = wheel("a-2.0-py3-none-any.whl", python=">=3.12")
    assert missing("a>=2", newer) == ["a>=2 (a-2.0-py3-none-any.whl is for another Python)"]


@pytest.mark.parametrize(
    "file",
    [
        "a-2.0-cp311-cp311-manylinux_2_17_x86_64.manylinux2014_x86_64.whl",
        "a-2.0-cp38-abi3-manylinux_2_28_x86_64.whl",
        "a-2.0-py2.py3-none-any.whl",
        "a-2.0-cp311-none-linux_x86_64.whl",
    ],
)
def test_wheels_that_the_target_takes(file: str) -> None:
    assert missing("a", wheel(file)) == []


def test_without_a_glibc_any_manylinux_is_taken() -> None:
    """The image's glibc is not known then."""
    newer = wheel("a-2.0-cp311-cp311-manylinux_2_35_x86_64.whl")
    assert missing("a", newer, target=Target("3.11")) == []
    assert missing("a", newer, target=Target("3.11", "linux_aarch64")) != []


def test_markers_are_read_for_the_target_not_for_this_machine() -> None:
    lines = "old; python_version < '3.9'\nwin; sys_platform == 'win32'\narm; platform_machine == 'aarch64'\n"
    assert missing(lines) == []
    assert missing(lines, target=Target("3.8", "linux_aarch64")) == ["old", "arm"]


def test_extras_are_followed_and_only_those_asked_for() -> None:
    top = wheel("grid-1-py3-none-any.whl", "plot; extra == 'plots'", "base", "gpu; extra == 'gpu'")
    base = wheel("base-1-py3-none-any.whl")
    assert missing("grid[plots]", top, base) == ["plot (for grid)"]
    assert missing("grid", top, base) == []


def test_two_that_ask_differently_are_both_heard() -> None:
    staged = (
        wheel("a-1-py3-none-any.whl", "c<2"),
        wheel("b-1-py3-none-any.whl", "c>=2"),
        wheel("c-1.5-py3-none-any.whl"),
        wheel("c-2.5-py3-none-any.whl"),
    )
    assert missing("a\nb", *staged) == ["c<2,>=2 (for b; only 1.5, 2.5 is staged)"]


def test_a_ring_of_requirements_ends() -> None:
    staged = (wheel("a-1-py3-none-any.whl", "b"), wheel("b-1-py3-none-any.whl", "a"))
    assert missing("a", *staged) == []


def test_the_lines_of_a_requirements_file() -> None:
    text = (
        "# a comment\n--index-url https://index.example/simple\nalpha==1.0 \\\n    --hash=sha256:00\n"
        "beta[x]>=2 ; python_version > '3'  # why\n-r more.txt\n-e .\ngit+https://host.example/x.git\n"
        "./local.whl\nno such = line\n"
    )
    found = requirement_lines(text)
    assert found.lines == ("alpha==1.0", "beta[x]>=2 ; python_version > '3'")
    assert found.reads == ("more.txt",)
    assert found.unread == ("-e .", "git+https://host.example/x.git", "./local.whl", "no such = line")


def test_what_no_standard_covers_is_not_called_whole() -> None:
    found = closure(requirement_lines("-e ."), (), TARGET)
    assert not found.complete
    assert found.unread == ("-e .",)


def test_a_requirement_by_url_is_told_apart() -> None:
    top = wheel("grid-1-py3-none-any.whl", "odd @ https://host.example/odd.whl")
    assert closure(requirement_lines("grid"), (top,), TARGET).unread == (
        "odd @ https://host.example/odd.whl",
    )


LOCK = """
version = 1
[[package]]
name = "mine"
version = "0.1"
source = { virtual = "." }
dependencies = [
  { name = "grid", extra = ["plots"] },
  { name = "old", marker = "python_full_version < '3.9'" },
]
[[package]]
name = "grid"
version = "1.2"
source = { registry = "somewhere" }
dependencies = [{ name = "base" }]
[package.optional-dependencies]
plots = [{ name = "plot" }]
[[package]]
name = "base"
version = "2.0"
[[package]]
name = "plot"
version = "3.0"
[[package]]
name = "old"
version = "0.9"
[[package]]
name = "unreached"
version = "9"
"""


def test_a_uv_lock_pins_what_its_roots_reach() -> None:
    found = locked_lines(LOCK)
    assert set(found.lines) == {
        "grid==1.2",
        "base==2.0",
        "plot==3.0",
        "old==0.9 ; (python_full_version < '3.9')",
    }
    staged = [wheel(f"{name}-py3-none-any.whl") for name in ("grid-1.2", "base-2.0")]
    assert [one.name for one in closure(found, staged, TARGET).missing] == ["plot"]


def test_another_text_is_no_lock() -> None:
    with pytest.raises(ValueError, match=r"no uv\.lock"):
        locked_lines("numpy==1\n[[")


def test_what_is_installed_is_judged_like_what_is_staged() -> None:
    metadata = "Name: Grid\nVersion: 1.2\nRequires-Dist: base>=2\n\nlong words: here"
    found = installed(metadata)
    assert found is not None
    assert missing("grid", found) == ["base>=2 (for grid)"]
    assert installed("Summary: nothing\n") is None


def test_headers_end_where_the_description_begins() -> None:
    assert headers("A: 1\r\nB: 2\r\n   more\r\n\r\nC: 3\r\n") == {"a": ["1"], "b": ["2"]}
    assert staged_wheel("not-a-wheel.txt", "") is None
    assert source_archive("notes.tar.gz") is None
