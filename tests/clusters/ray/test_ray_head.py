"""A real Ray that comes apart: a node dies under a job, the head dies, a new head knows nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.clusters.base import Ref, Unclear, Unreachable
from agent.clusters.ray import RayCluster
from agent.clusters.wrapper import record, run_dir
from states.observation import Phase
from tests.clusters.bench import Eventually, ends, look, sleeps, submission, submit
from tests.clusters.ray.bench import RayBench, Until
from tests.clusters.ray.engine import Ray, running

START_LIMIT_S = 10


@pytest.fixture(scope="module")
def ray() -> Iterator[Ray]:
    """Two nodes, of which only the second has GPUs; a job has 10 seconds to start, not 15 minutes."""
    with running(
        {"num_cpus": 1, "memory": 1 << 30},
        {"num_cpus": 1, "num_gpus": 1, "memory": 1 << 30},
        RAY_JOB_START_TIMEOUT_SECONDS=str(START_LIMIT_S),
        RAY_health_check_period_ms="500",
        RAY_health_check_failure_threshold="2",
    ) as ray:
        yield ray


@pytest.fixture
def bench(ray: Ray, tmp_path: Path) -> RayBench:
    """Nothing is cleared: at the end there is nothing left that could be asked."""
    return RayBench(ray, tmp_path, timeout_s=10.0, submit_timeout_s=10.0)


def test_it_comes_apart(
    ray: Ray, bench: RayBench, cluster: RayCluster, until: Until, eventually: Eventually
) -> None:
    """One story, in the order in which things get worse."""
    never = submit(cluster, bench.spec(*ends(0), gpu=1, cpu=1, memory_mib=5000))

    # A node dies under a job, which had to stay away from the other one.
    ref = submit(cluster, bench.spec(*sleeps(), exclude_nodes=("n1",)))
    assert until(ref, Phase.running).node == "n2"
    assert ray.kill("--node-name=n2") >= 1
    lost = until(ref)
    assert (lost.phase, lost.cause, lost.exit_code) == (Phase.lost, "node.lost", None)
    assert ray.processes("sleep 600") == []
    eventually(lambda: look(cluster, ref).native == "FAILED JOB_SUPERVISOR_ACTOR_DIED")
    assert look(cluster, ref).phase == Phase.lost

    # A job that never fitted is given up by Ray when its time to start is over.
    unsent = until(never)
    assert (unsent.phase, unsent.cause, unsent.started_at) == (Phase.failed, "scheduling.unsatisfiable", None)
    assert unsent.native == "FAILED JOB_SUPERVISOR_ACTOR_START_TIMEOUT"

    # The store behind the dashboard dies: the dashboard answers, and knows nothing of any job.
    waits = f"until [ -e {bench.workspace}/go ]; do sleep 0.1; done; echo over; exit 7"
    orphan = submit(cluster, bench.spec("sh", "-c", waits))
    until(orphan, Phase.running)
    assert ray.kill("gcs_server") >= 1
    assert cluster.http.get("/api/version").status == 200
    away = bench.client(timeout_s=0.5, submit_timeout_s=0.5)
    for call in (
        away.observe,
        lambda refs: away.find(refs[0].name),
        lambda refs: away.logs(refs[0]),
    ):
        with pytest.raises(Unreachable):
            call([orphan])
    sent = submission(bench.spec(*ends(0)))
    with pytest.raises((Unclear, Unreachable)):
        away.submit(sent)
    rows = {row.name: row.level for row in away.doctor()}
    assert rows == {"dashboard": "fine", "clock": "fine", "jobs": "wrong"}

    # The program runs on as an orphan, and its wrapper still writes down how it ended.
    (bench.workspace / "go").touch()
    folder = run_dir(bench.workspace, orphan.name)
    eventually(lambda: (found := record(folder)) is not None and found.exit_code == 7)

    # A new head at the old address knows none of them. Where a run lies is noted here: its own record is its end.
    # From elsewhere it is lost, and without the time of its submit only gone; never an end.
    ray.start_anew()
    end = look(cluster, orphan)
    assert (end.phase, end.exit_code, end.confirmed, end.native) == (Phase.failed, 7, True, "404")
    assert cluster.logs(orphan).text == "over\n"
    elsewhere = bench.client(root=bench.workspace / "elsewhere")
    assert look(elsewhere, orphan).phase == Phase.lost
    assert look(elsewhere, Ref(orphan.name)).phase == Phase.gone
    assert list(cluster.find(sent.name)) == []

    # The submit that may have arrived is sent once more under its name, and runs.
    cluster.submit(sent)
    assert until(Ref(sent.name)).phase == Phase.succeeded
