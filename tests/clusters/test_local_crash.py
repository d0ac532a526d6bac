"""The local cluster under SIGKILL: a client or a launcher killed at each step, and nothing lost or doubled.

A fork runs the real code under an audit hook that kills it at the n-th thing it does to the outside; then a
client comes by as it would in life.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agent.clusters import local_launcher
from agent.clusters.base import Ref
from agent.clusters.local_records import Store
from agent.clusters.local_request import job_of
from agent.clusters.local_time import now
from states.observation import Phase
from tests.clusters.bench import OVER, Eventually, look, submission
from tests.clusters.local_bench import LocalBench

OUTSIDE = ("open", "os.", "subprocess.", "fcntl.")
STEPS_MAX = 200
ONE_LINE = ("sh", "-c", "echo ran >>ran")
"""Adds one line to a file in the workspace, each time it runs."""


@pytest.fixture
def benches(tmp_path: Path) -> Iterator[Callable[[], LocalBench]]:
    """As many clusters as the code has steps; all run side by side."""
    made: list[LocalBench] = []

    def make() -> LocalBench:
        folder = tmp_path / str(len(made))
        folder.mkdir()
        made.append(LocalBench(folder))
        return made[-1]

    yield make
    for bench in made:
        bench.close()


def killed_at(step: int, work: Callable[[], object]) -> bool:
    """Do the work in a fork that is killed as it begins its `step`-th act outside; False: it finished."""
    child = os.fork()
    if child == 0:
        acts = 0

        def strike(event: str, _: tuple[Any, ...]) -> None:
            nonlocal acts
            acts += event.startswith(OUTSIDE)
            if acts == step + 1:  # and not again: the blow itself is an act
                os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(strike)
        try:
            work()
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


def ran(bench: LocalBench) -> int:
    """How often the command has run."""
    file = bench.workspace / "ran"
    return len(file.read_text().splitlines()) if file.exists() else 0


def test_a_submit_killed_at_any_step_leaves_nothing_or_one_job(
    benches: Callable[[], LocalBench], eventually: Eventually
) -> None:
    names: dict[str, LocalBench] = {}
    for step in range(STEPS_MAX):
        bench = benches()
        sent = submission(bench.spec(*ONE_LINE))
        names[sent.name] = bench
        if not killed_at(step, lambda bench=bench, sent=sent: bench.client().submit(sent)):
            break
    assert 10 < len(names) < STEPS_MAX
    kept = {name: bench for name, bench in names.items() if bench.client().find(name)}
    assert 0 < len(kept) < len(names)
    for name, bench in kept.items():
        eventually(lambda name=name, bench=bench: look(bench.client(), Ref(name)).phase in OVER)
        assert look(bench.client(), Ref(name)).phase == Phase.succeeded
    assert {name: ran(bench) for name, bench in names.items()} == {name: int(name in kept) for name in names}


def test_a_launcher_killed_at_any_step_neither_loses_nor_doubles_its_job(
    benches: Callable[[], LocalBench], eventually: Eventually
) -> None:
    names: dict[str, LocalBench] = {}
    for step in range(STEPS_MAX):
        bench = benches()
        name = launched(bench)
        names[name] = bench
        (job,) = Store(bench.root).active()
        arguments = [str(bench.root), job.id]
        if not killed_at(step, lambda arguments=arguments: local_launcher.main(arguments)):
            break
    assert 10 < len(names) < STEPS_MAX
    for name, bench in names.items():
        eventually(lambda name=name, bench=bench: look(bench.client(), Ref(name)).phase in OVER)
        end = look(bench.client(), Ref(name))
        assert (end.phase, end.exit_code) == (Phase.succeeded, 0), list(bench.client().events(Ref(name)))
        assert ran(bench) == 1


def launched(bench: LocalBench) -> str:
    """A job as a scheduling step leaves it that has just started its launcher; the launcher is the test's."""
    sent = submission(bench.spec(*ONE_LINE))
    with bench.client()._locked() as store:
        job = job_of(sent, store.next_id([]), store.habits().total)
        store.save(job._replace(state="launched", spawned_at=now(), spawns=1))
    return sent.name
