"""The Slurm cluster against a real Slurm with accounting: what is known after the controller forgot, and limits."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import pytest

from agent.clusters.base import NotThere, Ref, Refused, Unreachable
from agent.clusters.slurm import SlurmCluster
from states.job import State
from states.observation import Phase, Waiting
from tests.clusters.bench import OWNER, Eventually, ends, look, sleeps, submission, submit
from tests.clusters.end_to_end import Delegator, ended
from tests.clusters.slurm.bench import SlurmBench, Until
from tests.clusters.slurm.engine import Slurm, running

Recorded = Callable[[Mapping[Ref, Sequence[str]]], None]


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    yield from running(tmp_path_factory.mktemp("slurmdb"), accounting=True)


def ends_when_told(code: int) -> tuple[str, ...]:
    return ("sh", "-c", f"until [ -e told ]; do sleep 0.1; done; exit {code}")


@pytest.fixture
def recorded(bench: SlurmBench, slurm: Slurm, until: Until, eventually: Eventually) -> Recorded:
    """`recorded({ref: ["FAILED"]})`: lets the jobs end once accounting has every start, and returns when it has these
    ends, one for each task. Accounting is behind the controller, by as much as the machine is busy."""

    def wait(ends: Mapping[Ref, Sequence[str]]) -> None:
        for ref, states in ends.items():
            eventually(partial(slurm.has_recorded, ref.cluster_job_id, *["RUNNING"] * len(states)))
        (bench.workspace / "told").touch()
        for ref, states in ends.items():
            until(ref)
            eventually(partial(slurm.has_recorded, ref.cluster_job_id, *states))

    return wait


# --- after the controller forgot ---------------------------------------------------------------------------


def test_what_the_controller_forgot_is_told_by_accounting(
    bench: SlurmBench, cluster: SlurmCluster, slurm: Slurm, recorded: Recorded
) -> None:
    succeeds, fails = (submit(cluster, bench.spec(*ends_when_told(code))) for code in (0, 3))
    array = submit(cluster, bench.spec(*ends_when_told(0), extra_args=("--array=1-3",)))
    script = f"#!/bin/sh\n{ends_when_told(5)[-1]}\n"
    job_id = slurm.sbatch("--job-name=their job", "-c1", script=script, cwd=bench.workspace)
    stranger = Ref("their job", job_id)
    recorded({succeeds: ["COMPLETED"], fails: ["FAILED"], array: ["COMPLETED"] * 3, stranger: ["FAILED"]})
    slurm.forget()
    before = bench.calls()
    seen = cluster.observe([succeeds, fails, array, stranger])
    assert bench.calls() - before == 3, "squeue for ours, for everyone's, and sacct, for any number of jobs"
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
    bench: SlurmBench, cluster: SlurmCluster, slurm: Slurm, until: Until, recorded: Recorded
) -> None:
    over = submit(cluster, bench.spec(*ends_when_told(0)))
    recorded({over: ["COMPLETED"]})
    slurm.forget()
    lives = submit(cluster, bench.spec(*sleeps()))
    until(lives, Phase.running)
    words = ("--job-name=their array", "--array=1-2", "--output=/dev/null")
    array = Ref("their array", slurm.sbatch(*words, script="#!/bin/sh\n"))
    until(array, Phase.succeeded)
    with slurm.without("slurmdbd"):
        seen = cluster.observe([over, lives, array])
        assert seen[array.name].phase == Phase.unknown, "the controller may have forgotten a task that failed"
        assert seen[lives.name].phase == Phase.running
        assert seen[over.name].phase == Phase.unknown
        assert "accounting did not answer" in seen[over.name].reason
        assert [match.phase for match in cluster.find(lives.name)] == [Phase.running]
        for call in (lambda: cluster.find(over.name, owner=OWNER), lambda: cluster.logs(over)):
            with pytest.raises(Unreachable):
                call()
        row = next(row for row in cluster.doctor() if row.name == "accounting")
        assert row.level == "warn"
    assert until(over, Phase.succeeded).exit_code == 0


def test_a_row_that_accounting_has_not_yet_is_no_task_less(
    bench: SlurmBench, cluster: SlurmCluster, slurm: Slurm, recorded: Recorded
) -> None:
    """Of an array that has ended accounting is asked too; where it is behind, the controller's word counts."""
    one_fails = "until [ -e told ]; do sleep 0.1; done; exit $((SLURM_ARRAY_TASK_ID == 2))"
    array = submit(cluster, bench.spec("sh", "-c", one_fails, extra_args=("--array=1-3",)))
    recorded({array: ["COMPLETED", "FAILED", "COMPLETED"]})
    assert slurm.sql("delete from slurm_acct_db.test_job_table where id_array_job="
                     f"{array.cluster_job_id} and id_array_task=2")  # fmt: skip
    assert slurm.has_recorded(array.cluster_job_id, "COMPLETED", "COMPLETED")
    seen = look(cluster, array)
    assert (seen.phase, seen.exit_code) == (Phase.failed, 1)
    assert seen.native.startswith("2 COMPLETED, 1 FAILED")


def test_an_end_that_accounting_does_not_know_yet_is_looked_for_again(
    bench: SlurmBench, cluster: SlurmCluster, slurm: Slurm, tmp_path: Path, recorded: Recorded
) -> None:
    """It ends while nobody watches, and is forgotten; its record comes late. Nothing is concluded before it."""
    figures = {"cpu": 1.0, "memory_mib": 20, "policy": {"second_look_s": 20.0, "hung_s": 600.0}}
    with Delegator(cluster, tmp_path, cluster_name="slurm") as delegator:
        run = delegator.delegate(command=ends_when_told(0), **figures)
        attempt = delegator.until(run, lambda job: job.state is State.running).attempt
    recorded({Ref(attempt.name, attempt.cluster_job_id): ["COMPLETED"]})
    slurm.forget()
    rename = "update slurm_acct_db.test_job_table set job_name='{}' where job_name='{}'"
    assert slurm.sql(rename.format("not-yet", attempt.name))
    with Delegator(cluster, tmp_path, cluster_name="slurm") as delegator:
        doubted = delegator.until(run, lambda job: job.attempt.suspect)
        assert doubted.attempt.suspect is not None
        assert (doubted.state, doubted.attempt.suspect.phase) == (State.running, Phase.gone)
        assert slurm.sql(rename.format(attempt.name, "not-yet"))
        end = delegator.until(run, ended, within_s=60)
        assert (end.state, end.collected.exit_code, len(end.attempts)) == (State.succeeded, 0, 1)


def test_accounting_that_calls_a_forgotten_job_running_is_not_believed(
    bench: SlurmBench, cluster: SlurmCluster, slurm: Slurm, until: Until, eventually: Eventually
) -> None:
    ref = submit(cluster, bench.spec(*sleeps()))
    until(ref, Phase.running)
    eventually(lambda: slurm.has_recorded(ref.cluster_job_id, "RUNNING"))
    slurm.forget()
    eventually(lambda: slurm.has_recorded(ref.cluster_job_id, "CANCELLED"))
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
    bench: SlurmBench, cluster: SlurmCluster, slurm: Slurm, recorded: Recorded
) -> None:
    """The controller lost its state and counts from 1 again; accounting has both jobs under one id."""
    slurm.forget(recycle=True)
    mine = submit(cluster, bench.spec(*ends_when_told(3)))
    recorded({mine: ["FAILED"]})
    slurm.forget(recycle=True)
    other = slurm.sbatch("--job-name=somebody-elses")
    assert other == mine.cluster_job_id
    seen = look(cluster, mine)
    assert (seen.phase, seen.exit_code, seen.attempt) == (Phase.failed, 3, 0)
    assert look(cluster, Ref("somebody-elses", other)).phase in (Phase.pending, Phase.running)
    cluster.stop(mine)
    assert "somebody-elses" in slurm.out("squeue", "-h", "-o", "%j")
