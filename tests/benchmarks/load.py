"""Load and cost as a table: what a hundred thousand watched runs and a million past ones take.

    python -m tests.benchmarks.load                                          a tenth of that, in about a minute
    python -m tests.benchmarks.load --watched 100000 --past 1000000 --write docs/performance.md

Each line has its target where there is one, and says whether it is met. `--write` puts the table between the marks of
that page and leaves the text around it alone.

Never: a figure that fails anything; the tests look at the table's form alone.
"""

from __future__ import annotations

import argparse
import os
import platform
import sqlite3
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from agent.clock import SystemClock
from tests.benchmarks import load_program, load_turns
from tests.benchmarks.load_process import CADENCE_S, Carried, carried
from tests.benchmarks.load_reads import reads
from tests.benchmarks.load_rows import Filled, fill

MARKS = ("<!-- figures: written by the command above them -->", "<!-- end of the figures -->")
KIB_A_RUN_MAX = 2 * 1024**2 / 100_000
"""2 GB for 100,000 watched runs."""
START_S_MAX = 5.0
IDLE_MIB_MAX, IDLE_SHARE_MAX = 100.0, 0.003
PAGE_MS_MAX, LOOK_MS_MAX, COMMAND_S_MAX = 500.0, 100.0, 1.0
"""Own bounds where the project set none: what feels like at once."""


class Line(NamedTuple):
    """One line of the table. most: the target, which the value must not exceed; None: a figure alone."""

    what: str
    value: float
    unit: str
    most: float | None = None

    @property
    def met(self) -> str:
        """Whether the target is met, in a word."""
        return "" if self.most is None else "yes" if self.value <= self.most else "**no**"


class Sizes(NamedTuple):
    """How large and how long. idle_s: a resident agent is watched; look_s: a round of reads; runs: whole ones."""

    watched: int = 10_000
    past: int = 100_000
    idle_s: float = 20.0
    look_s: float = 0.4
    runs: int = 20


def lines(folder: Path, sizes: Sizes, *, postgres_url: str = "") -> Iterator[Line]:
    """Each as it is taken; the folder is left with the database in it."""
    filled = fill(folder, watched=sizes.watched, past=sizes.past)
    yield from _disk(filled)
    yield from _waves(filled)
    yield from _idle(filled, sizes.idle_s)
    yield from _news(sizes.runs, postgres_url)
    yield from _reads(filled, sizes.look_s)


def _disk(filled: Filled) -> Iterator[Line]:
    yield Line("disk: the database", filled.file.stat().st_size / 1e6, "MB")
    yield Line("disk: a past run in lists", filled.job_bytes / 1000, "kB")
    yield Line("disk: its whole journal, effects and messages", filled.journal_bytes / 1000, "kB")


def _waves(filled: Filled) -> Iterator[Line]:
    found: list[Carried] = []
    for due in _steps(filled.watched):
        found.append(carried(filled, due))
        yield from _wave(found[-1])
    least, most = found[0], found[-1]
    grown_kib = (most.rss_most - least.rss_most) * 1024
    a_run_kib, mib_max = grown_kib / (most.due - least.due), most.due * KIB_A_RUN_MAX / 1024
    news_ms = 1000 * (most.changed_cpu_s - most.quiet_cpu_s) / most.changed
    yield Line("wave: a run with news, CPU", news_ms, "ms")
    yield Line("memory: a watched run, while all are looked at", a_run_kib, "KiB", KIB_A_RUN_MAX)
    yield Line(f"memory: a process whose {most.due:,} runs are due, at most", most.rss_most, "MiB", mib_max)
    yield Line("memory: the same after its waves, shared pages by halves", most.pss_after, "MiB")
    yield Line(
        f"start: until the first call, {most.due:,} open runs, all due", most.start_s, "s", START_S_MAX
    )
    yield Line("start: the same, CPU", most.start_cpu_s, "s")
    yield Line("start: of that, freeing what a killed process held, wall", most.take_over_s, "s")


def _steps(watched: int) -> list[int]:
    """A hundredth, a tenth, all."""
    return [max(watched // 100, 1), max(watched // 10, 2), watched]


def _wave(found: Carried) -> Iterator[Line]:
    of = f"wave: {found.due:,} due"
    yield Line(f"{of}, nothing new, CPU", found.quiet_cpu_s, "s", CADENCE_S)
    yield Line(f"{of}, nothing new, wall", found.quiet_wall_s, "s")
    yield Line(f"{of}, nothing new, written", found.quiet_written_mb, "MB")
    yield Line(f"{of}, {found.changed:,} with news, CPU", found.changed_cpu_s, "s", CADENCE_S)
    yield Line(f"{of}, calls to the cluster", found.calls, "", 1)


def _idle(filled: Filled, for_s: float) -> Iterator[Line]:
    for words, what in ((("--no-web",), "without the page"), (("--port", "0"), "with the page")):
        found = load_program.idle(filled, *words, for_s=for_s)
        yield Line(f"idle: `wk serve` {what}, resident", found.rss_mib, "MiB", IDLE_MIB_MAX)
        yield Line(f"idle: `wk serve` {what}, PSS", found.pss_mib, "MiB")
        yield Line(f"idle: `wk serve` {what}, of a core", 100 * found.core_share, "%", 100 * IDLE_SHARE_MAX)
        yield Line(f"start: `wk serve` {what}, until it carries runs", found.ready_s, "s", START_S_MAX)


def _news(runs: int, postgres_url: str) -> Iterator[Line]:
    for found in load_turns.turns(runs, postgres_url):
        yield Line(f"{found.database}: effects performed and committed", found.effects_a_second, "1/s")
        yield Line(f"{found.database}: whole runs, from delegation to wrap-up", found.runs_a_second, "1/s")
        yield Line(f"{found.database}: CPU of an effect with its events", found.cpu_ms, "ms")
    late = load_turns.latency()
    yield Line("from a job's end to its report: looks", late.looks, "")
    yield Line("from a job's end to its report: at a 60 s cadence", late.virtual_s, "s", CADENCE_S)
    yield Line("from a job's end to its report: CPU", late.cpu_ms, "ms")


def _reads(filled: Filled, look_s: float) -> Iterator[Line]:
    for found in reads(filled, for_s=look_s):
        yield Line(found.what, found.ms, "ms", PAGE_MS_MAX if "board" in found.what else LOOK_MS_MAX)
    for words in (("jobs",), ("jobs", "--live"), ("show", filled.one_past), ("why", filled.one_past)):
        shown = " ".join(words).replace(filled.one_past, "RUN")
        yield Line(f"`wk {shown}`, a process", load_program.command_s(filled, *words), "s", COMMAND_S_MAX)


# --- as a page ---------------------------------------------------------------------------------------------


def page(found: Sequence[Line], sizes: Sizes, text: str) -> str:
    """The text with the table between its marks. ValueError: it has no marks."""
    before, begin, rest = text.partition(MARKS[0])
    _, end, after = rest.partition(MARKS[1])
    if not begin or not end:
        raise ValueError(f"the page has no place for the figures: {MARKS[0]} and {MARKS[1]}")
    rows = [f"| {one.what} | {_figure(one.value)} {one.unit} | {_target(one)} | {one.met} |" for one in found]
    head = ["| what | value | at most | met |", "|---|--:|--:|---|"]
    return "\n".join([before + begin, "", machine(sizes), "", *head, *rows, "", end]) + after


def machine(sizes: Sizes) -> str:
    """What was measured on, in a line."""
    return (
        f"{sizes.watched:,} watched runs, {sizes.past:,} past ones; {os.cpu_count()} cores, shared with other work, "
        f"{platform.machine()}; Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}; "
        f"{SystemClock().now():%Y-%m-%d}."
    )


def _figure(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:.3g}"


def _target(one: Line) -> str:
    return "" if one.most is None else f"{_figure(one.most)} {one.unit}".strip()


def main() -> None:
    """Measure, print each line as it is taken, and write the page if one is given."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.load", description=__doc__)
    parser.add_argument("--watched", type=int, default=Sizes().watched, help="runs that are watched")
    parser.add_argument("--past", type=int, default=Sizes().past, help="runs that are over")
    parser.add_argument(
        "--postgres", default="", metavar="URL", help="a database for the turns; else one is started"
    )
    parser.add_argument(
        "--folder", type=Path, help="where the database is made (11 kB a past run); else under /tmp"
    )
    parser.add_argument("--write", type=Path, metavar="PAGE", help="put the table into this page")
    given = parser.parse_args()
    sizes = Sizes(watched=given.watched, past=given.past)
    with tempfile.TemporaryDirectory(prefix="wk-load-", dir=given.folder) as folder:
        found = []
        for line in lines(Path(folder), sizes, postgres_url=given.postgres):
            found.append(line)
            target = f"(at most {_target(line)}: {line.met.strip('*')})" if line.most is not None else ""
            print(f"{line.what:<68} {_figure(line.value):>10} {line.unit:<4} {target}", flush=True)
    if given.write:
        given.write.write_text(page(found, sizes, given.write.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
