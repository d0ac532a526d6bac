"""A submit happens once, and what the API server refuses or does not answer is not the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.clusters.base import ClusterError, Refused, Unreachable
from agent.clusters.kubernetes import KubernetesCluster
from states.observation import Phase, Waiting
from tests.clusters.bench import Eventually, ends, look, sleeps, submission, submit
from tests.clusters.kubernetes.bench import KubernetesBench
from tests.clusters.kubernetes.failure import Failure
from tests.clusters.kubernetes.server import Call
from tests.clusters.kubernetes.steps import Until, calls, lost, once

pytest.importorskip("kubernetes", reason="the extra `kubernetes` is not installed")


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
