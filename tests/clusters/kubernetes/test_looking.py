"""Looks at many jobs, at other people's, with other rights; and the set-up itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from agent.clusters.base import ClusterError, NotThere, Ref, Refused, Unreachable
from agent.clusters.kubernetes import KubernetesCluster
from states.observation import Phase
from tests.clusters.bench import Eventually, ends, look, sleeps, submission, submit
from tests.clusters.kubernetes.bench import KubernetesBench
from tests.clusters.kubernetes.failure import Failure
from tests.clusters.kubernetes.server import Call, Emulator
from tests.clusters.kubernetes.steps import Until, calls, lost, once, overlay
from tests.clusters.kubernetes.store import stamp

pytest.importorskip("kubernetes", reason="the extra `kubernetes` is not installed")


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
    kubeconfig = emulator.write_kubeconfig(tmp_path / "kubeconfig")
    yield emulator, KubernetesCluster("kubernetes", {"kubeconfig": kubeconfig, "root": tmp_path})
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


def test_the_room_of_a_named_group_is_that_of_its_namespace(bench: KubernetesBench) -> None:
    quota = {"spec": {"hard": {}}, "status": {"hard": {"requests.nvidia.com/gpu": "1"}, "used": {}}}
    bench.emulator.store.create("resourcequotas", {"metadata": {"name": "q"}, **quota}, "vision")
    client = bench.client(groups={"eyes": {"namespace": "vision"}})
    usual, eyes = client.capacity(), client.capacity("eyes")
    assert (usual.free_gpu, eyes.group, eyes.free_gpu, eyes.total_gpu, eyes.block_gpu) == (2, "eyes", 1, 1, 1)
    with pytest.raises(Refused, match="not configured"):
        client.capacity("other")


def test_the_doctor_looks_where_each_group_goes(bench: KubernetesBench) -> None:
    bench.emulator.plane.kueue = True
    bench.emulator.store.create("localqueues", {"metadata": {"name": "team"}}, "lab")
    elsewhere = {"namespace": "vision", "queue": "team"}
    client = bench.client(queue="team", groups={"usual": {}, "eyes": elsewhere})
    rows = {row.name: row for row in client.doctor()}
    assert (rows["queue"].level, rows["group eyes: rights"].level) == ("fine", "fine")
    assert (rows["group eyes: queue"].level, rows["group eyes: queue"].said) == (
        "wrong",
        "vision has no Kueue queue team",
    )
    assert not [name for name in rows if name.startswith("group usual")]


def test_no_storage_is_no_fault_where_requests_say_it_themselves(bench: KubernetesBench) -> None:
    (row,) = [row for row in bench.client(storage={}).doctor() if row.name == "storage"]
    assert (row.level, "storage" in row.mend) == ("warn", True)


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
