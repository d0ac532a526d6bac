"""Runs that are delegated to a real Ray, from preflight to wrap-up: a full cluster, a hang, a node that dies.

The loop, the checks, the store and the clock are the product's own (`end_to_end.Delegator`); Ray is a head with two
cores and a node with one. Each script writes down that it began, so that a second start could not be missed.

Never: a look that is hurried past the policy; a stop, a loss or a new attempt that the test itself brings about.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from agent.clusters import wrapper
from agent.clusters.base import Ref
from agent.clusters.ray import RayCluster
from states.events import Observed
from states.job import Job, State
from states.observation import Phase
from tests.clusters.bench import OVER, Eventually, look, sleeps, submit
from tests.clusters.end_to_end import QUICK, Delegator, ended
from tests.clusters.ray.bench import RayBench
from tests.clusters.ray.engine import Ray, running

CPUS = 2
FIGURES: dict[str, Any] = {"cpu": 1, "memory_mib": 10}
QUEUED = "waiting for resources"
"""What Ray itself says of a job that waits for room."""

THEIRS = "their-run"

TRAINS = """\
#!/bin/sh
set -eu
echo "$WATCHKEEPER_ID" >>began
for step in $(seq 1 15); do
    echo "step $step/15 loss 0.$((60 - 2 * step))"
    sleep 0.2
done
mkdir -p out
echo weights >out/final.pt
"""

HANGS = """\
#!/bin/sh
set -eu
echo "$WATCHKEEPER_ID" >>began
for step in $(seq 1 12); do
    echo "step $step/400 loss 0.$((90 - step))"
    date +%s.%N >said
    sleep 0.3
done
exec sleep 613
"""

RESTARTS = """\
#!/bin/sh
set -eu
exec 9>lock
flock -n 9 || { echo "$WATCHKEEPER_ID" >>doubled; exit 9; }
echo "$WATCHKEEPER_ID" >>began
step=0
until [ -e go ]; do
    step=$((step + 1))
    echo "step $step/1000 loss 0.5"
    sleep 0.2
done
mkdir -p out
echo weights >out/final.pt
"""
"""Trains until it is told to end. Two of it at once would leave `doubled` behind."""


@pytest.fixture(scope="module")
def ray() -> Iterator[Ray]:
    """A head of two cores, a node of one; a node that died is known within about a second."""
    with running(
        {"num_cpus": CPUS, "memory": 1 << 30},
        {"num_cpus": 1, "memory": 1 << 30},
        RAY_health_check_period_ms="500",
        RAY_health_check_failure_threshold="2",
    ) as ray:
        yield ray


@pytest.fixture
def delegator(cluster: RayCluster, tmp_path: Path) -> Iterator[Delegator]:
    with Delegator(cluster, tmp_path, cluster_name="ray") as delegator:
        yield delegator


@pytest.fixture
def holder(bench: RayBench, cluster: RayCluster, eventually: Eventually) -> Ref:
    """Somebody else's job, which takes the whole head."""
    ref = submit(cluster, bench.spec(*sleeps(), cpu=float(CPUS)))
    eventually(lambda: look(cluster, ref).phase is Phase.running, within_s=bench.wait_s)
    return ref


def test_it_waits_for_the_reason_that_ray_gives_and_runs_to_a_wrapped_up_end(
    bench: RayBench, cluster: RayCluster, delegator: Delegator, holder: Ref, eventually: Eventually
) -> None:
    delegator.write("train.sh", TRAINS)
    run = delegator.delegate(
        name="digits", command=("sh", "train.sh"), outputs=("out/final.pt",), **{**FIGURES, "cpu": CPUS}
    )

    waits = delegator.until(run, lambda job: waiting_words(job) and job.state is State.queued, bench.wait_s)
    assert not waits.checks_open
    assert [check for check in waits.checks.values() if check.level != "fine"] == [waits.checks["capacity"]]
    assert (waits.checks["capacity"].level, waits.overridden) == ("ask", ("capacity",))
    assert record_of(cluster, waits)["status"] == "PENDING"
    assert not (bench.workspace / "began").exists()

    cluster.stop(holder)
    runs = delegator.until(run, lambda job: job.state is State.running and job.track.main, bench.wait_s)
    assert runs.track.main is not None
    assert (runs.track.main.unit, runs.track.main.total) == ("step", 15.0)
    assert runs.attempt.node == "n1"

    done = delegator.until(run, ended, bench.wait_s)
    written = wrapper.record(wrapper.run_dir(bench.workspace, done.attempt.name))
    assert done.state is State.succeeded, delegator.story(run)
    assert written is not None
    assert (done.collected.exit_code, written.exit_code, written.id) == (0, 0, done.attempt.name)
    assert [(file.path, file.size_bytes) for file in done.collected.artifacts] == [("out/final.pt", 8)]
    assert done.track.main is not None
    assert done.track.main.value == 15.0
    wrap_up = eventually(lambda: delegator.said(run, "wrap-up"))
    assert "out/final.pt" in wrap_up
    assert "exit code 0" in wrap_up
    assert submits(delegator, run) == 1
    assert statuses(cluster, done) == {done.attempt.name: "SUCCEEDED"}
    assert began(bench) == [done.attempt.name]


def test_a_hang_is_stopped_by_the_watchs_own_judgement(
    ray: Ray, bench: RayBench, cluster: RayCluster, delegator: Delegator, eventually: Eventually
) -> None:
    delegator.write("train.sh", HANGS)
    run = delegator.delegate(name="hangs", command=("sh", "train.sh"), **FIGURES)

    done = delegator.until(run, ended, within_s=60.0)
    assert done.state is State.stopped, delegator.story(run)
    assert done.stop is not None
    assert done.stop.rule == "E6"
    (stops,) = [one for one in delegator.why(run) if (one.source, one.to) == (State.running, State.stopping)]
    assert stops.action == "stop_as_wasted"
    assert "E6" in stops.rule
    assert not [one for one in delegator.why(run) if one.event == "stop_requested"]
    assert "step 12 of 400" in done.stop.reason
    spoke_at = datetime.fromtimestamp(float((bench.workspace / "said").read_text()), UTC)
    assert done.stop.at - spoke_at >= timedelta(seconds=QUICK["hung_s"] - 0.5)
    assert not done.questions
    assert statuses(cluster, done) == {done.attempt.name: "STOPPED"}
    assert began(bench) == [done.attempt.name]
    wrap_up = eventually(lambda: delegator.said(run, "wrap-up"))
    assert done.stop.reason in " ".join(wrap_up.split())
    eventually(lambda: not ray.processes("sleep 613"))


def test_a_job_that_somebody_else_submitted_is_watched_to_its_end(
    ray: Ray, bench: RayBench, cluster: RayCluster, delegator: Delegator, eventually: Eventually
) -> None:
    """With `ray job submit`, so without metadata of ours, and without our folder: its log comes through the head."""
    waits = f"until [ -e {bench.workspace}/go ]; do sleep 0.2; echo waiting; done"
    ray.job_submit(
        f"--submission-id={THEIRS}", "--entrypoint-num-cpus=1", "--",
        "sh", "-c", f"for i in 1 2 3; do echo step $i/4 loss 0.$((9 - i)); sleep 0.3; done; {waits};"
        " echo step 4/4 loss 0.5; echo weights written",
    )  # fmt: skip
    taken = delegator.service.watch_text(THEIRS, cluster="ray")
    run = taken.job.id

    runs = delegator.until(run, lambda job: job.state is State.running and job.track.main, bench.wait_s)
    assert runs.attempt.cluster_job_id == THEIRS
    assert runs.track.main is not None
    assert (runs.track.main.unit, runs.track.main.total) == ("step", 4.0)
    (bench.workspace / "go").touch()

    done = delegator.until(run, ended, bench.wait_s)
    assert done.state is State.succeeded, delegator.story(run)
    assert done.attempt.seen is not None
    assert (done.attempt.seen.exit_code, done.attempt.seen.confirmed) == (0, False)
    assert done.track.main is not None
    assert done.track.main.value == 4.0
    assert cluster.logs(Ref(THEIRS)).text.endswith("step 4/4 loss 0.5\nweights written\n")
    assert eventually(lambda: delegator.said(run, "wrap-up"))
    asked = {row["kind"] for row in delegator.store.effects_of(run)}
    assert asked & {"submit", "stop", "delete"} == set()
    record = cluster.http.get(f"/api/jobs/{THEIRS}").json()
    assert (record["status"], record["metadata"]) == ("SUCCEEDED", {})


def test_a_node_that_dies_under_it_costs_one_attempt(
    ray: Ray,
    bench: RayBench,
    cluster: RayCluster,
    delegator: Delegator,
    holder: Ref,
    eventually: Eventually,
) -> None:
    """The last of this file: the node stays dead."""
    delegator.write("train.sh", RESTARTS)
    run = delegator.delegate(
        name="restarts", command=("sh", "train.sh"), outputs=("out/final.pt",), **FIGURES
    )
    first = delegator.until(run, lambda job: job.state is State.running and job.track.main, bench.wait_s)
    assert first.attempt.node == "n2"
    cluster.stop(holder)
    eventually(lambda: look(cluster, holder).phase in OVER, within_s=bench.wait_s)

    assert ray.kill("--node-name=n2") >= 1
    again = delegator.until(
        run, lambda job: len(job.attempts) == 2 and job.state is State.running, bench.wait_s
    )
    assert again.attempt.node == "n1"
    assert again.spec.exclude_nodes == ("n2",)
    (bench.workspace / "go").touch()

    done = delegator.until(run, ended, bench.wait_s)
    assert done.state is State.succeeded, delegator.story(run)
    lost, ran = done.attempts
    assert lost.seen is not None
    assert (lost.seen.phase, lost.seen.cause) == (Phase.lost, "node.lost")
    suspected, believed = looks_at_the_loss(delegator, run)
    assert believed - suspected >= timedelta(seconds=0.9 * QUICK["second_look_s"])
    assert "n2" in delegator.said(run, "resubmitted")
    assert eventually(lambda: delegator.said(run, "wrap-up"))
    assert submits(delegator, run) == 2
    assert began(bench) == [lost.name, ran.name]
    assert not (bench.workspace / "doubled").exists()
    eventually(lambda: statuses(cluster, done) == {lost.name: "FAILED", ran.name: "SUCCEEDED"})


# --- what the tests read -----------------------------------------------------------------------------------


def waiting_words(job: Job) -> bool:
    """Whether the newest look tells Ray's own reason for the wait."""
    seen = job.attempts[-1].seen if job.attempts else None
    return seen is not None and seen.phase is Phase.pending and QUEUED in seen.reason


def record_of(cluster: RayCluster, job: Job) -> dict[str, Any]:
    record = cluster._record(job.attempt.name)
    assert record is not None
    return dict(record)


def statuses(cluster: RayCluster, job: Job) -> dict[str, str]:
    """Status of every job of Ray's that was submitted for the run, by its submission id."""
    of_run = [record for record in cluster._records() if str(record["submission_id"]).startswith(job.id)]
    found = {str(record["submission_id"]): str(record["status"]) for record in of_run}
    assert len(found) == len(of_run)
    return found


def began(bench: RayBench) -> Sequence[str]:
    """The attempts whose script began, each time that it did, in order."""
    return (bench.workspace / "began").read_text().split()


def submits(delegator: Delegator, run: str) -> int:
    """How often the machine asked for a submit."""
    return sum(one.asked.count("submit") for one in delegator.why(run))


def looks_at_the_loss(delegator: Delegator, run: str) -> tuple[datetime, datetime]:
    """When the look was taken that first showed the loss, and the one that was believed."""
    taken = {
        line.action: happened.observation.taken_at
        for line, happened in zip(
            reversed(delegator.why(run)), reversed(delegator.store.history(run)), strict=True
        )
        if isinstance(happened, Observed)
    }
    return taken["suspect"], taken["resubmit_lost"]
