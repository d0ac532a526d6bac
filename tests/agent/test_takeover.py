"""`wk watch` of a job that somebody else put on a cluster (A10): by name and by id, its log found by the cluster's
own means, to its end, without a submit or a stop of ours.

The clusters are the ones of the contract's benches: the fake Brain++, the Kubernetes emulator, a real Slurm.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent.clock import SystemClock, VirtualClock
from agent.clusters.base import Cluster, NotThere, Ref, Submission
from agent.service import Refusal
from agent.store import Store
from states.job import State
from states.observation import ENDED
from states.spec import Existing, Request
from tests.agent.fakes import Desk
from tests.clusters.brainpp_bench import BrainppBench
from tests.clusters.kubernetes.bench import KubernetesBench
from tests.clusters.slurm.bench import SlurmBench
from tests.clusters.slurm.engine import Slurm, running

Eventually = Callable[..., Any]
THEIRS = "their-run"
COUNTS = "for i in 1 2 3 4; do echo step $i/4 loss 0.$((9 - i)); sleep 0.05; done"


class Watching:
    """A Watchkeeper over a cluster that is really there; its clock jumps, the cluster's does not."""

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        self.store = Store("sqlite://")
        self.store.create_schema()
        self.desk = Desk(self.store, folder)
        self.desk.use_clock(VirtualClock(SystemClock().now()))
        ports = replace(self.desk.ports, clusters={cluster.name: cluster})
        self.desk.ports = self.desk.service.ports = ports
        self.service = self.desk.service

    def to_its_end(self, job_id: str) -> State:
        self.desk.run(lambda: self.desk.job(job_id).is_terminal, waves=60)
        return State(self.desk.job(job_id).state)


@pytest.fixture(params=["brainpp", "kubernetes", "slurm"])
def theirs(
    request: pytest.FixtureRequest, tmp_path: Path, eventually: Eventually
) -> Iterator[tuple[Cluster, str]]:
    """A cluster, and the id of a job that was put there behind Watchkeeper's back and has ended."""
    if request.param == "slurm":
        slurm: Slurm = request.getfixturevalue("slurm")
        cluster: Cluster = SlurmBench(slurm, tmp_path).client()
        script = f"#!/bin/sh\n#SBATCH -p solo -J {THEIRS} -o {tmp_path}/of-theirs.%j.txt\n{COUNTS}\n"
        yield cluster, ended(cluster, slurm.sbatch(script=script, cwd=tmp_path), eventually)
        return
    bench: Any = {"brainpp": BrainppBench, "kubernetes": KubernetesBench}[request.param](tmp_path)
    cluster = bench.client()
    spec = bench.spec("sh", "-c", COUNTS)
    sent = cluster.submit(Submission(name=THEIRS, fingerprint="0" * 8, owner="lee", spec=spec))
    try:
        yield cluster, ended(cluster, sent.cluster_job_id, eventually)
    finally:
        bench.close()


def ended(cluster: Cluster, job_id: str, eventually: Eventually) -> str:
    ref = Ref(job_id, job_id)
    eventually(lambda: cluster.observe([ref])[job_id].phase in ENDED)
    return job_id


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    yield from running(tmp_path_factory.mktemp("slurm"), accounting=False)


def test_it_is_watched_to_its_end_by_either(theirs: tuple[Cluster, str], tmp_path: Path) -> None:
    """And its log is found without knowing where it lies."""
    cluster, job_id = theirs
    for ref in (Ref(job_id, job_id), Ref(THEIRS, job_id)):
        assert "step 4/4 loss 0.5" in cluster.logs(ref).text
    for number, text in enumerate((job_id, THEIRS)):
        (folder := tmp_path / f"watching{number}").mkdir()
        watching = Watching(cluster, folder)
        taken = watching.service.watch_text(text, cluster=cluster.name)
        assert watching.to_its_end(taken.job.id) is State.succeeded
        job = watching.desk.job(taken.job.id)
        assert job.attempt.cluster_job_id == job_id
        assert not {"submit", "stop", "delete"} & {row["kind"] for row in watching.store.effects_of(job.id)}
        watching.store.close()


def test_one_that_is_not_there_is_told(theirs: tuple[Cluster, str], tmp_path: Path) -> None:
    (folder := tmp_path / "watching").mkdir()
    watching = Watching(theirs[0], folder)
    for absent in ("999999", "nobody"):
        with pytest.raises(NotThere, match=absent):
            watching.service.watch_text(absent, cluster=theirs[0].name)
    existing = Existing(cluster_job_id="999999")
    with pytest.raises(NotThere):
        watching.service.watch(existing, Request(existing=existing, cluster=theirs[0].name), workspace="")
    assert watching.store.live_ids() == []
    watching.store.close()


def test_a_run_of_ours_is_not_watched_a_second_time(tmp_path: Path) -> None:
    store = Store("sqlite://")
    store.create_schema()
    here = Desk(store, tmp_path)
    run = here.delegate()
    with pytest.raises(Refusal, match=f"wk follow {run}"):
        here.service.watch_text(run)
    with pytest.raises(Refusal, match="is a run of yours"):
        here.service.watch_text(run[:5])
    assert store.live_ids() == [run]
    store.close()
