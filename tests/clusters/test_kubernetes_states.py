"""What Kubernetes' words mean: each story of PHASES 2 that leads to another decision, on plain objects."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.clusters.kubernetes_objects import quantity
from agent.clusters.kubernetes_states import normalise
from states.observation import Observation, Phase, Waiting
from tests.clusters.kubernetes.objects import (
    AT,
    DISRUPTED,
    IGNORED,
    LATER,
    Object,
    ended,
    event,
    job,
    node,
    pod,
    told,
    unscheduled,
    waits,
    workload,
)

NOW = datetime(2031, 2, 3, 6, tzinfo=UTC)
QUEUED = {"kueue.x-k8s.io/queue-name": "lab"}
STOPPED = {"watchkeeper/stopped": LATER, "watchkeeper/started": AT}
BACKOFF = told("Failed", "BackoffLimitExceeded", "limit reached")
PREEMPTED = told("DisruptionTarget", "PreemptionByScheduler", "making room")


def seen(job_: Object | None, *pods: Object, **more: Any) -> Observation:
    fields = normalise({"job": job_, "pods": list(pods), **more})
    return Observation(taken_at=NOW, **fields)


# --- conditions of the Job ---------------------------------------------------------------------------------


def test_no_record_is_gone_and_no_end() -> None:
    assert seen(None).phase == Phase.gone


def test_complete_succeeded() -> None:
    end = seen(job(told("SuccessCriteriaMet"), told("Complete")), pod("Succeeded"))
    assert (end.phase, end.exit_code, end.finishing) == (Phase.succeeded, 0, False)
    assert end.started_at is not None
    assert end.ended_at is not None


def test_success_whose_pods_still_go_is_finishing() -> None:
    end = seen(job(told("SuccessCriteriaMet")), pod("Running"))
    assert (end.phase, end.finishing, end.ended_at) == (Phase.succeeded, True, None)


def test_a_failure_whose_pods_still_go_is_finishing() -> None:
    end = seen(job(told("FailureTarget", "BackoffLimitExceeded")), pod("Failed", state=ended(3)))
    assert (end.phase, end.finishing, end.exit_code) == (Phase.failed, True, 3)


def test_a_failure_tells_the_code_of_the_pod() -> None:
    end = seen(job(BACKOFF, failed=1), pod("Failed", state=ended(7)))
    assert (end.phase, end.finishing, end.exit_code, end.signal, end.attempt) == (
        Phase.failed,
        False,
        7,
        None,
        0,
    )
    assert "BackoffLimitExceeded" in end.reason


def test_the_replica_that_failed_first_is_the_cause_and_not_those_it_took_down() -> None:
    first = pod("Failed", state=ended(9, at="2031-02-03T04:30:00Z"), index=1, node="n2")
    cascade = pod("Failed", state=ended(143, at="2031-02-03T04:29:59Z"), index=0)
    end = seen(job(BACKOFF, replicas=2, failed=2), cascade, first)
    assert (end.exit_code, end.node, end.replicas) == (9, "n2", 2)


def test_a_failure_with_a_success_says_both() -> None:
    end = seen(job(BACKOFF, failed=1, succeeded=1), pod("Failed", state=ended(1)))
    assert end.phase == Phase.failed
    assert "1 of its pods succeeded" in end.reason


def test_a_deadline_before_anything_ran_says_so() -> None:
    end = seen(job(told("Failed", "DeadlineExceeded", "too long")))
    assert (end.phase, end.cause) == (Phase.failed, "scheduling.time_limit")
    assert "waiting and pulling count too" in end.reason


def test_a_deadline_of_a_job_that_ran_is_a_time_limit() -> None:
    end = seen(job(told("Failed", "DeadlineExceeded", "too long")), pod("Failed", state=ended(143)))
    assert end.cause == "scheduling.time_limit"
    assert "pulling" not in end.reason


def test_a_failure_policy_names_the_code_when_the_pod_is_gone() -> None:
    said = "Container main for pod lab/run-x failed with exit code 77 matching FailJob rule at index 1"
    assert seen(job(told("Failed", "PodFailurePolicy", said))).exit_code == 77


def test_a_failure_policy_that_says_disruption_is_a_preemption() -> None:
    said = "Pod lab/run-x has condition DisruptionTarget matching FailJob rule at index 0"
    end = seen(job(told("Failed", "PodFailurePolicy", said), rules=DISRUPTED))
    assert (end.phase, end.cause) == (Phase.preempted, "scheduling.preempted")


def test_the_pods_own_word_tells_a_lost_node_from_a_preemption() -> None:
    said = "Pod lab/run-x has condition DisruptionTarget matching FailJob rule at index 0"
    gone = pod("Failed", told("DisruptionTarget", "DeletionByPodGC", "node is no more"), state=ended(137))
    assert seen(job(told("Failed", "PodFailurePolicy", said), rules=DISRUPTED), gone).phase == Phase.lost


def test_a_failure_whose_pod_is_gone_asks_the_events() -> None:
    end = job(BACKOFF)
    assert seen(end).phase == Phase.failed
    told_ = [event("Preempted", "Preempted by pod u-9 on node n1", "run-abcde", "Pod")]
    assert seen(end, events=told_).phase == Phase.preempted
    evicted = [event("TaintManagerEviction", "Marking for deletion Pod lab/run-abcde", "run-abcde", "Pod")]
    assert seen(end, events=evicted).phase == Phase.lost
    taken_back = [
        event("TaintManagerEviction", "Cancelling deletion of Pod lab/run-abcde", "run-abcde", "Pod")
    ]
    assert seen(end, events=taken_back).phase == Phase.failed


# --- suspension --------------------------------------------------------------------------------------------


def test_suspended_by_somebody_is_held() -> None:
    look = seen(job(told("Suspended"), suspend=True))
    assert (look.phase, look.held, look.waiting) == (Phase.pending, True, Waiting.held)


def test_a_stop_is_over_when_its_pods_are() -> None:
    asked = job(told("Suspended"), suspend=True, annotations=STOPPED, terminating=1)
    assert seen(asked, pod("Running", going=True)).phase == Phase.running
    end = seen(asked)
    assert (end.phase, end.exit_code) == (Phase.stopped, None)
    assert end.started_at is not None


def test_a_stop_that_the_controller_has_not_taken_up_is_not_over() -> None:
    assert seen(job(suspend=True, annotations=STOPPED)).phase == Phase.pending


def test_a_stop_of_what_is_on_a_dead_node_is_lost() -> None:
    asked = job(told("Suspended"), suspend=True, annotations=STOPPED)
    assert seen(asked, pod(going=True), nodes=[node(ready="Unknown")]).phase == Phase.lost


def test_a_job_that_ended_by_itself_before_the_stop_keeps_its_end() -> None:
    assert seen(job(told("Complete"), suspend=True, annotations=STOPPED)).phase == Phase.succeeded
    failed = job(BACKOFF, suspend=True, annotations=STOPPED)
    assert seen(failed, pod("Failed", state=ended(5))).phase == Phase.failed
    assert seen(failed, pod("Failed", state=ended(143))).phase == Phase.stopped


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


# --- running -----------------------------------------------------------------------------------------------


def test_active_alone_is_not_running() -> None:
    assert seen(job(active=1, ready=0), pod("Pending")).phase == Phase.starting


def test_running() -> None:
    look = seen(job(active=1, ready=1), pod())
    assert (look.phase, look.node, look.attempt, look.replicas_ready) == (Phase.running, "n1", 0, 1)
    assert (look.exit_code, look.ended_at) == (None, None)


def test_a_phase_is_believed_where_no_container_is_told() -> None:
    look = seen(job(), pod("Running", state={}))
    assert (look.phase, look.replicas_ready) == (Phase.running, 1)


def test_a_word_that_nobody_knows_is_told_and_counts_as_alive() -> None:
    look = seen(job(), pod("Hibernating", state={}))
    assert look.phase == Phase.unknown
    assert "Hibernating" in look.reason
    assert "Hibernating" in look.native


def test_a_crash_loop_is_running_with_its_restarts() -> None:
    look = seen(job(), pod("Running", state=waits("CrashLoopBackOff", "back-off 40s"), restarts=3))
    assert (look.phase, look.attempt) == (Phase.running, 3)
    assert look.reason == seen(job(), pod("Running", state=waits("CrashLoopBackOff", "back-off 5m"))).reason


def test_a_node_that_is_silent_for_a_while_decides_nothing() -> None:
    look = seen(job(), pod(), nodes=[node(ready="Unknown")])
    assert (look.phase, "not ready" in look.reason) == (Phase.running, True)


@pytest.mark.parametrize("nodes", [[node(ready="Unknown")], [node("another")], [node(ready="False")]])
def test_to_be_deleted_on_a_node_that_is_away_is_lost_although_it_says_running(nodes: list[Object]) -> None:
    look = seen(job(rules=IGNORED), pod(going=True), nodes=nodes)
    assert (look.phase, look.node) == (Phase.lost, "n1")


def test_to_be_deleted_on_a_live_node_still_runs() -> None:
    assert seen(job(), pod(going=True), nodes=[node()]).phase == Phase.running


def test_a_gang_starts_until_all_of_it_runs() -> None:
    gang = job(replicas=2)
    look = seen(gang, pod(index=0), pod("Pending", index=1))
    assert (look.phase, look.replicas, look.replicas_ready) == (Phase.starting, 2, 1)
    assert seen(gang, pod(index=0), pod(index=1)).replicas_ready == 2
    again = pod("Pending", index=1, made=LATER, name="run-1-fghij")
    late = seen(job(replicas=2, limit=3), pod(index=0), pod("Failed", index=1), again)
    assert (late.phase, late.attempt) == (Phase.running, 1)


def test_pods_that_are_over_before_the_job_says_so_are_finishing() -> None:
    for phase in ("Succeeded", "Failed"):
        look = seen(job(), pod(phase))
        assert (look.phase, look.finishing) == (Phase.running, True)


# --- retries by Kubernetes itself --------------------------------------------------------------------------


def test_a_retry_is_pending_under_the_same_id() -> None:
    look = seen(job(limit=2, failed=1), pod("Failed", state=ended(137, "OOMKilled")))
    assert (look.phase, look.attempt) == (Phase.pending, 1)
    assert "OOMKilled" in look.reason
    fresh = seen(job(limit=2, failed=1), pod("Failed"), pod(made=LATER, name="run-fghij"))
    assert (fresh.phase, fresh.attempt) == (Phase.running, 1)


def test_the_last_retry_is_no_retry() -> None:
    made = [f"2031-02-03T04:0{minute}:00Z" for minute in range(3)]
    pods = [pod("Failed", name=f"run-{letter * 5}", made=at) for at, letter in zip(made, "abc", strict=True)]
    assert seen(job(limit=2, failed=3), *pods).finishing


def test_a_disruption_that_the_policy_ignores_is_a_restart_and_no_preemption() -> None:
    over = pod("Failed", PREEMPTED, state=ended(137))
    look = seen(job(rules=IGNORED), over)
    assert (look.phase, look.attempt) == (Phase.pending, 1)
    assert seen(job(rules=DISRUPTED), over).phase == Phase.preempted


def test_a_pod_that_is_being_preempted_still_runs() -> None:
    look = seen(job(rules=DISRUPTED), pod("Running", PREEMPTED, going=True))
    assert (look.phase, look.finishing) == (Phase.running, True)
    forced = pod("Running", PREEMPTED, going=True, grace=0)
    assert seen(job(rules=DISRUPTED), forced).phase == Phase.preempted


# --- how a pod ended ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("state", "more", "phase", "cause", "code", "number"),
    [
        (ended(137, "OOMKilled"), {}, Phase.failed, "memory.host", 137, 9),
        (ended(137), {"reason": "Evicted", "message": "low on memory"}, Phase.failed, "memory.host", 137, 9),
        (ended(137), {"reason": "Evicted", "message": "ephemeral storage"}, Phase.failed, "storage.full", 137, 9),
        (ended(137), {}, Phase.failed, "process.killed", 137, 9),
        (ended(143), {}, Phase.failed, "", 143, 15),
        (ended(255), {}, Phase.failed, "", 255, None),
        (ended(143), {"reason": "Terminated"}, Phase.preempted, "", None, None),
        (ended(143), {"reason": "NodeShutdown"}, Phase.preempted, "", None, None),
        ({}, {"reason": "UnexpectedAdmissionError"}, Phase.lost, "", None, None),
        ({}, {"reason": "OutOfcpu"}, Phase.lost, "", None, None),
        ({}, {"reason": "NodeAffinity"}, Phase.lost, "", None, None),
        ({}, {"reason": "NodeLost"}, Phase.lost, "", None, None),
        (ended(137), {"reason": "DeadlineExceeded"}, Phase.failed, "scheduling.time_limit", None, None),
        (ended(128, "StartError", "exec: not found"), {}, Phase.failed, "command.not_found", 127, None),
        (ended(128, "StartError", "exec: permission denied"), {}, Phase.failed, "command.not_found", 126, None),
        (ended(127, "ContainerCannotRun", "no such file"), {}, Phase.failed, "command.not_found", 127, None),
    ],
)  # fmt: skip
def test_how_a_pod_ended(
    state: Object, more: Any, phase: Phase, cause: str, code: int | None, number: int | None
) -> None:
    end = seen(job(BACKOFF), pod("Failed", state=state, **more))
    assert (end.phase, end.cause, end.exit_code, end.signal) == (phase, cause, code, number)


@pytest.mark.parametrize(
    ("why", "phase"),
    [
        ("PreemptionByScheduler", Phase.preempted),
        ("PreemptionByKubeScheduler", Phase.preempted),
        ("DeletionByTaintManager", Phase.preempted),
        ("EvictionByEvictionAPI", Phase.preempted),
        ("TerminationByKubelet", Phase.preempted),
        ("DeletionByPodGC", Phase.lost),
        ("DeletionByGCPControllerManager", Phase.lost),
    ],
)
def test_whose_kill_it_was(why: str, phase: Phase) -> None:
    assert seen(job(BACKOFF), pod("Failed", told("DisruptionTarget", why), state=ended(137))).phase == phase


def test_an_unknown_pod_phase_is_lost() -> None:
    assert seen(job(), pod("Unknown", state={})).phase == Phase.lost


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


def test_evicted_is_pending_by_itself_even_while_pods_go() -> None:
    evicted = workload(told("Evicted", "Preempted", "made room"))
    suspended = job(told("Suspended"), suspend=True, labels=QUEUED)
    look = seen(suspended, pod(going=True), workload=evicted)
    assert (look.phase, "going down" in look.reason) == (Phase.pending, True)


# --- whatever comes ----------------------------------------------------------------------------------------

JUNK = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 300) | st.text(max_size=8),
    lambda inside: (
        st.lists(inside, max_size=3)
        | st.dictionaries(
            st.sampled_from("metadata spec status conditions type reason message state phase name".split()),
            inside,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(JUNK, JUNK, JUNK, JUNK, JUNK)
def test_odd_objects_are_judged_and_never_an_error(a: Any, b: Any, c: Any, d: Any, e: Any) -> None:
    one = {"status": a, "spec": b, "metadata": c}
    fields = normalise({"job": one, "pods": [d, {"status": e}], "events": d, "workload": e})
    Observation(taken_at=NOW, **fields)


@given(JUNK, JUNK, JUNK)
def test_odd_pods_are_judged_too(status: Any, spec: Any, nodes: Any) -> None:
    one = {"metadata": {"name": "run-abcde"}, "status": status, "spec": spec}
    Observation(taken_at=NOW, **normalise({"job": job(), "pods": [one], "nodes": nodes}))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1500m", 1.5),
        ("2", 2.0),
        ("512Gi", 2.0**39),
        ("1e3", 1e3),
        ("4k", 4e3),
        ("many", None),
        (None, None),
        (3, 3.0),
    ],
)
def test_quantities(text: Any, value: float | None) -> None:
    assert quantity(text) == value
