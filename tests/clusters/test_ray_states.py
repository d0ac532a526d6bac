"""Ray's words as observations: each row of PHASES 3, and what the record beside Ray's own adds."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from agent.clusters.ray_nodes import Node, avoided, capacity, nodes, too_large, used_by_autoscaler
from agent.clusters.ray_states import normalise
from states.observation import Observation, Phase, Waiting

NOW = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)
SUBMITTED_MS = int(NOW.timestamp() * 1000) - 60_000
QUEUED = "Job has not started yet. It may be waiting for resources (CPUs, GPUs, ...) to become available."
BUILDING = "Job has not started yet. It may be waiting for the runtime environment to be set up."
BEGUN = {"started_at": NOW - timedelta(seconds=30), "pid": 7, "host": "n", "id": "j"}
DIED = (
    "Job supervisor actor died: The actor died unexpectedly. There are some potential root causes: the process is"
    " killed by SIGKILL by the OOM killer due to high memory usage"
)


def seen(status: str, **native: Any) -> Observation:
    told = normalise({"start_time": SUBMITTED_MS, "now": NOW, "status": status, **native})
    return Observation(taken_at=NOW, **told)


@pytest.mark.parametrize(
    ("message", "error_type", "phase", "cause"),
    [
        ("runtime_env setup failed: no such thing", "RUNTIME_ENV_SETUP_FAILURE", Phase.failed, ""),
        ("runtime_env setup failed: x\nERROR: No matching distribution found for y", "", Phase.failed,
         "env.missing_module"),
        ("Job supervisor actor failed to start within 900 seconds. This timeout", "", Phase.lost,
         "scheduling.capacity"),
        ("", "JOB_SUPERVISOR_ACTOR_START_TIMEOUT", Phase.lost, "scheduling.capacity"),
        ("Job supervisor actor could not be scheduled: the node is gone", "", Phase.failed,
         "scheduling.unsatisfiable"),
        (DIED, "JOB_SUPERVISOR_ACTOR_DIED", Phase.lost, "node.lost"),
        (DIED, "", Phase.lost, "node.lost"),
        ("Job supervisor actor died: 2 worker(s) were killed due to the node running low on memory.",
         "JOB_SUPERVISOR_ACTOR_DIED", Phase.failed, "memory.host"),
        # One type, two messages: the head lost sight of it, or the request was bad.
        ("Unexpected error occurred: failed to get job supervisor.", "JOB_SUPERVISOR_ACTOR_START_FAILURE",
         Phase.lost, "node.lost"),
        ("Failed to start supervisor actor j: '/x is not a valid path.'", "JOB_SUPERVISOR_ACTOR_START_FAILURE",
         Phase.failed, "mount.missing"),
        ("Unexpected error occurred: a time-out", "JOB_SUPERVISOR_ACTOR_UNKNOWN_FAILURE", Phase.lost, ""),
        ("OSError: [Errno 7] Argument list too long: '/bin/sh'", "JOB_ENTRYPOINT_COMMAND_START_ERROR",
         Phase.failed, "command.bad_argument"),
        ("Job failed.", None, Phase.failed, ""),
        ("", "A_TYPE_OF_NEXT_YEAR", Phase.failed, ""),
    ],
)  # fmt: skip
def test_failed_is_told_apart(message: str, error_type: str | None, phase: Phase, cause: str) -> None:
    end = seen("FAILED", message=message, error_type=error_type, driver_exit_code=None)
    assert (end.phase, end.cause, end.exit_code) == (phase, cause, None)


@pytest.mark.parametrize(
    ("code", "exit_code", "signal", "cause"),
    [
        (1, 1, None, ""),
        (255, 255, None, ""),
        (137, 137, 9, "process.killed"),
        (139, 139, 11, ""),
        (-9, None, 9, "process.killed"),
        (-15, None, 15, ""),
        (124, 124, None, ""),
    ],
)
def test_the_programs_own_code_decides(
    code: int, exit_code: int | None, signal: int | None, cause: str
) -> None:
    """Whatever the message says: it quotes the log, and the log may say anything."""
    message = f"Job entrypoint command failed with exit code {code}, last available logs (...):\n{DIED}\n"
    for told in (code, None):
        end = seen(
            "FAILED", message=message, driver_exit_code=told, error_type="JOB_ENTRYPOINT_COMMAND_ERROR"
        )
        assert (end.phase, end.exit_code, end.signal, end.cause) == (Phase.failed, exit_code, signal, cause)
        assert end.reason == f"Job entrypoint command failed with exit code {code}"


def test_given_up_before_it_began_is_worth_another_try_only_where_it_could_fit() -> None:
    told = {"message": "Job supervisor actor failed to start within 900 seconds.", "request": {"GPU": 2.0}}
    assert seen("FAILED", **told, nodes=[{"GPU": 2.0}]).phase == Phase.lost
    assert seen("FAILED", **told, nodes=[{"GPU": 1.0}], autoscales=True).phase == Phase.lost
    never = seen("FAILED", **told, nodes=[{"GPU": 1.0}])
    assert (never.phase, never.cause) == (Phase.failed, "scheduling.unsatisfiable")


def test_a_limit_of_ours_is_named_where_there_was_one() -> None:
    assert seen("FAILED", driver_exit_code=124, time_limit_s="60").cause == "scheduling.time_limit"


def test_a_second_run_under_one_name_is_told() -> None:
    end = seen("FAILED", driver_exit_code=98, run_expected=True, run=BEGUN)
    assert "earlier run" in end.reason


def test_pending_is_a_wait_or_never_by_the_figures() -> None:
    few = {"request": {"CPU": 4.0, "GPU": 2.0}, "nodes": [{"CPU": 8.0, "GPU": 1.0}, {"CPU": 2.0, "GPU": 4.0}]}
    enough = {**few, "nodes": [*few["nodes"], {"CPU": 4.0, "GPU": 2.0}]}
    never = seen("PENDING", message=QUEUED, **few)
    assert (never.phase, never.waiting) == (Phase.pending, Waiting.never)
    assert never.reason == "asks for 4 CPU cores, 2 GPUs; no node has all of it"
    for waits in (
        seen("PENDING", message=QUEUED, **enough),
        seen("PENDING", message=QUEUED, **few, autoscales=True),
        seen("PENDING", message=QUEUED, request=few["request"], nodes=[]),
        seen("PENDING", message=QUEUED, nodes=few["nodes"]),
    ):
        assert (waits.phase, waits.waiting, waits.held) == (Phase.pending, Waiting.wait, False)
    assert seen("PENDING", message=BUILDING).phase == Phase.starting
    assert seen("PENDING", message=f"{QUEUED} {BUILDING}").phase == Phase.pending


def test_running_is_proved_by_the_record_where_there_should_be_one() -> None:
    assert seen("RUNNING").phase == Phase.running
    assert seen("RUNNING", run_expected=True).phase == Phase.starting
    runs = seen("RUNNING", run_expected=True, run=BEGUN)
    assert (runs.phase, runs.started_at) == (Phase.running, BEGUN["started_at"])
    late = seen("RUNNING", run_expected=True, now=NOW + timedelta(minutes=10))
    assert (late.phase, late.started_at) == (Phase.running, None)
    over = seen("RUNNING", run={**BEGUN, "ended_at": NOW, "exit_code": 0})
    assert (over.phase, over.finishing, over.exit_code) == (Phase.running, True, None)


def test_running_on_a_dead_node_is_lost() -> None:
    lost = seen("RUNNING", node={"name": "n7", "alive": False})
    assert (lost.phase, lost.cause, lost.node) == (Phase.lost, "node.lost", "n7")
    assert seen("RUNNING", node={"name": "n7"}).phase == Phase.running


def test_a_loss_does_not_hide_an_end_that_the_wrapper_recorded() -> None:
    for code, phase in ((0, Phase.succeeded), (3, Phase.failed)):
        run = {**BEGUN, "ended_at": NOW, "exit_code": code}
        end = seen("FAILED", message=DIED, error_type="JOB_SUPERVISOR_ACTOR_DIED", run=run, run_expected=True)
        assert (end.phase, end.exit_code, end.confirmed, end.cause) == (phase, code, True, "")


@pytest.mark.parametrize(
    "native",
    [
        {"status": "FAILED", "message": DIED, "error_type": "JOB_SUPERVISOR_ACTOR_DIED"},
        {"status": "RUNNING", "node": {"name": "n7", "alive": False}},
        {"status": "", "missing": True, "head_younger": True},
        {"status": "", "missing": True},
    ],
)
def test_what_still_beats_is_not_lost(native: dict[str, Any]) -> None:
    """It would run twice."""
    beats = {**BEGUN, "heartbeat_at": NOW - timedelta(seconds=50)}
    lives = seen(**native, run=beats)
    assert (lives.phase, lives.cause, lives.started_at) == (Phase.running, "", BEGUN["started_at"])
    for silent in (
        seen(**native, run=beats, beat_s=10),
        seen(**native, run=BEGUN),
        seen(**native),
        seen(**{**native, "now": NOW + timedelta(seconds=15)}, run=beats),
    ):
        assert silent.phase in (Phase.lost, Phase.gone)
    over = seen(**native, run={**beats, "ended_at": NOW, "exit_code": 3})
    assert (over.phase, over.exit_code, over.confirmed, over.ended_at) == (Phase.failed, 3, True, NOW)


def test_ends() -> None:
    good = seen("SUCCEEDED", driver_exit_code=None, end_time=SUBMITTED_MS + 5000)
    assert (good.phase, good.exit_code, good.confirmed) == (Phase.succeeded, 0, False)
    assert good.ended_at == NOW - timedelta(seconds=55)
    stopped = seen("STOPPED", message="Job was intentionally stopped.", run={**BEGUN, "ended_at": NOW})
    assert (stopped.phase, stopped.exit_code, stopped.confirmed) == (Phase.stopped, None, True)


@pytest.mark.parametrize("status", ["PENDING", "RUNNING", "FAILED", "STOPPED"])
def test_what_was_withdrawn_is_stopped_whatever_ray_calls_it(status: str) -> None:
    end = seen(status, withdrawn=NOW, driver_exit_code=98)
    assert (end.phase, end.exit_code, end.started_at, end.ended_at) == (Phase.stopped, None, None, NOW)
    assert seen(status, withdrawn=NOW, run=BEGUN).reason != end.reason


def test_no_record_is_no_end() -> None:
    gone = Observation(taken_at=NOW, **normalise({"missing": True}))
    lost = Observation(taken_at=NOW, **normalise({"missing": True, "head_younger": True}))
    assert (gone.phase, lost.phase) == (Phase.gone, Phase.lost)


def test_a_word_of_tomorrow_is_unknown() -> None:
    later = seen("SUSPENDED")
    assert (later.phase, later.native) == (Phase.unknown, "SUSPENDED")


# --- nodes -------------------------------------------------------------------------------------------------


def test_capacity_counts_what_is_known_at_once_and_what_the_monitor_noted() -> None:
    row = {"node_id": "a", "node_name": "one", "state": "ALIVE", "is_head_node": True, "start_time_ms": 1000,
           "resources_total": {"CPU": 8.0, "GPU": 4.0, "memory": 4.0 * (1 << 30)}}  # fmt: skip
    dead = {**row, "node_id": "b", "state": "DEAD"}
    bare = {
        "node_id": "c",
        "node_name": "",
        "node_ip": "192.0.2.7",
        "state": "ALIVE",
        "resources_total": None,
    }
    found = nodes({"data": {"result": {"result": [row, dead, bare]}}})
    assert [(node.name, node.alive, node.head) for node in found] == [
        ("one", True, True), ("one", False, True), ("192.0.2.7", True, False)
    ]  # fmt: skip
    usage = {
        "clusterStatus": {"loadMetricsReport": {"usageByNode": {"a": {"CPU": [3.0, 8.0], "GPU": [0.0, 4.0]}}}}
    }
    told = used_by_autoscaler({"data": usage})
    free = capacity(found, told, [("a", {"CPU": 2.0, "GPU": 1.0}), ("a", {"GPU": 2.0})], queued=2)
    assert (free.free_cpu, free.free_gpu, free.block_gpu, free.total_gpu, free.queued) == (5.0, 1, 1, 4, 2)
    assert free.free_memory_mib == 4096
    assert used_by_autoscaler({"data": {"clusterStatus": None}}) == {}


def test_a_request_that_no_node_can_take_says_which_figure() -> None:
    node = Node("a", "a", True, True, {"CPU": 8.0, "memory": 2.0 * (1 << 30)})
    assert too_large({"CPU": 9.0}, [node.total]) == "asks for 9 CPU cores; the largest node has 8 CPU cores"
    memory = too_large({"memory": 4.0 * (1 << 30)}, [node.total])
    assert memory == "asks for 4096 MiB of memory; the largest node has 2048 MiB of memory"
    assert too_large({"licence": 1.0}, [node.total]) == "asks for 1 licence; the largest node has 0 licence"
    assert too_large({"CPU": 8.0}, [node.total]) == ""
    assert too_large({"CPU": 9.0}, []) == ""


def test_nodes_are_left_out_while_another_could_take_it() -> None:
    big, small = {"CPU": 8.0}, {"CPU": 1.0}
    all_ = [
        Node("1", "a", True, True, big),
        Node("2", "b", True, False, small),
        Node("3", "c", False, False, big),
    ]
    assert avoided(["a", "c", "x"], {"CPU": 1.0}, all_) == ["1"]
    assert avoided(["2"], {"CPU": 4.0}, all_) == ["2"]
    assert avoided(["a"], {"CPU": 4.0}, all_) == []
    assert avoided(["a", "b"], {"CPU": 1.0}, all_) == []
