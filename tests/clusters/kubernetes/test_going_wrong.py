"""Preemption, dead nodes, deadlines, stops, Kueue: what must never be concluded from them."""

from __future__ import annotations

import pytest

from agent.clusters.base import NotThere, Ref, Refused, Unreachable
from agent.clusters.kubernetes import KubernetesCluster
from states.observation import Phase, Waiting
from tests.clusters.bench import Eventually, ends, look, prints, sleeps, submit
from tests.clusters.kubernetes.bench import KubernetesBench
from tests.clusters.kubernetes.objects import IGNORED
from tests.clusters.kubernetes.plane import set_condition
from tests.clusters.kubernetes.server import Call, Emulator
from tests.clusters.kubernetes.steps import Until, calls, lost, once, overlay
from tests.clusters.kubernetes.store import copy

pytest.importorskip("kubernetes", reason="the extra `kubernetes` is not installed")


# --- preemption, nodes, deadlines --------------------------------------------------------------------------


def test_a_preempted_job_is_known_as_such_when_its_pod_is_long_gone(
    bench: KubernetesBench, cluster: KubernetesCluster, until: Until
) -> None:
    idle = submit(cluster, bench.spec(*sleeps(), lane="idle", **bench.whole))
    until(idle, Phase.running)
    submit(cluster, bench.spec(*sleeps()))
    until(idle, Phase.preempted)
    with bench.emulator.store.lock:
        for pod in bench.emulator.store.all("pods", "lab"):
            if pod["metadata"]["name"].startswith(idle.name):
                bench.emulator.store.remove("pods", pod)
        for event in bench.emulator.store.all("events", "lab"):
            bench.emulator.store.remove("events", event)
    seen = look(cluster, idle)
    assert (seen.phase, seen.cause) == (Phase.preempted, "scheduling.preempted")
    with pytest.raises(NotThere, match="gone"):
        cluster.logs(idle)
    assert cluster.events(idle)  # its conditions still tell


def test_a_preemption_that_the_job_ignores_is_a_restart_under_the_same_id(
    bench: KubernetesBench, cluster: KubernetesCluster, until: Until
) -> None:
    keeps = overlay(podFailurePolicy={"rules": IGNORED})
    idle = submit(cluster, bench.spec(*sleeps(), lane="idle", extra_args=keeps, **bench.whole))
    until(idle, Phase.running)
    normal = submit(cluster, bench.spec(*sleeps()))
    until(normal, Phase.running)
    assert until(idle, Phase.pending).waiting == Waiting.wait
    cluster.stop(normal)
    until(idle, Phase.running)


def test_a_pod_on_a_node_that_fell_silent_is_lost_although_it_says_running(
    bench: KubernetesBench, cluster: KubernetesCluster, until: Until
) -> None:
    ref = submit(cluster, bench.spec(*sleeps()))
    until(ref, Phase.running)
    bench.emulator.lose_node("n1")
    seen = look(cluster, ref)
    assert (seen.phase, seen.node) == (Phase.lost, "n1")
    with pytest.raises(Unreachable):
        cluster.logs(ref)
    bench.emulator.forbidden.add(("list", "nodes"))
    assert look(cluster, ref).phase == Phase.running  # nobody may say so: not decided


def test_a_deadline_of_the_job_counts_the_wait_and_says_so(
    bench: KubernetesBench, cluster: KubernetesCluster, until: Until
) -> None:
    slow = bench.spec(*ends(0), image="slow/own:1", extra_args=overlay(activeDeadlineSeconds=1))
    end = until(submit(cluster, slow))
    assert (end.phase, end.cause) == (Phase.failed, "scheduling.time_limit")
    assert "waiting and pulling count too" in end.reason


def test_our_time_limit_counts_from_the_start(
    bench: KubernetesBench, cluster: KubernetesCluster, until: Until
) -> None:
    ref = submit(cluster, bench.spec(*prints(2, "exec sleep 600"), time_limit_s=1.0))
    end = until(ref)
    assert (end.phase, end.cause) == (Phase.failed, "scheduling.time_limit")
    assert cluster.logs(ref).text == "line 1\nline 2\n"


def test_a_record_that_expired_is_gone_and_no_end(
    bench: KubernetesBench, cluster: KubernetesCluster, until: Until
) -> None:
    ref = submit(cluster, bench.spec(*ends(0), extra_args=overlay(ttlSecondsAfterFinished=0)))
    assert until(ref, Phase.gone, Phase.succeeded).phase in (Phase.gone, Phase.succeeded)
    until(ref, Phase.gone)


# --- stop and delete ---------------------------------------------------------------------------------------


def test_a_stop_suspends_and_keeps_the_record_and_the_last_lines(
    bench: KubernetesBench, cluster: KubernetesCluster, until: Until, eventually: Eventually
) -> None:
    ref = submit(cluster, bench.spec(*prints(3, "exec sleep 600")))
    eventually(lambda: "line 3" in cluster.logs(ref).text)
    cursor = cluster.logs(ref, lines=1).cursor
    began = look(cluster, ref).started_at
    cluster.stop(ref)
    end = until(ref)
    assert (end.phase, end.started_at, end.replicas_ready) == (Phase.stopped, began, None)
    assert bench.emulator.store.all("pods", "lab") == []
    other = bench.client()
    assert other.logs(ref, lines=2).text == "line 2\nline 3\n"
    assert other.logs(ref, lines=1, head=True).text == "line 1\n"
    assert other.logs(ref, cursor=cursor).text == ""
    (kept,) = (bench.folder / "kept").iterdir()
    assert (kept.stat().st_mode & 0o077, kept.parent.stat().st_mode & 0o077) == (0, 0)
    cluster.delete(ref)
    assert not kept.exists()
    assert calls(bench, "DELETE", "/jobs/")[-1].body["propagationPolicy"] == "Background"


def test_a_log_that_cannot_be_had_does_not_hold_a_stop_up(
    bench: KubernetesBench, cluster: KubernetesCluster, until: Until
) -> None:
    ref = submit(cluster, bench.spec(*sleeps()))
    until(ref, Phase.running)
    bench.emulator.before.append(once(lost, "GET", "/log"))
    cluster.stop(ref)
    assert until(ref).phase == Phase.stopped
    with pytest.raises(NotThere):
        bench.client(root=bench.folder / "elsewhere").logs(ref)


def test_suspended_by_somebody_else_is_not_stopped(
    bench: KubernetesBench, cluster: KubernetesCluster, until: Until
) -> None:
    ref = submit(cluster, bench.spec(*sleeps()))
    until(ref, Phase.running)
    suspend(bench.emulator, ref.name)
    seen = until(ref, Phase.pending)
    assert (seen.held, seen.waiting) == (True, Waiting.held)
    with pytest.raises(Refused):
        cluster.delete(ref)


def suspend(emulator: Emulator, name: str) -> None:
    with emulator.store.lock:
        job = emulator.store.get("jobs", name, "lab")
        assert job is not None
        job["spec"]["suspend"] = True
        emulator.store.changed("jobs", job)


def test_a_delete_does_not_meet_a_later_job_of_the_same_name(
    bench: KubernetesBench, cluster: KubernetesCluster, until: Until
) -> None:
    ref = submit(cluster, bench.spec(*ends(0)))
    until(ref)

    def replaced(_: Call) -> None:
        with bench.emulator.store.lock:
            old = bench.emulator.store.get("jobs", ref.name, "lab")
            assert old is not None
            fresh = copy(old)
            fresh["metadata"].pop("uid")
            bench.emulator.store.remove("jobs", old)
            bench.emulator.store.create("jobs", fresh, "lab")

    bench.emulator.before.append(once(replaced, "DELETE", "/jobs/"))
    with pytest.raises(Refused):
        cluster.delete(ref)
    assert cluster.find(ref.name)


# --- Kueue -------------------------------------------------------------------------------------------------


@pytest.fixture
def queued(bench: KubernetesBench) -> KubernetesCluster:
    bench.emulator.plane.kueue = True
    return bench.client(queue="team")


def admit(bench: KubernetesBench, ref: Ref) -> None:
    with bench.emulator.store.lock:
        workload = bench.emulator.store.get("workloads", f"job-{ref.name}", "lab")
        assert workload is not None
        set_condition(workload, "QuotaReserved", "True", "QuotaReserved", "")
        set_condition(workload, "Admitted", "True", "Admitted", "")
        bench.emulator.store.changed("workloads", workload)


def test_a_queued_job_waits_for_kueue_and_then_runs(
    bench: KubernetesBench, queued: KubernetesCluster, until: Until
) -> None:
    ref = submit(queued, bench.spec(*ends(0)))
    seen = look(queued, ref)
    assert (seen.phase, seen.held, seen.waiting) == (Phase.pending, False, Waiting.wait)
    admit(bench, ref)
    assert until(ref, client=queued).phase == Phase.succeeded


def test_a_stop_of_an_admitted_job_is_not_undone_by_kueue(
    bench: KubernetesBench, queued: KubernetesCluster, until: Until
) -> None:
    ref = submit(queued, bench.spec(*sleeps()))
    admit(bench, ref)
    until(ref, Phase.running, client=queued)
    queued.stop(ref)
    assert until(ref, client=queued).phase == Phase.stopped
    bench.emulator.plane.settle()
    assert look(queued, ref).phase == Phase.stopped


def test_a_stop_of_a_job_that_kueue_has_not_seen_takes_it_out_of_the_queue(
    bench: KubernetesBench, queued: KubernetesCluster, until: Until
) -> None:
    bench.emulator.plane.kueue = False
    ref = submit(queued, bench.spec(*sleeps()))
    queued.stop(ref)
    bench.emulator.plane.kueue = True
    assert until(ref, client=queued).phase == Phase.stopped
    assert bench.emulator.store.all("workloads") == []
