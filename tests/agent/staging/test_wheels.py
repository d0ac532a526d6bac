"""A package set on a real disk, and its check, held against pip's own resolver (D2)."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from agent.perform.checks_packages import packages
from agent.staging.wheels import shelf, wanted
from states.job import Check
from states.packages import Target, closure
from tests.agent.staging.test_environment import job_for


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    (tmp_path / "ws/wheels").mkdir(parents=True)
    return tmp_path / "ws"


def wheel(folder: Path, name: str, version: str, *needs: str, tag: str = "py3-none-any") -> None:
    """A real wheel that pip would install."""
    info = f"{name}-{version}.dist-info"
    with zipfile.ZipFile(folder / f"{name}-{version}-{tag}.whl", "w") as archive:
        archive.writestr(f"{name}.py", "")
        fields = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        archive.writestr(f"{info}/METADATA", fields + "".join(f"Requires-Dist: {need}\n" for need in needs))
        archive.writestr(f"{info}/WHEEL", f"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: {tag}\n")
        archive.writestr(f"{info}/RECORD", "")


def check(workspace: Path, **request: Any) -> Check:
    return packages(job_for(workspace, **request), None)  # type: ignore[arg-type]


STATED = {"wheels": "wheels", "python": "3.11"}


def test_a_whole_set_is_fine_and_a_build_may_lean_on_it(workspace: Path) -> None:
    (workspace / "requirements.txt").write_text("grid\n-r more.txt\n")
    (workspace / "more.txt").write_text("units>=2\n")
    wheel(workspace / "wheels", "grid", "1.0", "units")
    wheel(workspace / "wheels", "units", "2.5")
    row = check(workspace, packages=STATED)
    assert (row.level, row.facts) == ("fine", {"requirements": "requirements.txt", "wheels": "wheels"})


def test_half_a_set_that_was_stated_is_refused_with_the_names_and_the_command(workspace: Path) -> None:
    (workspace / "requirements.txt").write_text("grid\n")
    wheel(workspace / "wheels", "grid", "1.0", "units>=2", "deep")
    row = check(workspace, packages=STATED)
    assert row.level == "refuse"
    assert "units>=2 (for grid); deep (for grid)" in row.evidence
    assert "pip download -r requirements.txt -d wheels" in row.mend


def test_half_a_set_that_only_lies_there_is_told_and_not_used(workspace: Path) -> None:
    (workspace / "requirements.txt").write_text("grid\n")
    wheel(workspace / "wheels", "units", "1.0", tag="cp311-cp311-manylinux_2_17_x86_64")
    row = check(workspace)
    assert (row.level, row.facts) == ("warn", {})


def test_a_set_for_a_python_that_nobody_named_is_not_judged(workspace: Path) -> None:
    (workspace / "requirements.txt").write_text("grid\n")
    wheel(workspace / "wheels", "grid", "1.0")
    assert check(workspace).level == "could_not"


def test_the_python_is_told_by_the_wheels_where_they_agree(workspace: Path) -> None:
    wheel(workspace / "wheels", "grid", "1.0", tag="cp312-cp312-manylinux_2_17_x86_64")
    assert shelf(workspace / "wheels").python() == "3.12"
    wheel(workspace / "wheels", "units", "1.0", tag="cp311-cp311-manylinux_2_17_x86_64")
    assert shelf(workspace / "wheels").python() == ""


def test_a_wheel_that_broke_off_is_named_and_does_not_count(workspace: Path) -> None:
    (workspace / "requirements.txt").write_text("grid\n")
    (workspace / "wheels/grid-1.0-py3-none-any.whl").write_bytes(b"PK\x03\x04 half")
    row = check(workspace, packages=STATED)
    assert row.level == "refuse"
    assert "Not whole archives: grid-1.0-py3-none-any.whl" in row.evidence


def test_what_is_installed_is_checked_where_no_wheels_are_named(workspace: Path) -> None:
    info = workspace / "env/lib/python3.11/site-packages/grid-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Name: grid\nVersion: 1.0\nRequires-Dist: units\n")
    (workspace / "requirements.txt").write_text("grid\n")
    row = check(workspace, environment="env", packages={})
    assert row.level == "refuse"
    assert "units (for grid)" in row.evidence


def test_a_file_outside_the_workspace_is_not_read(workspace: Path) -> None:
    (workspace.parent / "other.txt").write_text("grid\n")
    (workspace / "requirements.txt").write_text("-r ../other.txt\n")
    assert check(workspace, packages=STATED).level == "refuse"
    with pytest.raises(FileNotFoundError, match="outside"):
        wanted(workspace, "../other.txt")


def test_a_workspace_that_cannot_be_seen(workspace: Path) -> None:
    assert check(workspace / "gone", packages=STATED).level == "could_not"
    assert check(workspace / "gone").level == "fine"


@pytest.mark.parametrize("lacking", ["", "units", "deep"])
def test_pip_finds_whole_what_this_finds_whole(workspace: Path, lacking: str) -> None:
    """The oracle: pip's resolver, offline, on this machine's own target."""
    folder = workspace / "wheels"
    for name, needs in {
        "grid": ("units>=2", "old; python_version < '3'"),
        "units": ("deep[x]",),
        "deep": (),
    }.items():
        if name != lacking:
            wheel(folder, name, "2.0", *needs)
    (workspace / "requirements.txt").write_text("grid\n")
    pip = [sys.executable, "-m", "pip", "install", "--dry-run", "--no-index", "--find-links", str(folder)]
    pip += [
        "--ignore-installed",
        "--disable-pip-version-check",
        "-q",
        "-r",
        str(workspace / "requirements.txt"),
    ]
    resolved = subprocess.run(pip, capture_output=True, text=True, timeout=120).returncode == 0
    target = Target(f"3.{sys.version_info.minor}")
    found = closure(wanted(workspace, "requirements.txt"), shelf(folder).staged, target)
    assert found.complete is resolved is (lacking == "")
    assert [one.name for one in found.missing] == ([lacking] if lacking else [])
