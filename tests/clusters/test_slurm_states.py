"""Slurm's states, flags and reasons without a Slurm: every row of PHASES 1."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from agent.clusters.slurm import normalise
from agent.clusters.slurm_states import waiting_for
from states.observation import Observation, Phase, Waiting

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)


def seen(state: str, **words: str) -> Observation:
    row = {"JobState": state, "NodeList": "n1", "StartTime": "1796000000", "EndTime": "1796000060"} | words
    return Observation(taken_at=NOW, **normalise(row))


# --- states ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("state", "words", "expected"),
    [
        ("PENDING", {}, {"phase": Phase.pending, "started_at": None, "node": ""}),
        ("PD", {}, {"phase": Phase.pending}),
        ("RUNNING", {}, {"phase": Phase.running, "ended_at": None, "node": "n1", "exit_code": None}),
        ("RUNNING", {"Reason": "Prolog"}, {"phase": Phase.starting}),
        ("SUSPENDED", {}, {"phase": Phase.running, "suspended": True}),
        ("COMPLETED", {"ExitCode": "0:0"}, {"phase": Phase.succeeded, "exit_code": 0}),
        ("FAILED", {"ExitCode": "3:0"}, {"phase": Phase.failed, "exit_code": 3, "signal": None, "cause": ""}),
        ("FAILED", {"ExitCode": "0:9"}, {"exit_code": None, "signal": 9, "cause": "process.killed"}),
        ("FAILED", {"ExitCode": "137:0"}, {"exit_code": 137, "signal": 9, "cause": "process.killed"}),
        ("FAILED", {"ExitCode": "255:0"}, {"exit_code": 255, "signal": None}),
        ("FAILED", {"ExitCode": "0:53"}, {"signal": 53, "cause": "mount.permission"}),
        ("TIMEOUT", {"ExitCode": "0:0"}, {"phase": Phase.failed, "cause": "scheduling.time_limit"}),
        ("TIMEOUT", {"ExitCode": "0:0"}, {"exit_code": None}),
        ("OUT_OF_MEMORY", {"ExitCode": "0:0"}, {"phase": Phase.failed, "cause": "memory.host", "exit_code": None}),
        ("OUT_OF_MEMORY", {"ExitCode": "0:125"}, {"cause": "memory.host", "signal": None}),
        ("CANCELLED by 1001", {}, {"phase": Phase.stopped, "reason": "cancelled by uid 1001"}),
        ("CANCELLED+", {"ExitCode": "0:15"}, {"phase": Phase.stopped, "exit_code": None, "signal": None}),
        ("DEADLINE", {}, {"phase": Phase.failed, "cause": "scheduling.time_limit"}),
        ("BOOT_FAIL", {}, {"phase": Phase.lost, "cause": "node.fault"}),
        ("NODE_FAIL", {}, {"phase": Phase.lost, "cause": "node.lost"}),
        ("PREEMPTED", {}, {"phase": Phase.preempted, "cause": "scheduling.preempted"}),
        ("CONFIGURING", {}, {"phase": Phase.starting}),
        ("RUNNING,POWER_UP_NODE", {}, {"phase": Phase.starting}),
        ("COMPLETING", {"ExitCode": "0:0"}, {"phase": Phase.running, "finishing": True, "exit_code": None}),
        ("COMPLETED,COMPLETING", {"ExitCode": "0:0"}, {"phase": Phase.running, "finishing": True}),
        ("PREEMPTED,COMPLETING", {}, {"phase": Phase.running, "finishing": True, "cause": ""}),
        ("STAGE_OUT", {}, {"phase": Phase.running, "finishing": True}),
        ("SIGNALING", {}, {"phase": Phase.running, "finishing": False}),
        ("RUNNING,RESIZING", {}, {"phase": Phase.running}),
        ("COMPLETED,UPDATE_DB", {"ExitCode": "0:0"}, {"phase": Phase.succeeded}),
        ("STOPPED", {}, {"phase": Phase.running, "suspended": True}),
        ("REQUEUED", {}, {"phase": Phase.pending, "attempt": 1, "held": False}),
        ("REQUEUED", {"Restarts": "3"}, {"phase": Phase.pending, "attempt": 3}),
        ("REQUEUE_FED", {}, {"phase": Phase.pending, "attempt": 1}),
        ("PENDING", {"Restarts": "2", "Reason": "BeginTime"}, {"attempt": 2, "waiting": Waiting.wait}),
        ("REQUEUE_HOLD", {}, {"phase": Phase.pending, "held": True, "waiting": Waiting.held}),
        ("SPECIAL_EXIT", {}, {"phase": Phase.pending, "held": True}),
        ("RESV_DEL_HOLD", {}, {"phase": Phase.pending, "held": True}),
        ("PENDING,LAUNCH_FAILED", {}, {"phase": Phase.pending, "held": True}),
        ("LAUNCH_FAILED", {}, {"phase": Phase.pending, "held": True}),
        ("FAILED,LAUNCH_FAILED", {}, {"phase": Phase.lost, "cause": "node.fault"}),
        ("RECONFIG_FAIL", {}, {"phase": Phase.lost}),
        ("REVOKED", {}, {"phase": Phase.unknown}),
        ("A_NEW_WORD", {}, {"phase": Phase.unknown, "native": "A_NEW_WORD"}),
        ("", {}, {"phase": Phase.unknown}),
    ],
)  # fmt: skip
def test_what_a_state_means(state: str, words: dict[str, str], expected: dict[str, Any]) -> None:
    observation = seen(state, **words)
    assert {name: getattr(observation, name) for name in expected} == expected


def test_several_nodes_are_told() -> None:
    assert (seen("RUNNING", NumNodes="4").replicas, seen("RUNNING", NumNodes="4").replicas_ready) == (4, 4)
    assert seen("PENDING", NumNodes="4").replicas_ready == 0
    assert seen("RUNNING", NumNodes="1").replicas is None


@pytest.mark.parametrize(
    ("waiting", "reasons"),
    [
        (
            Waiting.wait,
            "None Priority Resources Dependency BeginTime Licenses JobArrayTaskLimit Prolog Cleaning Reservation"
            " SchedDefer FedJobLock BurstBufferResources BurstBufferStageIn QOSMaxJobsPerUserLimit"
            " AssocMaxJobsLimit MaxJobsPerAccount QOSJobLimit AssociationJobLimit QOSGrpGRES AssocGrpCpuLimit"
            " AssocGrpCPURunMinutesLimit QOSGrpMemory QOSMaxGRESPerUser QOSMaxCpuPerUserLimit"
            " AssocGrpNodeLimit AssocGrpWallLimit",
        ),
        (
            Waiting.budget,
            "AssocGrpCPUMinutesLimit QOSGrpCPUMinutesLimit AssocGrpGRESMinutes QOSUsageThreshold",
        ),
        (
            Waiting.never,
            "AssocMaxCpuPerJobLimit AssocMaxNodePerJobLimit QOSMaxCpuPerJobLimit QOSMaxGRESPerNode"
            " AssocMaxCpuMinutesPerJobLimit AssocMaxWallDurationPerJobLimit QOSMaxWallDurationPerJobLimit"
            " QOSMinGRES QOSMinCpuNotSatisfied PartitionTimeLimit BadConstraints MaxMemPerLimit InvalidAccount"
            " InvalidQOS AccountNotAllowed QOSNotAllowed DependencyNeverSatisfied ReservationDeleted DeadLine"
            " PartitionConfig",
        ),
        (
            Waiting.held,
            "JobHeldUser JobHeldAdmin JobHoldMaxRequeue JobLaunchFailure launch_failed_requeued_held",
        ),
        (
            Waiting.unclear,
            "PartitionNodeLimit Constraints NodeDown PartitionDown PartitionInactive BurstBufferOperation"
            " SystemFailure ReasonOfTheFuture",
        ),
    ],
)
def test_what_a_code_means(waiting: Waiting, reasons: str) -> None:
    assert {reason: waiting_for(reason) for reason in reasons.split()} == dict.fromkeys(
        reasons.split(), waiting
    )


@pytest.mark.parametrize(
    ("sentence", "waiting"),
    [
        ("launch failed requeued held", Waiting.held),
        ("ReqNodeNotAvail, Reserved for maintenance", Waiting.wait),
        ("ReqNodeNotAvail,_Reserved_for_maintenance", Waiting.wait),
        ("ReqNodeNotAvail, UnavailableNodes:n[4-6]", Waiting.unclear),
        (
            "Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority partitions",
            Waiting.wait,
        ),
        (
            "Nodes_required_for_job_are_DOWN,_DRAINED_or_reserved_for_jobs_in_higher_priority_partitions",
            Waiting.wait,
        ),
        ("the license server sleeps", Waiting.unclear),
    ],
)
def test_what_a_sentence_means(sentence: str, waiting: Waiting) -> None:
    assert waiting_for(sentence) is waiting


def test_a_personal_limit_with_nothing_running_is_never_met() -> None:
    assert waiting_for("QOSMaxGRESPerUser", alone=True) is Waiting.never
    assert waiting_for("QOSGrpGRES", alone=True) is Waiting.wait
    assert seen("PENDING", Reason="AssocMaxJobsLimit", OwnRunning="0").waiting is Waiting.never
    assert seen("PENDING", Reason="AssocMaxJobsLimit", OwnRunning="2").waiting is Waiting.wait
