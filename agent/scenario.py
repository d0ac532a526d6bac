"""Scenarios from the outside: run files, record a run as a story, write a new one (`wk scenario`).

A file is a story (`agent/scenarios/model.py`) or a recorded run (`recorded:`); both are checked field by field with
the line of each fault.

Never: a wait, a network, or a run of the person's own store.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from agent.scenarios.model import Story
from agent.scenarios.play import Played, play
from agent.scenarios.recorded import Recorded, replay
from agent.scenarios.recorded import record as record_run
from agent.scenarios.template import TEMPLATE
from agent.yamlfile import UserFileError, read_document, validate
from states.rulebook import RULES, SECTIONS, STATIC

SUFFIXES = (".yaml", ".yml")

MANY = 16
"""From so many stories on, further processes are worth their start."""


class Result(NamedTuple):
    """One file. faults: empty when it holds."""

    path: Path
    title: str
    covers: tuple[str, ...]
    faults: tuple[str, ...]


class Outcome(NamedTuple):
    """All files. lines: what to print."""

    results: tuple[Result, ...]
    lines: tuple[str, ...]

    @property
    def failed(self) -> int:
        """How many files do not hold."""
        return sum(bool(result.faults) for result in self.results)


def run_files(paths: Sequence[Path | str], *, table: bool = False) -> Outcome:
    """Play every story at these paths (files, or folders with all below them).

    table: print which rules are shown by which files instead. Raises UserFileError when no file is there.
    """
    results = _played(files_of(paths))
    shown = [*table_lines(results), ""] if table else []
    lines = [*shown, *(line for result in results for line in _lines(result, brief=table))]
    failed = sum(bool(result.faults) for result in results)
    lines.append(
        f"{len(results)} scenarios, {failed} failed" if failed else f"{len(results)} scenarios, all hold"
    )
    return Outcome(results, tuple(lines))


def _played(files: Sequence[Path]) -> tuple[Result, ...]:
    """Every file's result, in order. Many are shared out over the processors: a story needs nothing of another."""
    if len(files) < MANY:
        return tuple(map(run_file, files))
    from concurrent.futures import ProcessPoolExecutor

    with ProcessPoolExecutor() as pool:
        return tuple(pool.map(run_file, files, chunksize=2))


def run_file(path: Path) -> Result:
    """Play one file. Faults of the file itself (its YAML, its fields) are faults of the result."""
    try:
        played = play_file(path)
    except UserFileError as error:
        return Result(path, "", (), error.faults)
    return Result(path, played.title, played.covers, played.faults)


def play_file(path: Path) -> Played:
    """Read and play one file. Raises UserFileError with a line for each fault of the file."""
    document = read_document(path, what="the scenario")
    if "recorded" not in document.data:
        return play(validate(document, Story), beside=path.parent)
    story = validate(document, Recorded)
    found = replay(story)
    seconds = story.recorded[-1].at if story.recorded else 0.0
    faults = () if found is None else (str(found),)
    return Played(story.title, story.covers, faults, seconds, len(story.recorded))


def record(run: str, app: Any) -> str:
    """A run of this Watchkeeper as a recorded scenario: YAML text. run: its id or a unique beginning.

    Raises Unknown for a run that is not there, ValueError when the machine has changed its mind since.
    """
    import yaml

    store = app.store
    job = store.load(store.find(run))
    data = record_run(job, store.journal(job.id), store.effects_of(job.id))
    text: str = yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=110)
    return text


def new(path: Path | str) -> Path:
    """Write a commented story to start from. Raises UserFileError when something is there already."""
    file = Path(path)
    if file.exists():
        raise UserFileError(f"{file}: is there already; give another name")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(TEMPLATE, encoding="utf-8")
    return file


def files_of(paths: Iterable[Path | str]) -> list[Path]:
    """The story files at these paths, in order. Raises UserFileError for a path that is not there."""
    found: list[Path] = []
    for path in map(Path, paths):
        if path.is_dir():
            found += sorted(file for suffix in SUFFIXES for file in path.rglob(f"*{suffix}"))
        elif path.is_file():
            found.append(path)
        else:
            raise UserFileError(f"{path}: no such file or folder; give a scenario or a folder of them")
    if not found:
        raise UserFileError(f"no scenario at {', '.join(map(str, paths))}; `wk scenario new PATH` writes one")
    return found


def table_lines(results: Sequence[Result]) -> list[str]:
    """Rule by rule, the files that show it; what no file shows is said."""
    lines: list[str] = []
    for section, what in SECTIONS.items():
        lines.append(f"{section}  {what}")
        for rule, text in RULES.items():
            if rule[0] != section:
                continue
            files = [result.path.stem for result in results if rule in result.covers]
            shown = ", ".join(files) or ("(static: shown by a test)" if rule in STATIC else "-")
            lines.append(f"  {rule:<4} {text}")
            lines.append(f"       {shown}")
    covered = {rule for result in results for rule in result.covers}
    lines.append(f"{len(covered)} of {len(RULES) - len(STATIC)} rules are shown")
    return lines


def _lines(result: Result, *, brief: bool) -> list[str]:
    if brief and not result.faults:
        return []
    mark = "FAIL" if result.faults else "ok  "
    return [f"{mark} {result.path}  {result.title}", *(f"       {fault}" for fault in result.faults)]
