"""`simulate`: play many worlds drawn from seeds, and write down as a scenario what goes wrong.

Never: a touch of the person's own store or clusters.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Annotated

import typer

from agent.cli.output import Exit, Fault, JsonFlag, emit, say

PANEL = "Logs and scenarios"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("simulate", rich_help_panel=PANEL)(simulate)


def simulate(
    seeds: Annotated[
        str, typer.Option("--seeds", help="First and last seed, as 0..999, or one seed.", metavar="A..B")
    ] = "0..199",
    jobs: Annotated[int, typer.Option("--jobs", "-j", min=1, max=256, help="Processes.")] = 1,
    to: Annotated[Path, typer.Option("--to", help="The folder for failing stories, made small.")] = Path(
        "simulated"
    ),
    lab: Annotated[
        float,
        typer.Option(
            "--lab",
            min=0,
            max=366,
            metavar="DAYS",
            help="Watch all runs of so many days of a large lab instead.",
        ),
    ] = 0.0,
    of_all: Annotated[
        float,
        typer.Option(
            "--of-all", min=0.0001, max=1, metavar="SHARE", help="Of --lab: only this share of them."
        ),
    ] = 1.0,
    json_wanted: JsonFlag = False,
) -> None:
    """Play worlds drawn from seeds, with faults; the same seed is always the same world."""
    if lab:
        _lab(lab, of_all, jobs, to, json_wanted)
        return
    from agent.simulate import simulate as play

    chosen = range_of(seeds)
    with _counted(len(chosen), "worlds") as told:
        found = play(chosen, jobs=jobs, to=to, told=told)
    if json_wanted:
        emit(
            {
                **found._asdict(),
                "failed": [ran._asdict() for ran in found.failed],
                "saved": [str(file) for file in found.saved],
                "holds": found.holds,
            }
        )
    else:
        say(*found.lines())
    if not found.holds:
        raise typer.Exit(Exit.failed)


def _lab(days: float, of_all: float, jobs: int, to: Path, json_wanted: bool) -> None:
    from agent.simulation.lab import ASKED, lines, month, runs_in
    from agent.simulation.plots import bars, columns
    from agent.simulation.workers import watch_runs

    drawn = runs_in(days, of_all)
    with _counted(len(drawn), "runs") as told:
        found = month(watch_runs(drawn, jobs=jobs, told=told), days, of_all)
    asked = {kind: {ASKED: count} for kind, count in found.questions.items()}
    ended = [{what: count for what, count in day.items() if what != ASKED} for day in found.by_day]
    pictures = {
        "lab-ends.svg": bars("How each kind of run ended", found.ends),
        "lab-questions.svg": bars("Questions that were asked", asked),
        "lab-days-ended.svg": columns("Runs that were over, day by day", ended),
        "lab-days-asked.svg": columns(
            "Questions, day by day", [{ASKED: day.get(ASKED, 0)} for day in found.by_day]
        ),
    }
    to.mkdir(parents=True, exist_ok=True)
    for name, picture in pictures.items():
        (to / name).write_text(picture, encoding="utf-8")
    if json_wanted:
        emit(found._asdict())
    else:
        say(*lines(found), f"pictures: {', '.join(str(to / name) for name in pictures)}")
    if found.broken:
        raise typer.Exit(Exit.failed)


@contextmanager
def _counted(length: int, what: str) -> Iterator[Callable[[object], None]]:
    """How far it is, as a bar for who sits before a terminal."""
    if not sys.stderr.isatty():
        yield lambda one: None
        return
    only = Lock()  # what is done is told by a thread for each process
    with typer.progressbar(length=length, label=what, file=sys.stderr) as bar:

        def told(one: object) -> None:
            with only:
                bar.update(1)

        yield told


def range_of(text: str) -> range:
    """`3..7` -> 3, 4, 5, 6, 7; `3` -> 3. Raises Fault with an example."""
    first, dots, last = text.partition("..")
    if not first.isdigit() or (dots and not last.isdigit()):
        raise Fault(Exit.usage, f"{text!r} is no range of seeds; write it as 0..999, or 42 for one")
    chosen = range(int(first), int(last or first) + 1)
    if not chosen:
        raise Fault(Exit.usage, f"{text!r} is empty: the last seed stands before the first")
    return chosen
