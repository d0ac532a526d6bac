"""Does a scenario notice when a row of the table is broken? `python -m tests.mutation [--jobs N] [WORD...]`

Each row is broken in up to three ways, and the scenarios that pass by it are played until one fails:

- never: its guard never holds, so the row is as good as gone;
- always: its guard always holds (rows with a guard);
- silent: the state moves but the verb does nothing.

What no scenario notices is a survivor: printed, and an error unless `EXPLAINED` says why that is right. WORD: only
rows whose verb or rule contains it.

Never: a change to a file; a network.
"""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

from agent.scenario import files_of, run_file
from states import machine
from states.actions import stay
from states.machine import build
from states.table import TABLE, Row

ROOT = Path(__file__).parent.parent
STORY_CPU_S_MAX = 8.0
"""A story that works for longer on a broken table is spinning, which is noticed too. Seconds of this process's own
work, so that a busy machine notices nothing of itself."""

EXPLAINED: Mapping[str, str] = {
    "submitted/is_not_sought/stay/always": (
        "an answer that comes after its call was taken as lost bears the same key and is dropped by the store, so "
        "none comes behind a question; the machine takes it all the same (tests/states/test_machine.py)"
    ),
    "observed/nothing_is_watched/stay/never": (
        "nobody looks at an attempt that is only sought, so no story can tell of such a look; without the row the "
        "search over every sequence of events finds a second job (tests/states/test_machine.py)"
    ),
    "submitted/is_a_job_too_many/stop_the_late_one/always": (
        "a cluster answers a name that comes again by a new job or by a refusal; none gives an old job's id, so no "
        "story can bring a late answer about a job of the run's own"
    ),
}
"""Survivors that are right, by `<event>/<guard>/<verb>/<way>`, each with its reason."""


class Spinning(BaseException):
    """The story works for too long; no handler of the loop may swallow that."""


class Mutant(NamedTuple):
    """A row of the table by its place, broken in one way."""

    place: int
    way: str

    @property
    def name(self) -> str:
        line = TABLE[self.place]
        guard = line.when.__name__ if line.when else "always"
        return f"{'+'.join(line.on)}/{guard}/{line.do.__name__}/{self.way}"


class Verdict(NamedTuple):
    """by: the story that noticed; "" when none did. tried: how many were played."""

    mutant: Mutant
    by: str
    tried: int


class Passed(NamedTuple):
    """What one story does on the whole table. taken, refused: places of rows that were taken, whose guard said no.
    covers: rules that it shows. fault: it fails there already, so it can show nothing."""

    path: str
    covers: frozenset[str]
    cost_s: float
    taken: frozenset[int]
    refused: frozenset[int]
    fault: str = ""


def mutants(words: Sequence[str]) -> Iterator[Mutant]:
    """Every way to break every row that is meant."""
    for place, line in enumerate(TABLE):
        if words and not any(word in f"{line.do.__name__} {line.why}" for word in words):
            continue
        yield Mutant(place, "never")
        if line.when is not None:
            yield Mutant(place, "always")
        if line.do is not stay:
            yield Mutant(place, "silent")


def broken(mutant: Mutant) -> tuple[Row, ...]:
    """The table with this one row broken."""
    line = TABLE[mutant.place]
    changed = {
        "never": line._replace(when=lambda job, event: False),
        "always": line._replace(when=None),
        "silent": line._replace(do=stay),
    }[mutant.way]
    return (*TABLE[: mutant.place], changed, *TABLE[mutant.place + 1 :])


def pass_by(path: str) -> Passed:
    """Play a story on the whole table and write down which rows it asks and takes."""
    taken: set[int] = set()
    refused: set[int] = set()
    machine.MACHINE = build([_watched(place, line, taken, refused) for place, line in enumerate(TABLE)])
    began = time.process_time()
    played = run_file(Path(path))
    cost_s = time.process_time() - began
    fault = next(iter(played.faults), "")
    return Passed(path, frozenset(played.covers), cost_s, frozenset(taken), frozenset(refused), fault)


def _watched(place: int, line: Row, taken: set[int], refused: set[int]) -> Row:
    guard = line.when

    def do(job: Any, event: Any) -> Any:
        taken.add(place)
        return line.do(job, event)

    def when(job: Any, event: Any) -> bool:
        held = guard is None or guard(job, event)
        if not held:
            refused.add(place)
        return held

    do.__name__ = line.do.__name__
    return line._replace(when=when, do=do)


def judge(mutant: Mutant, stories: Sequence[str]) -> Verdict:
    """Play the stories on the broken table until one fails."""
    machine.MACHINE = build(broken(mutant))
    for tried, path in enumerate(stories, start=1):
        if _fails(path):
            return Verdict(mutant, Path(path).stem, tried)
    return Verdict(mutant, "", len(stories))


def _fails(path: str) -> bool:
    signal.signal(signal.SIGPROF, _too_long)
    signal.setitimer(signal.ITIMER_PROF, STORY_CPU_S_MAX)
    try:
        return bool(run_file(Path(path)).faults)
    except (Exception, Spinning):  # a broken table may break anything; that is noticed
        return True
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def _too_long(*_: object) -> None:
    raise Spinning


def main(words: Sequence[str]) -> int:
    """Print every survivor. 0: none, or each is explained."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("words", nargs="*")
    options = parser.parse_args(words)
    paths = [str(path) for path in files_of([ROOT / "scenarios"])]
    with ProcessPoolExecutor(options.jobs, get_context("fork"), initializer=_quietly) as pool:
        passed = list(pool.map(pass_by, paths))
        sound = [one for one in passed if not one.fault]
        wanted = list(mutants(options.words))
        verdicts = list(pool.map(judge, wanted, [_concerned(mutant, sound) for mutant in wanted]))
    for one in passed:
        if one.fault:
            print(f"{one.path} fails on the whole table: {one.fault}")
    return max(_report(verdicts), int(len(sound) < len(passed)))


def _quietly() -> None:
    """A broken table raises a lot, which is not shown; a story still hears what the loop had to swallow."""
    logging.getLogger().addHandler(logging.NullHandler())


def _concerned(mutant: Mutant, passed: Sequence[Passed]) -> list[str]:
    """The stories that a break can reach: those that took the row, or whose guard said no. Those that show the row's
    own rules come first, then the cheapest."""
    reached: Callable[[Passed], frozenset[int]] = (
        (lambda one: one.refused) if mutant.way == "always" else (lambda one: one.taken)
    )
    rules = frozenset(TABLE[mutant.place].why.split())
    found = [one for one in passed if mutant.place in reached(one)]
    return [one.path for one in sorted(found, key=lambda one: (not one.covers & rules, one.cost_s))]


def _report(verdicts: Sequence[Verdict]) -> int:
    survivors = [verdict for verdict in verdicts if not verdict.by]
    open_ones = [verdict for verdict in survivors if verdict.mutant.name not in EXPLAINED]
    for verdict in survivors:
        why = EXPLAINED.get(verdict.mutant.name, "")
        passed_by = f"{verdict.tried} stories pass by" if verdict.tried else "no story passes by"
        line = TABLE[verdict.mutant.place]
        print(f"{verdict.mutant.name}  ({line.why}; {passed_by}){': ' + why if why else ''}")
    print(
        f"{len(verdicts)} mutants of {len(TABLE)} rows: {len(verdicts) - len(survivors)} noticed, "
        f"{len(survivors) - len(open_ones)} explained, {len(open_ones)} unexplained"
    )
    return 1 if open_ones else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
