"""Single steps on jobs that are nobody's run: exactly that step, no record, no timer (A1, A2, A3, A7, A10)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from agent.clusters.base import Ref
from states.observation import Phase
from tests.cli.program import Wk, steps


def test_a_submit_leaves_no_record_and_nobody_watching(wk: Wk, eventually: Callable[..., Any]) -> None:
    sent = wk("submit", "--name", "alone", "--json", "--", steps(30, 0.5)).data
    assert sent["name"].startswith("alone-")
    assert wk.board() == []
    assert wk.resident() is None
    job = sent["cluster_job_id"]
    ref = Ref(sent["name"], job)
    eventually(lambda: "step 2/30" in wk.cluster().logs(ref).text)
    assert wk("get", job).out.startswith(f"{job}: running")
    checked = wk("check", job)
    assert checked.code == 0, checked.err
    assert "step" in checked.out
    assert "judged: " in checked.out
    assert wk.board() == []

    early = wk("delete", job, "--name", job)
    assert early.code == 5, early.out
    stopped = wk("stop", job, "--json")
    assert stopped.data == {"job": job, "asked": "stop"}
    eventually(lambda: wk.cluster().observe([ref])[ref.name].phase is Phase.stopped)
    assert wk("delete", job).code == 5
    assert wk("delete", job, "--name", job).code == 0
    gone = wk("get", job)
    assert gone.code == 6
    assert "wk list" in gone.err
    assert wk.board() == []


def test_a_job_that_is_there_is_watched_to_its_end(wk: Wk) -> None:
    sent = wk("submit", "--json", "--", steps(6, 0.3)).data
    watched = wk("watch", sent["cluster_job_id"], "--json")
    assert watched.code == 0, watched.out + watched.err
    assert watched.lines[-1]["state"] == "succeeded"
    assert len(wk.cluster_jobs()) == 1
    assert wk("watch", "no-such-job").code == 6


def test_a_run_is_stopped_and_its_record_stays(wk: Wk, eventually: Callable[..., Any]) -> None:
    run = wk("run", "--detach", "--json", "--", steps(60, 0.5)).data["run"]
    eventually(lambda: wk.board()[0]["state"] == "running")
    assert wk("stop", run, "--reason", "enough seen").code == 0
    followed = wk("follow", run)
    assert followed.code == 4
    assert "enough seen" in followed.out
    assert len(wk.cluster_jobs()) == 1
    assert wk("delete", run, "--name", run, "--json").code == 0
    eventually(lambda: wk.cluster_jobs() == [])


def test_a_submit_without_its_workspace_is_refused(wk: Wk) -> None:
    ran = wk("submit", "--workspace", "not-there", "--", "true")
    assert ran.code == 5
    assert "not-there" in ran.err
    assert wk.cluster_jobs() == []


def test_nothing_to_run_is_a_usage_error(wk: Wk) -> None:
    assert wk("submit").code == 2
    unknown = wk("run", "--gpus", "1", "--", "true")
    assert unknown.code == 2
    assert "--gpu" in unknown.err
