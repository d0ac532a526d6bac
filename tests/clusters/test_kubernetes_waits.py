"""Why a Job or a pod does not run yet: quota, nodes, pulls, mounts, Kueue (PHASES 2)."""

from __future__ import annotations

from typing import Any

import pytest

from states.observation import Observation, Phase, Waiting
from tests.clusters.kubernetes.judging import seen
from tests.clusters.kubernetes.objects import (
    Object,
    event,
    job,
    node,
    pod,
    told,
    unscheduled,
    waits,
    workload,
)

QUEUED = {"kueue.x-k8s.io/queue-name": "lab"}


# --- a Job without pods ------------------------------------------------------------------------------------


def refused(message: str) -> Observation:
    return seen(
        job(), events=[event("FailedCreate", f'Error creating: pods "run-abcde" is forbidden: {message}')]
    )


def test_over_quota_waits_and_its_reason_does_not_flip() -> None:
    first = refused(
        "exceeded quota: q, requested: requests.cpu=4, used: requests.cpu=6, limited: requests.cpu=8"
    )
    then = refused(
        "exceeded quota: q, requested: requests.cpu=4, used: requests.cpu=7, limited: requests.cpu=8"
    )
    assert (first.phase, first.waiting, first.held) == (Phase.pending, Waiting.wait, False)
    assert first.cause == "scheduling.quota"
    assert first.reason == then.reason


def test_more_than_the_whole_quota_is_never() -> None:
    asked = "requested: requests.memory=9Gi, used: requests.memory=0, limited: requests.memory=8Gi"
    assert refused(f"exceeded quota: q, {asked}").waiting == Waiting.never


@pytest.mark.parametrize(
    ("message", "waiting"),
    [
        ("failed quota: q: must specify limits.cpu for: main", Waiting.never),
        ("maximum cpu usage per Container is 4, but limit is 8", Waiting.never),
        ("error looking up service account lab/trainer", Waiting.held),
    ],
)
def test_other_refusals_of_a_pod(message: str, waiting: Waiting) -> None:
    look = refused(message)
    assert (look.phase, look.held, look.waiting) == (Phase.pending, waiting is Waiting.held, waiting)


def test_just_submitted_is_pending() -> None:
    look = seen(job(startTime=None))
    assert (look.phase, look.held, look.reason) == (Phase.pending, False, "")


# --- no node yet -------------------------------------------------------------------------------------------

FULL = "0/3 nodes are available: 2 Insufficient nvidia.com/gpu, 1 node(s) had untolerated taint(s). no new claims to"


def test_insufficient_is_a_wait_when_some_node_is_large_enough() -> None:
    look = seen(job(), unscheduled(FULL, gpu=8), nodes=[node(gpu="8"), node("n2", gpu="4")])
    assert (look.phase, look.waiting, look.held) == (Phase.pending, Waiting.wait, False)
    assert "Insufficient nvidia.com/gpu" in look.reason


def test_insufficient_is_never_when_no_node_is() -> None:
    look = seen(job(), unscheduled(FULL, gpu=9), nodes=[node(gpu="8"), node("n2", gpu="4")])
    assert (look.waiting, "nvidia.com/gpu" in look.reason) == (Waiting.never, True)


def test_insufficient_is_a_wait_when_nodes_may_not_be_read() -> None:
    assert seen(job(), unscheduled(FULL, gpu=9)).waiting == Waiting.wait


def test_counts_that_change_are_no_news() -> None:
    more = FULL.replace("0/3", "0/4").replace("2 Insufficient", "3 Insufficient")
    assert seen(job(), unscheduled(FULL)).reason == seen(job(), unscheduled(more)).reason


def test_what_matches_no_node_is_never_unless_the_cluster_grows() -> None:
    said = (
        "0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector. preemption: 0/2 nodes"
    )
    assert seen(job(), unscheduled(said)).waiting == Waiting.never
    grows = [event("TriggeredScaleUp", "pod triggered scale-up", "run-x-abcde", "Pod")]
    assert seen(job(), unscheduled(said), events=grows).waiting == Waiting.wait


@pytest.mark.parametrize(
    ("said", "waiting"),
    [
        ("0/1 nodes are available: 1 node(s) were unschedulable.", Waiting.wait),
        (
            "0/1 nodes are available: 1 node(s) had untolerated taint {node.kubernetes.io/not-ready: }.",
            Waiting.wait,
        ),
        ("0/1 nodes are available: 1 node(s) had untolerated taint {team: other}.", Waiting.never),
        ("0/1 nodes are available: 1 node(s) had untolerated taint(s).", Waiting.unclear),
        ("0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims.", Waiting.unclear),
        ('persistentvolumeclaim "data" not found', Waiting.held),
        ("", Waiting.wait),
    ],
)
def test_why_no_node_does(said: str, waiting: Waiting) -> None:
    assert seen(job(), unscheduled(said)).waiting == waiting


def test_a_gated_pod_waits() -> None:
    assert seen(job(), unscheduled("gated", reason="SchedulingGated")).waiting == Waiting.wait


# --- on a node, not yet running ----------------------------------------------------------------------------


def test_creating_and_pulling_are_a_start() -> None:
    look = seen(job(), pod("Pending"))
    assert (look.phase, look.held, look.cause) == (Phase.starting, False, "")


@pytest.mark.parametrize(
    ("message", "cause"),
    [
        ('failed to pull image "reg/own:7": rpc error: not found', "image.not_found"),
        ('failed to pull image "reg/own:7": pull access denied, repository does not exist', "image.auth"),
        ('failed to pull image "reg/own:7": dial tcp: i/o timeout', "image.unreachable"),
    ],
)
def test_a_pull_that_fails_names_the_cause_and_is_no_end(message: str, cause: str) -> None:
    first = seen(job(), pod("Pending", state=waits("ErrImagePull", message)))
    again = f'Back-off pulling image "reg/own:7": ErrImagePull: {message}'
    then = seen(job(), pod("Pending", state=waits("ImagePullBackOff", again)))
    assert (first.phase, first.cause, first.held) == (Phase.starting, cause, False)
    assert first.reason == then.reason


def test_a_terse_back_off_takes_its_reason_from_the_events() -> None:
    shown = pod("Pending", state=waits("ImagePullBackOff", 'Back-off pulling image "reg/own:7"'))
    said = event("Failed", 'Failed to pull image "reg/own:7": manifest unknown', "run-x-abcde", "Pod")
    assert seen(job(), shown, events=[said]).cause == "image.not_found"


@pytest.mark.parametrize("reason", ["InvalidImageName", "ErrImageNeverPull", "CreateContainerConfigError"])
def test_what_needs_a_person_is_held(reason: str) -> None:
    look = seen(job(), pod("Pending", state=waits(reason, 'secret "hf" not found')))
    assert (look.phase, look.held, look.waiting) == (Phase.starting, True, Waiting.held)


def test_a_mount_that_fails_is_told_and_a_detach_is_no_error() -> None:
    fails = event("FailedMount", "MountVolume.SetUp failed: no such share", "run-x-abcde", "Pod")
    assert seen(job(), pod("Pending"), events=[fails]).cause == "mount.missing"
    moves = event(
        "FailedAttachVolume", "Multi-Attach error: volume is used by another node", "run-x-abcde", "Pod"
    )
    assert seen(job(), pod("Pending"), events=[moves]).cause == ""


# --- Kueue -------------------------------------------------------------------------------------------------


def queued(*conditions: Object, **more: Any) -> Observation:
    return seen(job(told("Suspended"), suspend=True, labels=QUEUED), workload=workload(*conditions, **more))


def reserved(reason: str, message: str) -> Object:
    return told("QuotaReserved", reason, message, "False")


@pytest.mark.parametrize(
    ("conditions", "phase", "waiting", "held"),
    [
        ((), Phase.pending, Waiting.wait, False),
        ((reserved("Pending", "insufficient unused quota for cpu, 4 more"),), Phase.pending, Waiting.wait, False),
        ((reserved("WaitingForQuota", "couldn't assign flavors"),), Phase.pending, Waiting.wait, False),
        ((reserved("Pending", "request > maximum capacity (9 > 8)"),), Phase.pending, Waiting.never, False),
        ((reserved("Pending", "insufficient quota for cpu in flavor f"),), Phase.pending, Waiting.never, False),
        ((reserved("NoMatchingFlavor", "no flavor"),), Phase.pending, Waiting.never, False),
        ((reserved("Inadmissible", "LocalQueue lab doesn't exist"),), Phase.pending, Waiting.held, True),
        ((reserved("Misconfigured", "bad"),), Phase.pending, Waiting.held, True),
        ((told("QuotaReserved"),), Phase.pending, Waiting.wait, False),
        ((told("QuotaReserved"), told("Admitted")), Phase.starting, Waiting.wait, False),
        ((told("Evicted", "Preempted", "made room"), reserved("Pending", "")), Phase.pending, Waiting.wait, False),
    ],
)  # fmt: skip
def test_what_kueue_says(conditions: tuple[Object, ...], phase: Phase, waiting: Waiting, held: bool) -> None:
    look = queued(*conditions)
    assert (look.phase, look.waiting, look.held) == (phase, waiting, held)


def test_a_deactivated_workload_is_held() -> None:
    assert queued(active=False).held


def test_a_queued_job_of_which_kueue_says_nothing_waits() -> None:
    look = seen(job(told("Suspended"), suspend=True, labels=QUEUED))
    assert (look.phase, look.held, look.waiting) == (Phase.pending, False, Waiting.wait)


@pytest.mark.parametrize(
    ("conditions", "status", "attempt"),
    [
        ((), {}, 0),
        ((told("Evicted", "Preempted"),), {}, 1),
        ((told("Evicted", "QuotaReserved", "Previously: made room", "False"),), {}, 1),
        ((told("Evicted", "PodsReadyTimeout"),), {"requeueState": {"count": 3}}, 3),
        (
            (told("Evicted", "Preempted"),),
            {"schedulingStats": {"evictions": [{"count": 2}, {"count": 1}]}},
            3,
        ),
    ],
)
def test_what_kueue_took_back_is_a_new_attempt_whether_it_waits_or_runs_again(
    conditions: tuple[Object, ...], status: Any, attempt: int
) -> None:
    assert queued(*conditions, **status).attempt == attempt
    again = seen(job(labels=QUEUED), pod(), workload=workload(*conditions, **status))
    assert (again.phase, again.attempt) == (Phase.running, attempt)


def test_evicted_is_pending_by_itself_even_while_pods_go() -> None:
    evicted = workload(told("Evicted", "Preempted", "made room"))
    suspended = job(told("Suspended"), suspend=True, labels=QUEUED)
    look = seen(suspended, pod(going=True), workload=evicted)
    assert (look.phase, "going down" in look.reason) == (Phase.pending, True)
