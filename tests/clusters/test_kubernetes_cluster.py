"""Kubernetes beyond the contract: what its API server really does, and what must never be concluded from it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from agent.clusters.base import ClusterError, NotThere, Ref, Refused, Unreachable
from agent.clusters.kubernetes import KubernetesCluster
from states.observation import Observation, Phase, Waiting
from tests.clusters.bench import OVER, Eventually, ends, look, prints, sleeps, submission, submit
from tests.clusters.kubernetes.bench import KubernetesBench
from tests.clusters.kubernetes.controllers import set_condition
from tests.clusters.kubernetes.objects import IGNORED
from tests.clusters.kubernetes.server import Call, Emulator, Failure
from tests.clusters.kubernetes.store import copy, stamp

pytest.importorskip("kubernetes", reason="the extra `kubernetes` is not installed")

Until = Callable[..., Observation]


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[KubernetesBench]:
    bench = KubernetesBench(tmp_path)
    yield bench
    bench.close()


@pytest.fixture
def cluster(bench: KubernetesBench) -> KubernetesCluster:
    return bench.client()


@pytest.fixture
def until(bench: KubernetesBench, eventually: Eventually) -> Until:
    """`until(ref, Phase.running)`: the first look that shows one of these phases (by default any end)."""

    def wait(ref: Ref, *phases: Phase, client: KubernetesCluster | None = None) -> Observation:
        asked = client or bench.client()

        def shows() -> Observation | None:
            seen = look(asked, ref)
            return seen if seen.phase in (phases or OVER) and not seen.finishing else None

        found: Observation = eventually(shows, within_s=bench.wait_s)
        return found

    return wait


def calls(bench: KubernetesBench, method: str, words: str = "") -> list[Call]:
    return [call for call in bench.emulator.calls if call.method == method and words in call.path]


def overlay(**spec: Any) -> tuple[str, ...]:
    """An extra argument that lays these fields over the Job's spec."""
    return (json.dumps({"spec": spec}),)


def once(doing: Callable[[Call], None], method: str, words: str) -> Callable[[Call], None]:
    """A hook for the first such request only."""
    left = [True]

    def hook(call: Call) -> None:
        if left[0] and call.method == method and words in call.path:
            left[0] = False
            doing(call)

    return hook


def lost(_: Call) -> None:
    raise ConnectionError


# --- submit once -------------------------------------------------------------------------------------------


def test_a_submit_whose_answer_was_lost_is_found_by_its_name_and_taken_over(
    bench: KubernetesBench, cluster: KubernetesCluster
) -> None:
    bench.emulator.after.append(once(lost, "POST", "/jobs"))
    sent = submission(bench.spec(*ends(0)))
    with pytest.raises(Unreachable):
        cluster.submit(sent)
    (found,) = cluster.find(sent.name, fingerprint=sent.fingerprint, owner=sent.owner)
    assert found.ours
    again = cluster.submit(sent)
    assert again.cluster_job_id == found.cluster_job_id
    assert "already" in again.note
    assert len(bench.emulator.store.all("jobs")) == 1


def test_a_create_is_never_sent_twice_by_itself(bench: KubernetesBench, cluster: KubernetesCluster) -> None:
    bench.emulator.before.append(lambda call: lost(call) if call.method == "POST" else None)
    with pytest.raises(Unreachable):
        cluster.submit(submission(bench.spec(*ends(0))))
    assert len(calls(bench, "POST", "/jobs")) == 1


def test_the_same_submission_of_somebody_else_is_not_taken_over(
    bench: KubernetesBench, cluster: KubernetesCluster
) -> None:
    sent = submission(bench.spec(*sleeps()))
    cluster.submit(sent)
    for other in ({"owner": "another"}, {"fingerprint": "00000000"}):
        with pytest.raises(Refused, match="another one"):
            cluster.submit(sent.model_copy(update=other))


@pytest.mark.parametrize(
    ("failure", "kind", "cause"),
    [
        (Failure(403, "Forbidden", "jobs.batch is forbidden: exceeded quota: q"), Refused, "scheduling.quota"),
        (Failure(403, "Forbidden", "jobs.batch is forbidden: User cannot create"), Refused, ""),
        (Failure(422, "Invalid", "spec: Invalid value"), Refused, ""),
        (Failure(400, "BadRequest", 'admission webhook "w" denied the request'), Refused, ""),
        (Failure(404, "NotFound", 'namespaces "lab" not found'), Refused, ""),
        (Failure(401, "Unauthorized", "Unauthorized"), Refused, ""),
        (Failure(429, "TooManyRequests", "try again"), Unreachable, ""),
        (Failure(500, "InternalError", "etcdserver: request timed out"), Unreachable, ""),
        (Failure(504, "Timeout", "Timeout: request did not complete"), Unreachable, ""),
    ],
)  # fmt: skip
def test_what_is_a_no_and_what_is_no_answer(
    bench: KubernetesBench, cluster: KubernetesCluster, failure: Failure, kind: type, cause: str
) -> None:
    def fails(_: Call) -> None:
        raise failure

    bench.emulator.before.append(once(fails, "POST", "/jobs"))
    with pytest.raises(ClusterError) as told:
        cluster.submit(submission(bench.spec(*ends(0))))
    assert type(told.value) is kind
    assert getattr(told.value, "cause", "") == cause
    assert str(failure) in str(told.value)


def test_a_new_token_is_read_after_a_refused_one(bench: KubernetesBench, cluster: KubernetesCluster) -> None:
    file = Path(str(bench.options["kubeconfig"]))
    right = file.read_text()
    file.write_text(right.replace("a-token", "an-old-token"))
    with pytest.raises(Refused, match="log in again"):
        cluster.list()
    file.write_text(right)
    assert list(cluster.list()) == []


# --- several replicas --------------------------------------------------------------------------------------


def test_replicas_find_each_other_through_a_service_that_comes_first(
    bench: KubernetesBench, cluster: KubernetesCluster, until: Until
) -> None:
    show = ("sh", "-c", 'echo "rank $RANK of $WORLD_SIZE at $MASTER_ADDR:$MASTER_PORT"')
    ref = submit(cluster, bench.spec(*show, replicas=3))
    made = [call.path.rpartition("/")[2] for call in calls(bench, "POST")]
    assert made == ["services", "jobs"]
    service = bench.emulator.store.get("services", ref.name, "lab")
    assert service is not None
    assert service["metadata"]["ownerReferences"][0]["name"] == ref.name
    end = until(ref)
    assert (end.phase, end.replicas) == (Phase.succeeded, 3)
    assert cluster.logs(ref).text == f"rank 0 of 3 at {ref.name}-0.{ref.name}:29500\n"
    cluster.delete(ref)
    assert bench.emulator.store.all("services") == []


def test_the_log_of_the_replica_that_failed_is_the_one_worth_reading(
    bench: KubernetesBench, cluster: KubernetesCluster, until: Until
) -> None:
    fails = ("sh", "-c", 'echo "here is $RANK"; [ $RANK = 1 ] && exit 3; exec sleep 600')
    ref = submit(cluster, bench.spec(*fails, replicas=2))
    end = until(ref)
    assert (end.phase, end.exit_code) == (Phase.failed, 3)
    assert cluster.logs(ref).text == "here is 1\n"


def test_a_job_that_is_refused_leaves_no_service(bench: KubernetesBench, cluster: KubernetesCluster) -> None:
    bench.emulator.forbidden.add(("create", "jobs"))
    with pytest.raises(Refused):
        cluster.submit(submission(bench.spec(*ends(0), replicas=2)))
    assert bench.emulator.store.all("services") == []


# --- queue, quota, pulls -----------------------------------------------------------------------------------


def test_a_job_over_the_quota_is_accepted_and_waits_with_the_reason(
    bench: KubernetesBench, cluster: KubernetesCluster, until: Until
) -> None:
    quota = {
        "metadata": {"name": "q"},
        "spec": {"hard": {"requests.cpu": "1"}},
        "status": {"hard": {"requests.cpu": "1"}},
    }
    bench.emulator.store.create("resourcequotas", quota, "lab")
    ref = submit(cluster, bench.spec(*sleeps(), cpu=0.75))
    other = submit(cluster, bench.spec(*ends(0), cpu=0.75))
    never = submit(cluster, bench.spec(*ends(0), cpu=2.0))
    waits = look(cluster, other)
    assert (waits.phase, waits.waiting, waits.cause) == (Phase.pending, Waiting.wait, "scheduling.quota")
    assert "exceeded quota" in waits.reason
    assert look(cluster, never).waiting == Waiting.never
    cluster.stop(ref)
    assert until(other).phase == Phase.succeeded


def test_an_image_that_is_not_there_never_fails_and_is_named(
    bench: KubernetesBench, cluster: KubernetesCluster, eventually: Eventually
) -> None:
    missing = submit(cluster, bench.spec(*ends(0), image="missing/own:1"))
    denied = submit(cluster, bench.spec(*ends(0), image="denied/own:1"))
    eventually(lambda: look(cluster, denied).cause == "image.auth")
    eventually(lambda: look(cluster, missing).cause == "image.not_found")
    seen = look(cluster, missing)
    assert (seen.phase, seen.held) == (Phase.starting, False)
    assert cluster.logs(missing).ready is False
    cluster.stop(missing)
    eventually(lambda: look(cluster, missing).phase == Phase.stopped)


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


# --- other people's jobs, and other rights -----------------------------------------------------------------


def theirs(bench: KubernetesBench, name: str, client: KubernetesCluster) -> Ref:
    """A Job that somebody made without us: none of our labels."""
    sent = submission(bench.spec("sh", "-c", "echo theirs; exec sleep 600"), name)
    made = client.render(sent)
    assert made
    client.submit(sent)
    with bench.emulator.store.lock:
        job = bench.emulator.store.get("jobs", name, "lab")
        assert job is not None
        job["metadata"]["labels"] = {}
        for pod in bench.emulator.plane.pods_of(job):
            kept = ("job-name", "batch.kubernetes.io/job-name")
            pod["metadata"]["labels"] = {key: pod["metadata"]["labels"][key] for key in kept}
    return Ref(name)


def test_somebody_elses_job_is_watched_read_and_stopped(
    bench: KubernetesBench, cluster: KubernetesCluster, until: Until, eventually: Eventually
) -> None:
    ref = theirs(bench, "their-job", cluster)
    until(ref, Phase.running)
    eventually(lambda: cluster.logs(ref).text == "theirs\n")
    assert [line.ours for line in cluster.list(everyone=True)] == [False]
    assert list(cluster.list()) == []
    assert not cluster.find(ref.name, fingerprint="00000000")[0].ours
    cluster.stop(ref)
    assert until(ref).phase == Phase.stopped


@pytest.mark.parametrize("name", ["../secrets", "a/b/c", "", "UPPER", "x?watch=true", "a%2fb", "-", "a b"])
def test_no_name_makes_another_path(bench: KubernetesBench, cluster: KubernetesCluster, name: str) -> None:
    assert list(cluster.find(name)) == []
    for ref in (Ref("run", name), Ref(name)):
        if not (ref.cluster_job_id or ref.name):
            continue
        with pytest.raises(NotThere):
            cluster.logs(ref)
    assert all("secrets" not in call.path for call in bench.emulator.calls)


def test_what_may_not_be_read_is_not_taken_for_missing(
    bench: KubernetesBench, cluster: KubernetesCluster, until: Until
) -> None:
    ref = submit(cluster, bench.spec(*sleeps()))
    until(ref, Phase.running)
    for kind in ("jobs", "pods"):
        bench.emulator.forbidden = {("list", kind), ("get", kind)}
        with pytest.raises(Refused):
            look(bench.client(), ref)
        with pytest.raises(Refused):
            bench.client().find(ref.name)
    bench.emulator.forbidden = {("list", "events")}
    assert look(bench.client(), ref).phase == Phase.running


def test_capacity_without_rights_comes_from_the_quota(
    bench: KubernetesBench, cluster: KubernetesCluster
) -> None:
    whole = cluster.capacity()
    assert (whole.free_gpu, whole.total_gpu, whole.block_gpu, whole.total_memory_mib) == (2, 2, 2, 2000)
    hard = {"requests.nvidia.com/gpu": "16", "requests.cpu": "8"}
    status = {"hard": hard, "used": {"requests.nvidia.com/gpu": "10", "requests.cpu": "500m"}}
    quota = {"metadata": {"name": "q"}, "spec": {"hard": hard}, "status": status}
    bench.emulator.store.create("resourcequotas", quota, "lab")
    assert cluster.capacity().free_gpu == 2  # both bind
    bench.emulator.forbidden.add(("list", "nodes"))
    told = cluster.capacity()
    assert (told.free_gpu, told.total_gpu, told.free_cpu, told.block_gpu) == (6, 16, 7.5, None)
    bench.emulator.forbidden.add(("list", "resourcequotas"))
    with pytest.raises(Refused):
        cluster.capacity()


def test_a_node_that_takes_no_pods_is_no_room(bench: KubernetesBench, cluster: KubernetesCluster) -> None:
    cordoned = bench.emulator.node("n2", cpu="64", gpu="8")
    cordoned["spec"]["unschedulable"] = True
    tainted = bench.emulator.node("n3", cpu="64", gpu="8")
    tainted["spec"]["taints"] = [{"key": "team", "value": "other", "effect": "NoSchedule"}]
    assert cluster.capacity().total_gpu == 2
    tainted["spec"]["taints"] = [{"key": "nvidia.com/gpu", "effect": "NoSchedule"}]
    assert (cluster.capacity().total_gpu, cluster.capacity().block_gpu) == (10, 8)


def test_a_prediction_is_a_dry_run_and_a_look_at_the_nodes(
    bench: KubernetesBench, cluster: KubernetesCluster
) -> None:
    assert "room for it now" in cluster.predict(submission(bench.spec(*ends(0))))
    assert "never start" in cluster.predict(submission(bench.spec(*ends(0), gpu=9)))
    assert all(call.query["dryRun"] == "All" for call in calls(bench, "POST", "/jobs"))
    with pytest.raises(Refused):
        cluster.predict(submission(bench.spec(*ends(0), extra_args=overlay(nonsense=1))))
    assert bench.emulator.store.all("jobs") == []


# --- many jobs ---------------------------------------------------------------------------------------------


def a_record(place: int) -> dict[str, Any]:
    status = {
        "conditions": [{"type": "Complete", "status": "True", "lastTransitionTime": stamp()}],
        "succeeded": 1,
    }
    name = f"run-{place:04}-a0-0123abcd"
    labels = {"app.kubernetes.io/managed-by": "watchkeeper"}
    return {"metadata": {"name": name, "labels": labels}, "spec": {"suspend": False}, "status": status}


@pytest.fixture
def crowd(tmp_path: Path) -> Iterator[tuple[Emulator, KubernetesCluster]]:
    """1,200 Jobs and nobody behind the API."""
    emulator = Emulator(control_plane=False)
    for place in range(1200):
        emulator.store.create("jobs", a_record(place), "lab")
    file = tmp_path / "kubeconfig"
    file.write_text(json.dumps(emulator.kubeconfig()))
    yield emulator, KubernetesCluster("kubernetes", {"kubeconfig": str(file), "root": tmp_path})
    emulator.close()


def refs(count: int) -> Sequence[Ref]:
    return [Ref(f"run-{place:04}-a0-0123abcd") for place in range(count)]


def test_a_second_look_at_many_jobs_reads_only_what_changed(
    crowd: tuple[Emulator, KubernetesCluster],
) -> None:
    emulator, cluster = crowd
    seen = cluster.observe(refs(1200))
    assert {one.phase for one in seen.values()} == {Phase.succeeded}
    assert len([call for call in emulator.calls if call.path.endswith("/jobs")]) == 3  # in pieces of 500
    emulator.calls.clear()
    with emulator.store.lock:
        removed, changed = emulator.store.all("jobs")[:2]
        emulator.store.remove("jobs", removed)
        changed["status"] = {
            "conditions": [{"type": "Failed", "status": "True", "reason": "DeadlineExceeded"}]
        }
        emulator.store.changed("jobs", changed)
        emulator.store.create("jobs", a_record(1200), "lab")
    seen = cluster.observe(refs(1201))
    (jobs,) = [call for call in emulator.calls if call.path.endswith("/jobs")]
    assert jobs.query["watch"] == "true"
    assert [seen[ref.name].phase for ref in refs(2)] == [Phase.gone, Phase.failed]
    assert seen[refs(1201)[-1].name].phase == Phase.succeeded


@pytest.mark.parametrize("how", ["in the stream", "as a status"])
def test_a_history_that_was_forgotten_is_read_anew(
    crowd: tuple[Emulator, KubernetesCluster], how: str
) -> None:
    emulator, cluster = crowd
    cluster.observe(refs(1))
    with emulator.store.lock:
        emulator.store.remove("jobs", emulator.store.all("jobs")[0])
        emulator.store.compact()

    def gone(call: Call) -> None:
        raise Failure(410, "Expired", "too old resource version")

    if how == "as a status":
        emulator.before.append(once(lambda call: gone(call), "GET", "/jobs"))
    assert cluster.observe(refs(1))[refs(1)[0].name].phase == Phase.gone


def test_a_list_that_expires_between_two_pieces_is_read_in_one(
    crowd: tuple[Emulator, KubernetesCluster],
) -> None:
    emulator, cluster = crowd

    def compact(call: Call) -> None:
        if "continue" in call.query:
            emulator.store.version += 1
            emulator.store.compact()

    emulator.before.append(compact)
    assert {one.phase for one in cluster.observe(refs(1200)).values()} == {Phase.succeeded}


def test_an_answer_that_is_lost_on_the_way_leaves_the_copy_as_it_was(
    crowd: tuple[Emulator, KubernetesCluster],
) -> None:
    emulator, cluster = crowd
    cluster.observe(refs(1200))
    emulator.before.append(once(lost, "GET", "/jobs"))
    with pytest.raises(Unreachable):
        cluster.observe(refs(1200))
    assert len(cluster.observe(refs(1200))) == 1200


def test_an_answer_that_is_no_json_is_no_answer(bench: KubernetesBench, cluster: KubernetesCluster) -> None:
    bench.emulator.answer = lambda call: b"<html>a proxy speaks</html>"  # type: ignore[method-assign]
    for asks in (lambda: look(cluster, Ref("run")), lambda: cluster.find("run"), lambda: cluster.list()):
        with pytest.raises(ClusterError) as told:
            asks()
        assert not isinstance(told.value, NotThere)


# --- set-up ------------------------------------------------------------------------------------------------


def test_the_doctor_finds_what_is_missing(bench: KubernetesBench, cluster: KubernetesCluster) -> None:
    assert {row.level for row in cluster.doctor()} == {"fine"}
    bench.emulator.forbidden |= {("create", "jobs"), ("list", "nodes")}
    rows = {(row.name, row.level) for row in bench.client(queue="team", priority_class="none").doctor()}
    assert rows >= {("rights", "wrong"), ("rights", "warn"), ("queue", "wrong"), ("priority", "wrong")}
    (away,) = bench.severed().doctor()
    assert (away.level, bool(away.mend)) == ("wrong", True)


def test_a_kubeconfig_that_is_not_there_says_what_to_do(tmp_path: Path) -> None:
    cluster = KubernetesCluster("prod", {"kubeconfig": str(tmp_path / "none"), "in_cluster": False})
    with pytest.raises(ClusterError, match="kubeconfig"):
        cluster.list()


def test_the_pods_own_account_is_used_inside_a_cluster(
    bench: KubernetesBench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The token and the certificate are files; a pod finds the server by two variables."""
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "9")
    cluster = KubernetesCluster("inside", {"root": tmp_path})
    with pytest.raises(Refused, match="not set up"):  # there is no such file on this machine
        cluster.list()
    monkeypatch.setenv("KUBECONFIG", str(bench.options["kubeconfig"]))
    named = KubernetesCluster("outside", {"root": tmp_path, "in_cluster": False})
    assert list(named.list()) == []
