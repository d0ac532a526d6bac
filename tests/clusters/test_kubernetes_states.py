"""What Kubernetes' words mean: conditions, suspension, running pods, retries (PHASES 2)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.clusters.kubernetes_objects import quantity
from agent.clusters.kubernetes_states import normalise
from states.observation import Observation, Phase, Waiting
from tests.clusters.kubernetes.judging import BACKOFF, NOW, PREEMPTED, seen
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
    waits,
)

STOPPED = {"watchkeeper/stopped": LATER, "watchkeeper/started": AT}


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
        ("16393244Ki", 16393244 * 2.0**10),
        ("4K", None),
        ("1Ei", 2.0**60),
        ("many", None),
        (None, None),
        (3, 3.0),
    ],
)
def test_quantities(text: Any, value: float | None) -> None:
    assert quantity(text) == value
