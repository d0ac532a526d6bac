"""Staging end to end on this machine: a real server, real jobs, a real build; nothing stands in for anything."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.clusters.local import LocalCluster
from tests.agent.staging.test_fetch import BODY, Files
from tests.agent.staging.test_fetch import server as server
from tests.agent.staging.test_wheels import wheel
from tests.clusters.end_to_end import Delegator, ended


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Delegator]:
    cluster = LocalCluster("local", {"root": str(tmp_path / "local"), "cpu": 2, "memory_mib": 8192, "gpu": 0})
    with Delegator(cluster, tmp_path, cluster_name="local") as delegator:
        yield delegator


def test_what_is_missing_is_fetched_and_then_the_run_goes_by_itself(here: Delegator, server: str) -> None:
    """D1, A4, F7: resumed after a broken connection, and nothing is left but the file."""
    Files.cut = 300_000
    run = here.delegate(
        command=("bash", "-c", "wc -c < weights/w.bin"),
        assets=({"url": server, "to": "weights/w.bin"},),
    )
    job = here.until(run, ended, within_s=60)
    assert job.state == "succeeded", here.story(run)
    assert (here.workspace / "weights/w.bin").read_bytes() == BODY
    assert list(job.children.values()) == ["stage:passed"]
    assert job.checks["assets"].level == "fine"
    assert [path.name for path in (here.workspace / "weights").iterdir()] == ["w.bin"]
    assert not list((here.workspace / ".watchkeeper/stage").iterdir())


def test_an_environment_is_built_offline_locked_and_proved_to_import(here: Delegator) -> None:
    """C6, D2, D4: from the whole staged set, in a run of its own; the real run then uses it."""
    here.write("requirements.txt", "sparsegrid\n")
    here.write("fit.py", "import sparsegrid\nprint('grid', sparsegrid.__file__)\n")
    (here.workspace / "wheels").mkdir()
    wheel(here.workspace / "wheels", "sparsegrid", "2.0", "units>=1")
    wheel(here.workspace / "wheels", "units", "1.5")
    run = here.delegate(
        command=("python", "fit.py"),
        environment="envs/fit",
        packages={"wheels": "wheels", "python": "3.11"},
        policy={"answer_s": 1},
    )
    job = here.until(run, ended, within_s=120)
    assert job.state == "succeeded", here.story(run)
    assert list(job.children.values()) == ["build:passed"]
    folder = here.workspace / ".watchkeeper/environments" / run
    assert job.spec.environment == str(folder)
    lock = (folder / "requirements.lock").read_text()
    assert "sparsegrid" in lock
    assert "units" in lock
    assert str(folder) in (here.workspace / ".watchkeeper" / job.attempt.name / "log").read_text()


def test_a_smoke_run_that_cannot_import_tells_every_name(here: Delegator) -> None:
    """D4: the reader's cause and its evidence stand in the question; the real run was not spent."""
    here.write("fit.py", "import sparsegrid\nimport units\n")
    run = here.delegate(command=("python3", "fit.py"), smoke=("true",))
    job = here.until(run, lambda job: job.open_questions, within_s=60)
    asked = job.open_questions[0]
    assert asked.kind == "smoke-failed"
    assert "env.missing_module" in asked.facts["why"]
    assert "sparsegrid" in str(asked.evidence)
    child = here.job(next(iter(job.children)))
    log = (here.workspace / ".watchkeeper" / child.attempt.name / "log").read_text()
    assert "No module named 'sparsegrid'" in log
    assert "No module named 'units'" in log
    assert job.attempts == ()
    here.service.stop(run)
