"""A soak of some seconds on the local cluster, with two kills; and what a broken promise looks like."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agent.store import Store
from states.job import State
from tests.cli.program import ROOT
from tests.soak import promises
from tests.soak.__main__ import BEGIN, END, write
from tests.soak.ground import CANARY, Ground, living
from tests.soak.promises import PROMISES, Evidence, broken
from tests.soak.schedule import CALM, JOB, LEFT_ALONE, Act, schedule
from tests.soak.soak import Result, soak

ACTS = (
    Act(0.0, JOB, 0.5, 3, "good"),
    Act(0.1, JOB, 0.5, 1, "leaky"),
    Act(0.2, JOB, 0.5, 3, "asks"),
    Act(0.3, JOB, 0.5, 3, "loops"),
    Act(1.0, "delegated again", 0.0, 0),
    Act(3.0, "agent killed", 0.0, 0),
    Act(3.5, JOB, 0.5, 20, "loud"),
    Act(6.5, "job's program killed", 0.0, 0, "loud"),
)
"""Ten seconds: some of each sort, the agent killed while they run, and one program."""


@pytest.fixture(scope="module")
def soaked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Result, Evidence, Ground]]:
    """One soak whose evidence the tests look at."""
    ground = Ground(tmp_path_factory.mktemp("soak") / "ground", slurm=False)
    try:
        ground.open()
        yield (*soak(ground, ACTS, seed=1), ground)
    finally:
        ground.close()
    assert list(ground.processes()) == []


def test_a_short_soak_keeps_every_promise(soaked: tuple[Result, Evidence, Ground]) -> None:
    result, evidence, _ = soaked
    assert result.broken == ()
    done = result.parts["what was done"]
    assert done["agent killed"] == done["job's program killed"] == done["delegated again"] == 1
    ends = {one.kind: evidence.store.load(one.run).state for one in evidence.delegated}
    assert (ends["good"], ends["leaky"], ends["loud"]) == ("succeeded", "failed", "failed")
    assert [line["kind"] for line in evidence.told if line["what"] == "start"].count("good") == 1


def faults(evidence: Evidence) -> set[str]:
    """Promises that are broken."""
    return {name for name, found in broken(evidence).items() if found}


def test_each_promise_bites(soaked: tuple[Result, Evidence, Ground], tmp_path: Path) -> None:
    """What is told otherwise than it was is noticed, by the promise that it breaks."""
    _, evidence, _ = soaked
    assert faults(evidence) == set()
    settled, one_each, truly, unasked, *_, leaks = PROMISES
    (good,) = [evidence.store.load(one.run) for one in evidence.delegated if one.kind == "good"]
    (its,) = [job for job in evidence.jobs if job.name == good.attempt.name]
    jobs = [job for job in evidence.jobs if job != its]

    runs = evidence.runs() | {good.id: good.but(state=State.running)}
    assert list(promises.settled(evidence, runs)) == [f"{good.id} is running and asks nothing"]
    assert not list(promises.settled(evidence._replace(said_alive=frozenset([its.name])), runs))
    assert faults(evidence._replace(jobs=[*evidence.jobs, its._replace(id="another")])) == {one_each}
    assert faults(evidence._replace(jobs=[*jobs, its._replace(ended="bad")])) == {truly}
    assert faults(evidence._replace(jobs=[*jobs, its._replace(ended="")])) == {truly}
    assert faults(evidence._replace(alive=frozenset([its.name]))) == {truly}
    never = [line for line in evidence.told if not (line["name"] == its.name and line["what"] == "end")]
    assert faults(evidence._replace(told=never)) == {truly}
    (began,) = evidence.of(its.name, "start")
    assert faults(evidence._replace(told=[*evidence.told, began])) == {one_each}
    term = {**began, "what": "term", "slowest_s": 0.3, "at": "now"}
    assert faults(evidence._replace(told=[*evidence.told, term])) == {unasked}
    lost = evidence.delegated[0]._replace(run="never-stored")
    assert faults(evidence._replace(delegated=[*evidence.delegated, lost])) == {settled}
    assert faults(evidence._replace(delegated=evidence.delegated[1:])) == {settled}
    (tmp_path / "log").write_text(f"reading {CANARY}")
    assert faults(evidence._replace(kept=[*evidence.kept, tmp_path / "log"])) == {leaks}


@pytest.mark.parametrize(
    ("change", "promise"),
    [
        ("UPDATE effect SET done_at = NULL WHERE id = (SELECT min(id) FROM effect)", "left undone"),
        ("UPDATE event SET seq = 999 WHERE id = (SELECT max(id) FROM event)", "no gap"),
        ("UPDATE event SET \"to\" = 'failed' WHERE id = (SELECT min(id) FROM event)", "no gap"),
        (
            "UPDATE message SET stage = 's', text = 't', job_id = (SELECT min(job_id) FROM message)",
            "told twice",
        ),
        ("UPDATE event SET said = '" + CANARY + "' WHERE id = (SELECT min(id) FROM event)", "kept"),
    ],
)
def test_a_changed_row_is_noticed(
    soaked: tuple[Result, Evidence, Ground], change: str, promise: str, tmp_path: Path
) -> None:
    """On a copy of the database that nobody else has open."""
    _, evidence, _ = soaked
    with sqlite3.connect(str(evidence.store.engine.url.database)) as before:
        copy = sqlite3.connect(tmp_path / "copy.db")
        before.backup(copy)
        copy.execute(change)
        copy.commit()
        copy.close()
    before.close()
    store = Store(f"sqlite:///{tmp_path / 'copy.db'}")
    try:
        (name,) = faults(evidence._replace(store=store))
    finally:
        store.close()
    assert promise in name


def test_nothing_lives_after_an_interruption(tmp_path: Path, eventually: Callable[..., Any]) -> None:
    begun = subprocess.Popen(
        [sys.executable, "-m", "tests.soak", "--minutes", "5", "--seed", "1", "--no-slurm"],
        cwd=ROOT, env={**os.environ, "TMPDIR": str(tmp_path)}, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        eventually(lambda: any("tests.soak.trainee" in one.cmdline() for one in living(tmp_path)))
        begun.send_signal(signal.SIGINT)
        assert "nothing was judged" in begun.communicate(timeout=30)[0]
        assert begun.returncode == 128 + signal.SIGINT
        assert list(living(tmp_path)) == []
    finally:
        begun.kill()
        begun.wait()


def test_a_seed_is_one_schedule_and_the_agent_has_peace_at_its_end() -> None:
    acts = schedule(7, 600, slurm=True)
    assert acts == schedule(7, 600, slurm=True) != schedule(8, 600, slurm=True)
    assert max(act.at_s for act in acts if act.what in LEFT_ALONE) < 600 * CALM < acts[-1].at_s < 600
    assert {act.cluster for act in acts} == {"local", "slurm"}
    assert {act.cluster for act in schedule(7, 600, slurm=False)} == {"local"}


def test_the_page_has_the_figures_of_the_run_that_was_printed(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    result = Result({"3 runs": {"succeeded": 3}}, ())
    write(page, result, "python -m tests.soak --seed 7")
    text = page.read_text()
    assert text.startswith(f"before\n{BEGIN}\n\n    python -m tests.soak --seed 7\n\n    3 runs\n")
    assert text.endswith(f"{END}\nafter\n")
    assert "old" not in text
    page.write_text("no marks")
    with pytest.raises(SystemExit, match="has no line"):
        write(page, result, "x")
