"""Fixed, a range, or free: which figure is sent, and when a person is asked (RULES C3, C4, C9)."""

from __future__ import annotations

from typing import Any

import pytest

from states.intake import take_in_check
from states.job import Check, Job
from states.lint.own_size import Said
from states.observation import Capacity
from states.questions import Question, Status
from states.sizing import bounds, capacity_row, in_step, lacking, reduced_to, size_row
from tests.states import builders as b

FOUR = Said(4, "torchrun starts 4 processes on a machine", True)
NOTHING = Said()
SOME = Said(uses_gpus=True)


def job(**asked: Any) -> Job:
    return b.new_job(request=asked)


def free(gpu: int | None = None, **more: Any) -> Capacity:
    return Capacity(free_gpu=gpu, **more)


def answered(made: Job, value: str, chosen: str = "reduce") -> Job:
    asked = Question(
        id="x/1", number=1, kind="capacity", topic="check:capacity", asked_at=b.T0, answer_by=b.T0,
        status=Status.answered, chosen=chosen, value=value,
    )  # fmt: skip
    return made.but(questions=(asked,))


@pytest.mark.parametrize(
    ("asked", "said", "least", "most", "ours"),
    [
        ({"gpu": 8}, FOUR, 8, 8, False),
        ({"gpu": 0}, NOTHING, 0, 0, False),
        ({"gpu": 8, "gpu_min": 2}, NOTHING, 2, 8, True),
        ({"gpu": 8, "gpu_min": 2}, FOUR, 4, 4, True),
        ({"gpu": 8, "gpu_min": 6}, FOUR, 6, 8, True),
        ({"gpu": "auto"}, FOUR, 4, 4, True),
        ({"gpu": "free"}, SOME, 1, 1, True),
        ({"gpu": "auto"}, NOTHING, 0, 0, True),
        ({"gpu": "auto", "gpu_min": 2}, NOTHING, 2, 2, True),
        ({"gpu": "auto", "gpu_min": 8}, FOUR, 8, 8, True),
    ],
)
def test_what_the_figure_may_be(asked: dict[str, Any], said: Said, least: int, most: int, ours: bool) -> None:
    found = bounds(job(**asked), said)
    assert (found.least, found.most, found.ours) == (least, most, ours)
    assert found.why


def test_the_owners_answer_goes_before_all() -> None:
    reduced = answered(job(gpu=8, gpu_min=4), "2")
    assert reduced_to(reduced) == 2
    assert bounds(reduced, FOUR)[:2] == (2, 2)
    assert reduced_to(answered(job(gpu=8), "", chosen="wait")) is None


class TestSizeRow:
    def test_a_fixed_figure_settles_nothing(self) -> None:
        row = size_row(job(gpu=8, replicas=3), NOTHING)
        assert (row.level, row.found, row.rule) == ("fine", {}, "C3 C9")
        assert "8 x 3 replicas = 24 GPUs" in row.evidence

    def test_a_free_figure_brings_cpu_memory_and_machines(self) -> None:
        row = size_row(job(gpu="auto"), FOUR._replace(replicas=2))
        assert row.found == {"gpu": 4, "cpu": 32.0, "memory_mib": 131_072, "replicas": 2}
        assert "torchrun starts 4 processes" in row.evidence

    def test_machines_that_were_given_stay(self) -> None:
        assert "replicas" not in size_row(job(gpu="auto", replicas=3), FOUR._replace(replicas=2)).found
        assert "replicas" not in size_row(job(gpu=4), FOUR._replace(replicas=2)).found

    def test_figures_that_were_given_stay(self) -> None:
        row = size_row(job(gpu="auto", cpu=3, memory_mib=999), FOUR._replace(memory_mib=4096))
        assert row.found == {"gpu": 4}

    def test_memory_that_the_command_takes_is_asked_for_with_headroom(self) -> None:
        row = size_row(job(gpu=0), NOTHING._replace(memory_mib=65_536))
        assert row.found == {"memory_mib": 81_920}
        assert size_row(job(gpu=8), NOTHING._replace(memory_mib=1024)).found == {}

    def test_what_could_not_be_read_is_said_where_the_choice_rests_on_it(self) -> None:
        assert "not seen" in size_row(job(gpu="auto"), SOME, blind="not seen").evidence
        assert "not seen" not in size_row(job(gpu="auto"), FOUR, blind="not seen").evidence
        assert "not seen" not in size_row(job(gpu=2), SOME, blind="not seen").evidence


class TestCapacityRow:
    def sized(self, said: Said = NOTHING, **asked: Any) -> Job:
        made = job(**asked)
        return take_in_check(made, size_row(made, said))

    def test_a_fixed_figure_is_never_shrunk(self) -> None:
        """C3."""
        row = capacity_row(self.sized(gpu=8), free(3))
        assert (row.level, row.question, row.rule, row.found) == ("ask", "capacity", "C3", {})
        assert row.evidence == "8 GPUs asked, 3 free."
        assert capacity_row(self.sized(gpu=8), free(8)).level == "fine"

    @pytest.mark.parametrize(("left", "gpu"), [(9, 8), (8, 8), (7, 7), (2, 2)])
    def test_a_range_takes_the_largest_that_fits(self, left: int, gpu: int) -> None:
        """C4."""
        made = self.sized(gpu=8, gpu_min=2)
        row = capacity_row(made, free(left))
        assert row.level == "fine"
        settled = take_in_check(made, row).spec
        assert (settled.gpu, settled.cpu, settled.memory_mib) == (gpu, 8.0 * gpu, 32_768 * gpu)

    def test_below_the_least_it_is_asked_and_the_least_is_queued(self) -> None:
        row = capacity_row(self.sized(gpu=8, gpu_min=2), free(1))
        assert (row.level, row.rule) == ("ask", "C4")
        assert row.found == {"gpu": 2, "cpu": 16.0, "memory_mib": 65_536}

    def test_it_is_not_shrunk_below_what_the_command_starts(self) -> None:
        assert capacity_row(self.sized(FOUR, gpu=8, gpu_min=1), free(2)).level == "ask"
        assert capacity_row(self.sized(FOUR, gpu="auto"), free(2)).level == "ask"

    def test_each_replica_and_the_best_node_count(self) -> None:
        made = self.sized(gpu=8, gpu_min=1, replicas=2)
        assert capacity_row(made, free(9)).found["gpu"] == 4
        assert capacity_row(made, free(16, block_gpu=3)).found["gpu"] == 3

    def test_cpu_in_proportion_limits_it_too(self) -> None:
        assert capacity_row(self.sized(gpu=8, gpu_min=1), free(8, free_cpu=20)).found["gpu"] == 2
        fixed_cpu = self.sized(gpu=8, gpu_min=1, cpu=12)
        assert capacity_row(fixed_cpu, free(8, free_cpu=20)).found == {}

    def test_a_cluster_that_tells_no_figures_gets_the_most(self) -> None:
        row = capacity_row(self.sized(gpu=8, gpu_min=1), Capacity())
        assert (row.level, row.found) == ("fine", {})

    def test_more_than_there_is_at_all_is_said(self) -> None:
        assert "waiting alone" in capacity_row(self.sized(gpu=8), free(3, total_gpu=4)).evidence
        assert "waiting alone" not in capacity_row(self.sized(gpu=8), free(3, total_gpu=8)).evidence

    def test_without_the_row_of_its_size_the_request_alone_counts(self) -> None:
        assert capacity_row(job(gpu=8, gpu_min=4), free(5)).found["gpu"] == 5
        assert capacity_row(job(gpu=8), free(5)).level == "ask"

    def test_for_want_of_room_it_goes_idle_where_that_is_cheap_and_ours_to_choose(self) -> None:
        """C8."""
        lanes = b.new_job().capabilities.model_copy(update={"lanes": ("normal", "idle")})
        cheap = job(gpu=8, lane="auto", checkpoint_every_s=600).but(capabilities=lanes)
        row = capacity_row(cheap, free(3))
        assert (row.level, row.found) == ("note", {"lane": "idle"})
        assert capacity_row(cheap, free(8)).found == {}
        dear = job(gpu=8, lane="auto", checkpoint_every_s=9000).but(capabilities=lanes)
        assert capacity_row(dear, free(3)).level == "ask"


def test_an_answered_figure_brings_its_proportion() -> None:
    assert in_step(job(gpu=8), {"gpu": "2"}) == {"gpu": 2, "cpu": 16.0, "memory_mib": 65_536}
    assert in_step(job(gpu=8, cpu=5.0), {"gpu": "2"})["cpu"] == 5.0
    assert in_step(job(gpu=8), {"image": "a"}) == {"image": "a"}
    hinted = job(gpu=8).but(checks={"size": Check(name="size", level="fine", facts={"memory_mib": "90000"})})
    assert in_step(hinted, {"gpu": "2"})["memory_mib"] == 90_000


def test_what_is_lacking_is_counted_over_all_replicas() -> None:
    spec = job(gpu=2, cpu=4, memory_mib=100, replicas=3).spec
    assert lacking(spec, free(6, free_cpu=12, free_memory_mib=300, block_gpu=2)) == []
    assert len(lacking(spec, free(5, free_cpu=11, free_memory_mib=299))) == 3
    assert lacking(spec, free(6, block_gpu=1)) == ["2 GPUs asked on one node, 1 free on the best one"]
