"""Staging as judgement: the row of the assets, the runs that prepare, what comes back from them (D1, C6, C7, E11)."""

from __future__ import annotations

import pytest

from states.assets import Asset
from states.events import ChildFinished
from states.job import Check, Job
from states.preflight import build_request, built_environment, imports_to_prove, needs_smoke, smoke_request
from states.questions import Question
from states.staging import (
    Found,
    Place,
    assets_row,
    look_again_due,
    preparation_due,
    preparation_request,
    purpose_of_child,
    settled_in_child,
    with_child_row,
)
from tests.states import builders as b

WEIGHTS = Asset(url="https://files.example/w.bin", to="w.bin")
DATA = Asset(path="data.idx")
PLAN = {"folder": ".watchkeeper/stage/digits-k3f9", "environment": ""}
STAGE = {**PLAN, "prepare": "stage"}


def waiting() -> Job:
    """A job whose assets want a staging run."""
    return b.new_job().but(checks={"assets": Check(name="assets", level="note", facts=STAGE)})


def finished(
    ok: bool, *, cause: str = "", purpose: str = "stage", found: dict[str, str] | None = None
) -> ChildFinished:
    return ChildFinished(
        at=b.after(60),
        child="digits-k3f9-s1",
        purpose=purpose,
        ok=ok,
        cause=cause,
        summary="it ended",
        found=found or {},
    )


@pytest.mark.parametrize(
    ("place", "level"),
    [
        ("there", "fine"),
        ("linked", "fine"),
        ("mounted", "fine"),
        ("absent", "ask"),
        ("outside", "ask"),
        ("unseen", "could_not"),
    ],
)
def test_a_path_is_passed_only_where_it_was_seen(place: Place, level: str) -> None:
    row = assets_row([Found(DATA, place, "/x/data.idx")], b.new_job(), facts={})
    assert row.level == level
    assert (row.question == "assets") == (level == "ask")
    assert "data.idx" in row.evidence


def test_what_can_be_fetched_is_prepared_with_its_size() -> None:
    found = [
        Found(WEIGHTS, "absent", "w.bin", 3 * 2**30),
        Found(Asset(hub="o/n"), "absent", "/ws"),
        Found(DATA, "there"),
    ]
    row = assets_row(found, b.new_job(), facts=PLAN)
    assert (row.level, row.facts["prepare"]) == ("note", "stage")
    assert "3.0 GiB and 1 of a size that is not known" in row.evidence


def test_nothing_is_fetched_while_a_path_is_missing() -> None:
    """All that only a person can mend comes back at once, and no download is spent before it."""
    row = assets_row([Found(WEIGHTS, "absent"), Found(DATA, "absent")], b.new_job(), facts=PLAN)
    assert row.level == "ask"
    assert "prepare" not in row.facts


def test_what_cannot_be_fetched_from_here_is_asked_about() -> None:
    assert assets_row([Found(WEIGHTS, "absent")], b.new_job(), facts={}).level == "ask"


def test_mounts_and_variables_are_settled_into_the_spec() -> None:
    mount = Asset(mount="pool://a:/mnt/a")
    row = assets_row([Found(mount, "unseen", "")], b.new_job(), facts={}, env={"HF_HOME": "/ws/hf"})
    assert row.found == {"mounts": ("pool://a:/mnt/a",), "env": {"HF_HOME": "/ws/hf"}}
    assert row.level == "could_not"


def test_a_preparation_is_due_once() -> None:
    job = waiting()
    assert preparation_due(job) == "assets"
    assert preparation_due(job.but(children={"digits-k3f9-s1": "stage"})) == ""
    assert preparation_due(job.but(overridden=("assets",))) == ""
    assert preparation_due(job.but(overridden=("stage",))) == ""


def test_the_fetching_run_has_the_image_and_the_recorded_proxy_and_costs_no_gpu() -> None:
    job = waiting()
    spec = job.spec.model_copy(
        update={"proxy": "http://relay.example:1", "gpu": 8, "env": {"A": "1", "HF_HOME": "/h"}}
    )
    asked = preparation_request(job.but(spec=spec), "assets")
    assert (asked.image, asked.proxy, asked.gpu, asked.max_restarts) == (
        "reg/a:1",
        "http://relay.example:1",
        0,
        0,
    )
    assert asked.env == {"HF_HOME": "/h"}
    assert purpose_of_child(asked.purpose) == "stage"
    assert ".watchkeeper/stage/digits-k3f9/fetch.py" in asked.command[2]


def test_what_was_fetched_is_looked_at_again() -> None:
    job = with_child_row(waiting(), finished(True))
    assert job.checks["stage"].level == "fine"
    assert look_again_due(job) == ("assets",)
    assert preparation_due(job) == ""
    seen = assets_row([Found(WEIGHTS, "there")], job, facts={})
    assert look_again_due(job.but(checks={**job.checks, "assets": seen})) == ()


def test_fetched_and_still_not_there_is_asked_about() -> None:
    row = assets_row(
        [Found(WEIGHTS, "absent", "w.bin")], with_child_row(waiting(), finished(True)), facts=PLAN
    )
    assert row.level == "ask"
    assert "not where it should be" in row.evidence


@pytest.mark.parametrize(
    ("purpose", "cause", "question"),
    [
        ("stage", "network.timeout", "network"),
        ("stage", "download.slow", "network"),
        ("stage", "storage.full", "assets"),
        ("repair", "network.timeout", "environment"),
        ("build", "", "environment"),
        ("smoke", "env.missing_module", "smoke-failed"),
    ],
)
def test_a_failure_is_asked_about_by_what_failed(purpose: str, cause: str, question: str) -> None:
    """C7: a fetch that keeps failing is a question of the network."""
    job = with_child_row(waiting(), finished(False, cause=cause, purpose=purpose))
    assert (job.checks[purpose].level, job.checks[purpose].question) == ("ask", question)


def test_what_was_fetched_in_part_is_named() -> None:
    """F7."""
    assert ".part" in with_child_row(waiting(), finished(False)).notes[-1]
    assert with_child_row(waiting(), finished(True)).notes == ()


def test_a_download_that_was_stopped_is_gone_on_without() -> None:
    """E11: asked once, in the run that fetches; the answer counts for the run that it fetches for."""
    job = with_child_row(waiting(), finished(False, found={"without": "the download was stopped"}))
    assert job.checks["stage"].level == "warn"
    row = assets_row([Found(WEIGHTS, "absent")], job, facts=PLAN)
    assert (row.level, "prepare" in row.facts) == ("warn", False)


def test_what_an_answer_in_the_child_settles() -> None:
    asked = Question(id="c/1", number=1, kind="download", topic="t", asked_at=b.T0, answer_by=b.T0)
    closed = asked.model_copy(update={"status": "answered", "chosen": "path", "value": "/mnt/w.bin"})
    assert settled_in_child(b.new_job(questions=(closed,))) == {"mounts": "/mnt/w.bin"}
    assert "without" in settled_in_child(
        b.new_job(questions=(closed.model_copy(update={"chosen": "without"}),))
    )
    assert settled_in_child(b.new_job(questions=(closed.model_copy(update={"chosen": "wait"}),))) == {}


class TestEnvironments:
    FACTS = {
        "requirements": "requirements.txt",
        "environment": ".watchkeeper/environments/old",
        "prepare": "repair",
    }

    def test_an_own_one_is_completed_from_what_is_stated_and_the_lock_is_written(self) -> None:
        row = Check(name="environment", level="note", facts=self.FACTS)
        job = b.new_job().but(checks={"environment": row})
        assert preparation_due(job) == "environment"
        asked = preparation_request(job, "environment")
        assert "old/bin/python -m pip install -r requirements.txt" in asked.command[2]
        assert "pip freeze --all > .watchkeeper/environments/old/requirements.lock" in asked.command[2]

    def test_a_build_leans_on_staged_wheels_only_where_they_are_whole(self) -> None:
        environment = Check(name="environment", level="ask", facts={"requirements": "requirements.txt"})
        whole = Check(
            name="packages", level="fine", facts={"requirements": "requirements.txt", "wheels": "wheels"}
        )
        half = Check(name="packages", level="warn")
        for packages, offline in ((whole, True), (half, False)):
            job = b.new_job().but(checks={"environment": environment, "packages": packages})
            built = build_request(job).command[2]
            assert ("--no-index --find-links wheels" in built) is offline
            assert "> .watchkeeper/environments/digits-k3f9/image" in built

    def test_what_was_built_is_given_by_its_whole_path(self) -> None:
        assert built_environment(b.new_job()) == "ws/.watchkeeper/environments/digits-k3f9"


class TestSmoke:
    def proved(self, **request: object) -> Job:
        row = Check(name="environment", level="fine", facts={"imports": "torchish sparsegrid.x"})
        return b.new_job(request=request).but(checks={"environment": row})

    def test_a_dear_run_whose_imports_are_known_is_proved_unasked(self) -> None:
        """D4; GPUs for an unknown time count as dear."""
        assert needs_smoke(self.proved(gpu=8))
        assert not needs_smoke(self.proved(gpu=0))
        assert not needs_smoke(b.new_job(request={"gpu": 8}))

    def test_it_imports_the_same_and_then_does_the_step(self) -> None:
        command = smoke_request(self.proved(smoke="python t.py --one-step", gpu=8)).command
        assert command[:2] == ("bash", "-c")
        proof, step = command[2].strip().rsplit("\n", 1)
        assert proof.endswith("torchish sparsegrid.x")
        assert step == "bash -c 'python t.py --one-step'"
        assert imports_to_prove(b.new_job()) == ""
