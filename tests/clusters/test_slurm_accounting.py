"""The Slurm cluster against a real Slurm with accounting: what is known after the controller forgot, and limits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agent.clusters.base import NotThere, Ref, Refused, Unreachable
from agent.clusters.slurm import SlurmCluster
from states.observation import Observation, Phase, Waiting
from tests.clusters.bench import OVER, OWNER, Eventually, ends, look, sleeps, submission, submit
from tests.clusters.slurm.bench import SlurmBench
from tests.clusters.slurm.engine import Slurm, running

Until = Callable[..., Observation]


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    yield from running(tmp_path_factory.mktemp("slurmdb"), accounting=True)


@pytest.fixture
def bench(slurm: Slurm, tmp_path: Path) -> Iterator[SlurmBench]:
    yield SlurmBench(slurm, tmp_path, partition="normal", idle={"partition": "idle"})
    slurm.clear()


@pytest.fixture
def cluster(bench: SlurmBench) -> SlurmCluster:
    return bench.client()


@pytest.fixture
def until(cluster: SlurmCluster, eventually: Eventually) -> Until:
    """`until(ref, Phase.running)`: the first look that shows one of these phases (by default any end)."""

    def wait(ref: Ref, *phases: Phase) -> Observation:
        found: Observation = eventually(
            lambda: seen if (seen := look(cluster, ref)).phase in (phases or OVER) else None, within_s=60
        )
        return found

    return wait


def ends_after_its_start(code: int) -> tuple[str, ...]:
    """Lasts long enough for its start to reach accounting first; else the record there has no name."""
    return ("sh", "-c", f"sleep 1; exit {code}")


# --- after the controller forgot ---------------------------------------------------------------------------


def test_what_the_controller_forgot_is_told_by_accounting(
    bench: SlurmBench, cluster: SlurmCluster, slurm: Slurm, until: Until, eventually: Eventually
) -> None:
    succeeds, fails = (submit(cluster, bench.spec(*ends_after_its_start(code))) for code in (0, 3))
    array = submit(cluster, bench.spec(*ends_after_its_start(0), extra_args=("--array=1-3",)))
    stranger = Ref("their job", slurm.sbatch("--job-name=their job", script="#!/bin/sh\nsleep 1; exit 5\n"))
    refs = [succeeds, fails, array, stranger]
    for ref in refs:
        until(ref)
    eventually(lambda: slurm.has_recorded(array.cluster_job_id, "COMPLETED", "COMPLETED", "COMPLETED"))
    eventually(lambda: slurm.has_recorded(stranger.cluster_job_id, "FAILED"))
    slurm.forget()
    before = bench.calls()
    seen = cluster.observe(refs)
    assert bench.calls() - before == 2, "one squeue and one sacct for any number of jobs"
    told = {name: (look_.phase, look_.exit_code, look_.confirmed) for name, look_ in seen.items()}
    assert told == {
        succeeds.name: (Phase.succeeded, 0, True),
        fails.name: (Phase.failed, 3, True),
        array.name: (Phase.succeeded, 0, True),
        "their job": (Phase.failed, 5, False),
    }
    assert seen[array.name].native.startswith("3 COMPLETED")
    assert seen[fails.name].node in ("n2", "n3")
    assert [match.ours for match in cluster.find(fails.name, fingerprint=fails.name[-8:], owner=OWNER)] == [
        True
    ]
    assert cluster.logs(fails).ready
    with pytest.raises(NotThere):
        cluster.stop(Ref("nobody-a0-12345678"))
    cluster.stop(fails)


def test_without_the_database_nothing_is_concluded(
    bench: SlurmBench, cluster: SlurmCluster, slurm: Slurm, until: Until, eventually: Eventually
) -> None:
    ended = submit(cluster, bench.spec(*ends_after_its_start(0)))
    until(ended)
    eventually(lambda: slurm.has_recorded(ended.cluster_job_id, "COMPLETED"))
    slurm.forget()
    lives = submit(cluster, bench.spec(*sleeps()))
    until(lives, Phase.running)
    with slurm.without("slurmdbd"):
        seen = cluster.observe([ended, lives])
        assert seen[lives.name].phase == Phase.running
        assert seen[ended.name].phase == Phase.unknown
        assert "accounting did not answer" in seen[ended.name].reason
        assert [match.phase for match in cluster.find(lives.name)] == [Phase.running]
        for call in (lambda: cluster.find(ended.name), lambda: cluster.logs(ended)):
            with pytest.raises(Unreachable):
                call()
        row = next(row for row in cluster.doctor() if row.name == "accounting")
        assert row.level == "warn"
    assert until(ended, Phase.succeeded).exit_code == 0


def test_accounting_that_calls_a_forgotten_job_running_is_not_believed(
    bench: SlurmBench, cluster: SlurmCluster, slurm: Slurm, until: Until, eventually: Eventually
) -> None:
    ref = submit(cluster, bench.spec(*sleeps()))
    until(ref, Phase.running)
    eventually(lambda: slurm.has_recorded(ref.cluster_job_id, "RUNNING"))
    slurm.forget()
    runs_for_ever = "update slurm_acct_db.test_job_table set state=1, time_end=0 where job_name"
    assert slurm.sql(f"{runs_for_ever}='{ref.name}'")
    seen = look(cluster, ref)
    assert (seen.phase, seen.exit_code) == (Phase.gone, None)
    assert "still says RUNNING" in seen.reason


def test_the_story_before_a_requeue_is_kept(
    bench: SlurmBench, cluster: SlurmCluster, slurm: Slurm, until: Until, eventually: Eventually
) -> None:
    ref = submit(cluster, bench.spec(*sleeps()))
    until(ref, Phase.running)
    assert slurm.ok("scontrol", "requeue", ref.cluster_job_id)
    assert until(ref, Phase.pending).attempt == 1

    eventually(lambda: slurm.has_recorded(ref.cluster_job_id, "REQUEUED"))
    kinds = [event.kind for event in cluster.events(ref)]
    assert kinds == ["Queued", "Started", "Requeued", "Queued", "Now"]
    cluster.stop(ref)
    until(ref)


# --- limits ------------------------------------------------------------------------------------------------


def test_what_a_limit_means(
    bench: SlurmBench, cluster: SlurmCluster, slurm: Slurm, eventually: Eventually
) -> None:
    asked = {
        "user-gpu": (["--qos=gpu2", "--gres=gpu:1", "-c1"], 3, "QOSMaxGRESPerUser", Waiting.wait),
        "group-gpu": (["--qos=grp2", "--gres=gpu:1", "-c1"], 3, "QOSGrpGRES", Waiting.wait),
        "one-job": (["--qos=one", "-c1"], 2, "QOSMaxJobsPerUserLimit", Waiting.wait),
        "spent": (["--qos=rich", "-c1"], 1, "QOSGrpCPUMinutesLimit", Waiting.budget),
    }
    last = {}
    for name, (words, count, _, _) in asked.items():
        for number in range(count):
            last[name] = Ref(f"{name}-{number}", slurm.sbatch(f"--job-name={name}-{number}", *words))

    def told() -> dict[str, tuple[str, Waiting]] | None:
        seen = cluster.observe(list(last.values()))
        found = {name: (seen[ref.name].reason, seen[ref.name].waiting) for name, ref in last.items()}
        return (
            found if found == {name: (want, waits) for name, (_, _, want, waits) in asked.items()} else None
        )

    eventually(told, within_s=20)


def test_a_limit_that_nothing_of_ours_uses_up_is_never_met(
    bench: SlurmBench, cluster: SlurmCluster, slurm: Slurm, eventually: Eventually
) -> None:
    ref = Ref("greedy", slurm.sbatch("--job-name=greedy", "--qos=gpu2", "-N2", "--gres=gpu:2"))
    eventually(lambda: look(cluster, ref).waiting is Waiting.never)
    assert look(cluster, ref).reason.startswith("QOSMaxGRESPerUser")


@pytest.mark.parametrize(
    ("options", "changes", "cause", "retryable"),
    [
        ({"qos": "wall"}, {"time_limit_s": 3600}, "scheduling.time_limit", False),
        ({"qos": "one"}, {}, "scheduling.quota", True),
        ({"qos": "nothing-like-it"}, {}, "scheduling.unsatisfiable", False),
        ({}, {"group": "nobodys"}, "auth.denied", False),
    ],
)
def test_a_refusal_by_a_limit(
    bench: SlurmBench,
    slurm: Slurm,
    options: dict[str, str],
    changes: dict[str, object],
    cause: str,
    retryable: bool,
) -> None:
    for _ in range(2):
        slurm.sbatch("--qos=one", "--hold")
    with pytest.raises(Refused) as told:
        bench.client(**options).submit(submission(bench.spec(*ends(0), **changes)))
    assert (told.value.cause, told.value.retryable) == (cause, retryable)


def test_a_priority_that_the_site_knows_as_a_qos(bench: SlurmBench, slurm: Slurm) -> None:
    client = bench.client(qos_of_priority={7: "grp2"}, nice_step=10)
    ref = submit(client, bench.spec(*sleeps(), priority=7))
    told = slurm.out("scontrol", "show", "job", ref.cluster_job_id)
    assert "QOS=grp2" in told
    assert "Nice=20" in told


def test_out_of_memory(bench: SlurmBench, cluster: SlurmCluster, slurm: Slurm, until: Until) -> None:
    if not slurm.cgroups:
        pytest.skip("no memory controller of cgroups v1 on this machine")
    greedy = ("python3", "-c", "text = 'x' * (200 << 20); print(len(text))")
    ref = submit(cluster, bench.spec(*greedy, memory_mib=40))
    end = until(ref)
    assert (end.phase, end.cause, end.exit_code) == (Phase.failed, "memory.host", None)


# --- the last test: from here on ids are used a second time ------------------------------------------------


def test_a_recycled_id_is_somebody_elses(
    bench: SlurmBench, cluster: SlurmCluster, slurm: Slurm, until: Until, eventually: Eventually
) -> None:
    """The controller lost its state and counts from 1 again; accounting has both jobs under one id."""
    slurm.forget(recycle=True)
    mine = submit(cluster, bench.spec(*ends_after_its_start(3)))
    until(mine)
    eventually(lambda: slurm.has_recorded(mine.cluster_job_id, "FAILED"))
    slurm.forget(recycle=True)
    other = slurm.sbatch("--job-name=somebody-elses")
    assert other == mine.cluster_job_id
    seen = look(cluster, mine)
    assert (seen.phase, seen.exit_code, seen.attempt) == (Phase.failed, 3, 0)
    assert look(cluster, Ref("somebody-elses", other)).phase in (Phase.pending, Phase.running)
    cluster.stop(mine)
    assert "somebody-elses" in slurm.out("squeue", "-h", "-o", "%j")
