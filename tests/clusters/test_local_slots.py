"""Who runs next on this machine, as a pure function of the jobs and the slots."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from agent.clusters.local_records import Job
from agent.clusters.local_slots import NEVER, PREEMPTING, RESOURCES, Slots, plan

TOTAL = Slots(4.0, 4000, 2)


def job(number: int, cpu: float = 1, gpu: int = 0, **changes: Any) -> Job:
    """Job `number` is the older one the smaller it is."""
    fields = {
        "id": f"{number:08d}", "name": f"job-{number}", "fingerprint": "", "owner": "", "command": ("true",),
        "env": {}, "env_names": (), "workspace": "", "slots": Slots(cpu, 100, gpu), "lane": "normal",
        "priority": 1, "submitted_at": datetime(2026, 1, 1, tzinfo=UTC), **changes,
    }  # fmt: skip
    return Job(**fields)


def started(*jobs: Job) -> list[int]:
    return [int(job.id) for job, _ in plan(jobs, TOTAL).start]


def test_the_queue_is_by_lane_then_priority_then_age() -> None:
    waiting = [job(1), job(2, priority=5), job(3, lane="idle", priority=9), job(4, priority=5)]
    assert started(*waiting) == [2, 4, 1, 3]


def test_a_job_that_waits_keeps_the_slots_it_needs_and_no_others() -> None:
    runs = job(1, cpu=2, gpu=2, state="launched", gpus=(0, 1))
    wants_gpu = job(2, cpu=1, gpu=1, priority=9)
    # Two cores are free; the first in the queue will need one of them once a GPU is there.
    found = plan([runs, wants_gpu, job(3), job(4)], TOTAL)
    assert [int(one.id) for one, _ in found.start] == [3]
    assert found.waits["00000002"].word == RESOURCES
    assert found.free == Slots(1.0, 3800, 0)


def test_gpus_are_given_out_once() -> None:
    runs = job(1, gpu=1, state="launched", gpus=(0,))
    found = plan([runs, job(2, gpu=1), job(3, gpu=1)], TOTAL)
    assert [(int(one.id), gpus) for one, gpus in found.start] == [(2, (1,))]


def test_what_is_larger_than_the_machine_never_starts_and_takes_no_place() -> None:
    found = plan([job(1, cpu=5, priority=9), job(2, cpu=4)], TOTAL)
    assert [int(one.id) for one, _ in found.start] == [2]
    assert found.waits["00000001"].word == NEVER
    assert "5 CPU cores of 4" in found.waits["00000001"].reason


def idle(number: int, cpu: float, **changes: Any) -> Job:
    return job(number, cpu=cpu, lane="idle", state="launched", **changes)


def test_the_newest_idle_jobs_make_room_and_no_more_than_needed() -> None:
    found = plan([idle(1, 2), idle(2, 1), idle(3, 1), job(4, cpu=2)], TOTAL)
    assert {int(one.id) for one in found.preempt} == {2, 3}
    assert found.waits["00000004"].word == PREEMPTING
    found = plan([idle(1, 2), idle(2, 1), idle(3, 1), job(4, cpu=1)], TOTAL)
    assert [int(one.id) for one in found.preempt] == [3]


def test_nobody_is_preempted_in_vain() -> None:
    runs = job(1, cpu=3, state="launched")
    assert plan([runs, idle(2, 1), job(3, cpu=2)], TOTAL).preempt == ()
    assert plan([idle(1, 4), job(2, lane="idle")], TOTAL).preempt == ()
    leaving = idle(1, 4, ask="preempt")
    assert plan([leaving, job(2, cpu=4)], TOTAL).preempt == ()


@st.composite
def queues(draw: st.DrawFn) -> list[Job]:
    jobs = []
    left = TOTAL
    for number in range(draw(st.integers(0, 8))):
        cpu, gpu = draw(st.sampled_from([0.5, 1, 2, 4, 9])), draw(st.integers(0, 3))
        lane, priority = draw(st.sampled_from(["normal", "idle"])), draw(st.integers(1, 9))
        made = job(number, cpu, gpu, lane=lane, priority=priority)
        if draw(st.booleans()) and made.slots.fits(left):
            gpus = tuple(range(TOTAL.gpu - left.gpu, TOTAL.gpu - left.gpu + gpu))
            ask = draw(st.sampled_from(["", "stop"]))
            made = made._replace(state="launched", gpus=gpus, ask=ask)
            left = left.minus(made.slots)
        jobs.append(made)
    return jobs


@given(queues())
def test_never_more_than_fits_and_never_a_wrong_victim(jobs: list[Job]) -> None:
    found = plan(jobs, TOTAL)
    runs = [one for one in jobs if one.state == "launched"]
    runs += [one._replace(gpus=gpus) for one, gpus in found.start]
    assert sum(one.slots.cpu for one in runs) <= TOTAL.cpu
    gpus = [index for one in runs for index in one.gpus]
    assert len(gpus) == len(set(gpus)) == sum(one.slots.gpu for one in runs)
    assert all(one.lane == "idle" and one.state == "launched" and not one.ask for one in found.preempt)
    queued = {one.id for one in jobs if one.state == "queued"}
    assert queued == set(found.waits) | {one.id for one, _ in found.start}
    if found.preempt:
        assert any(wait.word == PREEMPTING for wait in found.waits.values())
