"""How a pod ended, and whose doing it was (PHASES 2)."""

from __future__ import annotations

from typing import Any

import pytest

from states.observation import Phase
from tests.clusters.kubernetes.judging import BACKOFF, seen
from tests.clusters.kubernetes.objects import (
    Object,
    ended,
    job,
    pod,
    told,
)

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
