"""What is installed is what was looked at: every dependency pinned by version and digest, from a registry alone."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("lock", ["requirements.lock", "requirements-dev.lock"])
def test_every_requirement_is_pinned_by_digest(lock: str) -> None:
    entries = (ROOT / lock).read_text(encoding="utf-8").replace("\\\n", " ").splitlines()
    entries = [line for line in entries if line.strip() and not line.lstrip().startswith("#")]
    assert len(entries) > 30
    for line in entries:
        assert re.match(r"[A-Za-z0-9._-]+(?:\[[\w,-]+\])?==[\w.!+-]+ ", line), line[:80]
        assert re.search(r"--hash=sha256:[0-9a-f]{64}(?:\s|$)", line), line[:80]
        assert "://" not in line, line[:80]
        assert " @ " not in line, line[:80]


def test_nothing_comes_from_elsewhere_than_a_registry() -> None:
    with (ROOT / "pyproject.toml").open("rb") as file:
        project = tomllib.load(file)["project"]
    asked = [
        *project["dependencies"],
        *(one for some in project["optional-dependencies"].values() for one in some),
    ]
    assert not [one for one in asked if "@" in one or "://" in one]


def test_installing_checks_the_digests() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    installs = [line for line in makefile.splitlines() if line.startswith("\t$(INSTALL)") and " -r " in line]
    assert installs
    assert all("--require-hashes" in line for line in installs)
