"""The Slurm cluster against a real Slurm without accounting: the contract, and what only Slurm does."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from agent.clock import SystemClock
from agent.clusters.base import Ref, Refused, Unclear, Unreachable
from agent.clusters.slurm import SlurmCluster
from states.observation import Phase, Waiting
from tests.clusters.bench import (
    HOSTILE,
    OVER,
    OWNER,
    Eventually,
    ends,
    look,
    sleeps,
    submission,
    submit,
)
from tests.clusters.contract import ClusterContract
from tests.clusters.slurm.bench import SlurmBench, Until
from tests.clusters.slurm.engine import Slurm


class TestTheContract(ClusterContract):
    @pytest.fixture
    def bench(self, slurm: Slurm, tmp_path: Path) -> Iterator[SlurmBench]:
        yield SlurmBench(slurm, tmp_path)
        slurm.clear()


# --- a controller that is slow or away ---------------------------------------------------------------------


@pytest.mark.parametrize("patience_s", [60.0, 1.0], ids=["sbatch gives up", "sbatch is killed"])
def test_a_submit_to_a_frozen_controller_is_unclear_and_found_later(
    bench: SlurmBench, cluster: SlurmCluster, slurm: Slurm, eventually: Eventually, patience_s: float
) -> None:
    sent = submission(bench.spec(*ends(0)))
    with slurm.frozen(), pytest.raises(Unclear):
        bench.client_now(submit_timeout_s=patience_s).submit(sent)
    matches = eventually(lambda: cluster.find(sent.name, fingerprint=sent.fingerprint, owner=OWNER))
    assert [match.ours for match in matches] == [True]


def test_a_frozen_controller_says_nothing_of_any_job(bench: SlurmBench, slurm: Slurm) -> None:
    hasty = bench.client(timeout_s=0.5)
    ref = submit(hasty, bench.spec(*sleeps()))
    with slurm.frozen():
        for call in (hasty.observe, lambda refs: hasty.find(refs[0].name), lambda refs: hasty.stop(refs[0])):
            with pytest.raises(Unreachable):
                call([ref])


def test_a_job_lives_through_the_controllers_death(
    bench: SlurmBench, cluster: SlurmCluster, slurm: Slurm, until: Until
) -> None:
    ref = submit(cluster, bench.spec(*sleeps()))
    until(ref, Phase.running)
    with slurm.without("slurmctld"), pytest.raises(Unreachable):
        look(cluster, ref)
    assert until(ref, Phase.running).attempt == 0


def test_a_purged_record_is_gone_and_no_outcome(
    bench: SlurmBench, cluster: SlurmCluster, slurm: Slurm, until: Until
) -> None:
    ref = submit(cluster, bench.spec(*ends(0)))
    assert until(ref).phase == Phase.succeeded
    slurm.forget()
    seen = look(cluster, ref)
    assert (seen.phase, seen.exit_code) == (Phase.gone, None)
    assert "accounting is off" in seen.reason
    assert list(cluster.find(ref.name)) == []


# --- whose job it is ---------------------------------------------------------------------------------------


def test_names_of_strangers_hide_nothing(bench: SlurmBench, cluster: SlurmCluster, slurm: Slurm) -> None:
    names = [HOSTILE, "a\nb", "x|y;z", "-o", "100%", "a,b", '"', "名字"]
    ids = {slurm.sbatch(f"--job-name={name}", "--hold"): name for name in names}
    ref = submit(cluster, bench.spec(*sleeps()))
    listed = {line.cluster_job_id: line.name for line in cluster.list()}
    wanted = ids | {ref.cluster_job_id: ref.name}
    assert {job_id: listed.get(job_id) for job_id in wanted} == wanted
    seen = cluster.observe([Ref(name, job_id) for job_id, name in ids.items()])
    assert {name: seen[name].phase for name in names} == dict.fromkeys(names, Phase.pending)


def test_the_second_job_of_a_name_runs_nothing(
    bench: SlurmBench, cluster: SlurmCluster, until: Until
) -> None:
    first = submit(cluster, bench.spec(*sleeps()))
    until(first, Phase.running)
    second = submit(cluster, bench.spec("sh", "-c", "touch doubled"), first.name)
    assert (until(second).phase, until(second).exit_code) == (Phase.failed, 98)
    assert not (bench.workspace / "doubled").exists()
    assert look(cluster, first).phase == Phase.running


def test_slurm_itself_can_hold_a_second_job_back(bench: SlurmBench, until: Until) -> None:
    locked = bench.client(singleton=True)
    first = submit(locked, bench.spec(*sleeps()))
    until(first, Phase.running)
    second = submit(locked, bench.spec(*sleeps()), first.name)
    waits = until(second, Phase.pending)
    assert (waits.reason, waits.waiting) == ("Dependency", Waiting.wait)


def test_an_id_alone_proves_nothing(bench: SlurmBench, cluster: SlurmCluster) -> None:
    ref = submit(cluster, bench.spec(*sleeps()))
    assert look(cluster, Ref("other-a0-12345678", ref.cluster_job_id)).phase == Phase.gone
    later = ref._replace(submitted_at=SystemClock().now() + timedelta(hours=1))
    assert look(cluster, later._replace(cluster_job_id="")).phase == Phase.gone
    for known in (ref, later):  # handed over long after its submit, by a Watchkeeper that lost its records
        assert look(cluster, known).phase in (Phase.pending, Phase.starting, Phase.running)
    earlier = SystemClock().now() - timedelta(hours=1)
    for recycled in (Ref(ref.cluster_job_id, ref.cluster_job_id, earlier), Ref("theirs", "999999", earlier)):
        assert look(cluster, recycled).phase == Phase.gone


def test_a_job_of_somebody_else_is_watched_by_its_id(
    bench: SlurmBench, cluster: SlurmCluster, slurm: Slurm, until: Until
) -> None:
    """It began before it was handed over, and its log lies where its owner wanted it."""
    script = "#!/bin/sh\necho theirs\nexit 3\n"
    job_id = slurm.sbatch("--job-name=their own", "--output=their.log", script=script, cwd=bench.workspace)
    ref = Ref(job_id, job_id, SystemClock().now() + timedelta(hours=1))
    end = until(ref)
    assert (end.phase, end.exit_code, end.confirmed) == (Phase.failed, 3, False)
    assert cluster.logs(ref).text == "theirs\n"
    assert [event.kind for event in cluster.events(ref)] == ["Queued", "Started", "Ended"]
    with pytest.raises(Refused, match="not started from here"):
        cluster.delete(ref)


# --- why a job waits ---------------------------------------------------------------------------------------


def test_what_a_reason_means(
    bench: SlurmBench, cluster: SlurmCluster, slurm: Slurm, eventually: Eventually
) -> None:
    assert slurm.ok("scontrol", "update", "nodename=n3", "state=drain", "reason=broken")
    failed = slurm.sbatch("--job-name=failed", script="#!/bin/sh\nexit 1\n")
    eventually(lambda: "FAILED" in slurm.out("squeue", "-h", "-t", "all", "-j", failed, "-o", "%T"))
    blocker = slurm.sbatch("--job-name=blocker", "-w", "n2", "-c", "4")
    meant = {
        "held": (["--hold"], "JobHeldUser", Waiting.held),
        "begins-later": (["--begin=now+1hour"], "BeginTime", Waiting.wait),
        "after-nothing": ([f"--dependency=afterok:{failed}"], "DependencyNeverSatisfied", Waiting.never),
        "too-long": (["-p", "short", "-t", "60"], "PartitionTimeLimit", Waiting.never),
        "closed": (["-p", "down"], "PartitionDown", Waiting.unclear),
        "too-many-nodes": (["-N", "9"], "PartitionConfig", Waiting.never),
        "drained": (["-w", "n3"], "ReqNodeNotAvail", Waiting.unclear),
        "behind": (["-w", "n2"], "Resources|Priority", Waiting.wait),
        "after-another": ([f"--dependency=afterok:{blocker}"], "Dependency", Waiting.wait),
    }
    refs = [Ref(name, slurm.sbatch(f"--job-name={name}", *words)) for name, (words, _, _) in meant.items()]

    def told() -> bool:
        seen = cluster.observe(refs)
        return all(
            re.match(rf"(?:{reason})\b", seen[name].reason) and seen[name].waiting is waiting
            for name, (_, reason, waiting) in meant.items()
        )

    eventually(told, within_s=20)
    assert {look(cluster, ref).phase for ref in refs} == {Phase.pending}
    assert [name for name, seen in cluster.observe(refs).items() if seen.held] == ["held"]


@pytest.mark.parametrize(
    ("changes", "cause"),
    [
        ({"memory_mib": 9_000_000}, "scheduling.unsatisfiable"),
        ({"group": "/nowhere"}, "scheduling.unsatisfiable"),
        ({"extra_args": ("--gres=gpu:99",)}, "scheduling.unsatisfiable"),
        ({"extra_args": ("--time=soon",)}, "command.bad_argument"),
    ],
)
def test_a_refusal_tells_its_cause_and_leaves_no_job(
    bench: SlurmBench, cluster: SlurmCluster, changes: dict[str, object], cause: str
) -> None:
    """The controller keeps a FAILED record of what it refused; that is no job of ours."""
    sent = submission(bench.spec(*ends(0), **changes))
    with pytest.raises(Refused) as told:
        cluster.submit(sent)
    assert (told.value.cause, told.value.retryable) == (cause, False)
    assert list(cluster.find(sent.name)) == []
    assert look(cluster, Ref(sent.name)).phase == Phase.gone


def test_a_prediction_in_slurms_words(bench: SlurmBench, cluster: SlurmCluster) -> None:
    assert re.search(
        r"start at 20\d\d-\d\d-\d\dT\S+\+00:00", cluster.predict(submission(bench.spec(*ends(0))))
    )
    with pytest.raises(Refused, match="not available"):
        cluster.predict(submission(bench.spec(*ends(0), memory_mib=9_000_000)))


# --- how a job ends ----------------------------------------------------------------------------------------


def test_preempted_by_requeue_is_pending_under_the_same_id(
    bench: SlurmBench, cluster: SlurmCluster, until: Until
) -> None:
    idle = submit(cluster, bench.spec(*sleeps(), lane="idle", cpu=4.0, replicas=2))
    until(idle, Phase.running)
    normal = submit(cluster, bench.spec(*sleeps(), cpu=4.0))
    again = until(idle, Phase.pending, *OVER)
    assert (again.phase, again.attempt, again.twins) == (Phase.pending, 1, ())
    until(normal, Phase.running)


def test_a_requeued_job_goes_on_under_its_id_and_in_its_log(
    bench: SlurmBench, cluster: SlurmCluster, slurm: Slurm, until: Until, eventually: Eventually
) -> None:
    command = (
        "sh",
        "-c",
        "if [ -e once ]; then echo again; exit 4; fi; touch once; echo first; exec sleep 600",
    )
    ref = submit(cluster, bench.spec(*command))
    eventually(lambda: "first" in cluster.logs(ref).text)
    assert slurm.ok("scontrol", "requeue", ref.cluster_job_id)
    waits = until(ref, Phase.pending, *OVER)
    assert (waits.phase, waits.attempt, waits.waiting) == (Phase.pending, 1, Waiting.wait)
    end = until(ref)
    assert (end.phase, end.attempt, end.exit_code, end.confirmed) == (Phase.failed, 1, 4, True)
    assert cluster.logs(ref).text.splitlines()[0] == "first"
    assert cluster.logs(ref).text.endswith("again\n")


@pytest.mark.parametrize(
    ("requeue", "phase", "attempt", "cause"),
    [(False, Phase.lost, 0, "node.lost"), (True, Phase.pending, 1, "")],
)
def test_a_node_that_dies(
    bench: SlurmBench, slurm: Slurm, until: Until, requeue: bool, phase: Phase, attempt: int, cause: str
) -> None:
    ref = submit(bench.client(requeue=requeue), bench.spec(*sleeps(), exclude_nodes=("n3",)))
    assert until(ref, Phase.running).node == "n2"
    assert slurm.ok("scontrol", "update", "nodename=n2", "state=down", "reason=dead")
    seen = until(ref, Phase.pending, *OVER)
    assert (seen.phase, seen.attempt, seen.cause) == (phase, attempt, cause)


def test_over_its_time(bench: SlurmBench, cluster: SlurmCluster, slurm: Slurm, until: Until) -> None:
    """The state counts, not the exit code, which is 0:0 (PHASES, pitfall 2)."""
    ref = submit(cluster, bench.spec(*sleeps(), time_limit_s=90))
    until(ref, Phase.running)
    assert "TimeLimit=00:02:00" in slurm.out("scontrol", "show", "job", ref.cluster_job_id)
    assert slurm.ok("scontrol", "update", f"jobid={ref.cluster_job_id}", "EndTime=now")
    end = until(ref)
    assert (end.phase, end.cause, end.exit_code) == (Phase.failed, "scheduling.time_limit", None)
    assert "DUE TO TIME LIMIT" in cluster.logs(ref).text


def test_a_log_that_cannot_be_opened(
    bench: SlurmBench, cluster: SlurmCluster, slurm: Slurm, until: Until
) -> None:
    ref = Ref("no-log", slurm.sbatch("--job-name=no-log", f"--output={bench.workspace}/absent/log"))
    end = until(ref)
    assert (end.phase, end.signal, end.cause) == (Phase.failed, 53, "mount.permission")
    assert "no log" in end.reason
    assert not cluster.logs(ref).ready


# --- what goes in ------------------------------------------------------------------------------------------


def test_an_array_is_one_job_with_counts(bench: SlurmBench, cluster: SlurmCluster, until: Until) -> None:
    one_fails = ("sh", "-c", "echo task $SLURM_ARRAY_TASK_ID; exit $((SLURM_ARRAY_TASK_ID == 2))")
    ref = submit(cluster, bench.spec(*one_fails, extra_args=("--array=1-4%2",)))
    (match,) = cluster.find(ref.name)
    assert match.cluster_job_id == ref.cluster_job_id
    assert look(cluster, ref).twins == ()
    end = until(ref)
    assert (end.phase, end.exit_code, end.confirmed) == (Phase.failed, 1, True)
    assert end.native.startswith("3 COMPLETED, 1 FAILED")
    assert re.fullmatch(r"task [1-4]\n", cluster.logs(ref).text)
    assert look(cluster, Ref(ref.name, f"{ref.cluster_job_id}_3")).phase == Phase.succeeded


def test_an_array_is_stopped_as_a_whole(bench: SlurmBench, cluster: SlurmCluster, until: Until) -> None:
    ref = submit(cluster, bench.spec(*sleeps(), extra_args=("--array=1-20",)))
    until(ref, Phase.running)
    cluster.stop(ref)
    end = until(ref)
    assert (end.phase, end.native.split(",")[0][:12]) == (Phase.stopped, "20 CANCELLED")


def test_replicas_start_together_and_find_each_other(
    bench: SlurmBench, cluster: SlurmCluster, until: Until
) -> None:
    tell = ("sh", "-c", 'echo "$SLURM_PROCID of $SLURM_NTASKS on $SLURMD_NODENAME by $MASTER_ADDR"')
    ref = submit(cluster, bench.spec(*tell, replicas=2, cpu=2.0))
    end = until(ref)
    assert (end.phase, end.replicas, end.confirmed) == (Phase.succeeded, 2, True)
    assert sorted(cluster.logs(ref).text.splitlines()) == ["0 of 2 on n2 by n2", "1 of 2 on n3 by n2"]


def test_gpus_are_counted_and_given(bench: SlurmBench, cluster: SlurmCluster, until: Until) -> None:
    before = cluster.capacity()
    assert (before.total_gpu, before.free_gpu, before.block_gpu, before.queued) == (4, 4, 2, 0)
    give = ("sh", "-c", 'echo "$CUDA_VISIBLE_DEVICES"; exec sleep 600')
    ref = submit(cluster, bench.spec(*give, gpu=1))
    until(ref, Phase.running)
    after = cluster.capacity("/normal")
    assert (after.total_gpu, after.free_gpu, after.block_gpu) == (4, 3, 2)
    assert (after.free_cpu, after.total_cpu) == (7, 8)
    with pytest.raises(Refused, match="no partition"):
        cluster.capacity("lab/nowhere")


def test_the_lines_of_a_users_script_hold_and_are_shown(
    bench: SlurmBench, cluster: SlurmCluster, slurm: Slurm, until: Until
) -> None:
    lines = [
        "#!/bin/bash",
        "#SBATCH --time=7 --job-name=theirs",
        "#SBATCH -w n3",
        "#SBATCH -o x.out",
        "exit 6",
    ]
    (bench.workspace / "train.sbatch").write_text("\n".join(lines))
    spec = bench.spec("bash", "train.sbatch")
    shown = cluster.render(submission(spec))
    assert "#SBATCH --time=7" in shown
    assert "# from the script, set aside: --job-name=theirs" in shown
    ref = submit(cluster, spec)
    end = until(ref)
    assert (end.exit_code, end.node) == (6, "n3")
    assert "TimeLimit=00:07:00" in slurm.out("scontrol", "show", "job", ref.cluster_job_id)


def test_what_is_shown_is_what_is_sent(bench: SlurmBench, cluster: SlurmCluster, slurm: Slurm) -> None:
    sent = submission(bench.spec(*sleeps(), env={"A": "b"}))
    shown = cluster.render(sent)
    job_id = cluster.submit(sent).cluster_job_id
    kept = slurm.out("scontrol", "write", "batch_script", job_id, "-")
    assert kept.rstrip("\n\0").replace("export A=b", "export A=...") in shown
    assert (bench.workspace / ".watchkeeper").is_dir()
