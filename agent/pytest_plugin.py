"""The pytest plugin: every story below a folder `scenarios` is a test, one id per file (entry point `pytest11`).

It works in a person's own repository as in this one. A YAML file counts as a story when it has a `title:` and one of
a story's own fields at the left margin; other YAML files in such a folder are left alone.

Never: import the product before a story is played; collect what is not a story.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

FOLDER = "scenarios"
_TITLE = re.compile(r"^title:", re.MULTILINE)
_STORY = re.compile(r"^(?:covers|history|expect|recorded):", re.MULTILINE)
HEAD_CHARS = 20_000


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> ScenarioFile | None:
    """A story as a test file; None for everything else."""
    if file_path.suffix not in (".yaml", ".yml") or FOLDER not in file_path.parts[:-1]:
        return None
    head = file_path.read_text(encoding="utf-8", errors="replace")[:HEAD_CHARS]
    if not (_TITLE.search(head) and _STORY.search(head)):
        return None
    file: ScenarioFile = ScenarioFile.from_parent(parent, path=file_path)
    return file


class ScenarioFile(pytest.File):
    """One file, which is one test."""

    def collect(self) -> Iterator[pytest.Item]:
        yield ScenarioItem.from_parent(self, name="story")


class ScenarioItem(pytest.Item):
    """One story. It fails with a line for each thing that is not as it must be."""

    def runtest(self) -> None:
        from agent.scenario import run_file

        result = run_file(self.path)
        if result.faults:
            raise Unmet(result.title, result.faults)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], *args: Any, **kwargs: Any) -> Any:
        """The faults, not a traceback of the runner."""
        if isinstance(excinfo.value, Unmet):
            return str(excinfo.value)
        return super().repr_failure(excinfo)

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, 0, f"scenario {self.path.stem}"


class Unmet(Exception):
    """What a story says and what was seen differ."""

    def __init__(self, title: str, faults: tuple[str, ...]) -> None:
        super().__init__("\n".join([title or "the file cannot be read", *(f"  {fault}" for fault in faults)]))
