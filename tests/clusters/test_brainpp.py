"""Brain++ against the fake tools: the contract, and the submit with every known misbehaviour (RJOB 9)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agent.clusters.base import Ref, Refused, Unclear, Unreachable
from agent.clusters.brainpp import BrainppCluster
from states.naming import fingerprint
from states.observation import Observation, Phase
from tests.clusters.brainpp_bench import FILESYSTEM, BrainppBench
from tests.clusters.contract import (
    OVER,
    OWNER,
    ClusterContract,
    Eventually,
    ends,
    look,
    sleeps,
    submission,
    submit,
)

Until = Callable[..., Observation]


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[BrainppBench]:
    bench = BrainppBench(tmp_path)
    yield bench
    bench.close()


@pytest.fixture
def cluster(bench: BrainppBench) -> BrainppCluster:
    return bench.client()


@pytest.fixture
def until(cluster: BrainppCluster, eventually: Eventually) -> Until:
    """`until(ref, Phase.running)`: the first look that shows one of these phases (by default any end)."""

    def wait(ref: Ref, *phases: Phase) -> Observation:
        return eventually(lambda: seen if (seen := look(cluster, ref)).phase in (phases or OVER) else None)

    return wait


class TestTheContract(ClusterContract):
    @pytest.fixture
    def bench(self, tmp_path: Path) -> Iterator[BrainppBench]:
        bench = BrainppBench(tmp_path)
        yield bench
        bench.close()


# --- the submit --------------------------------------------------------------------------------------------


def test_what_is_sent_is_what_the_platform_is_known_to_take(
    bench: BrainppBench, cluster: BrainppCluster
) -> None:
    ref = submit(
        cluster, bench.spec(*ends(0), gpu=1, cpu=1.5, memory_mib=2048, priority=3, mounts=("/shared/a",))
    )
    flags = bench.jobs()[ref.cluster_job_id]["options"]["flags"]
    assert flags["--name"] == flags["--metadata-name"] == [ref.name]
    assert (flags["--namespace"], flags["--charged-group"]) == (["lab-a"], ["team_gpu"])
    assert (flags["--gpu"], flags["--cpu"], flags["--memory"], flags["--replica"]) == (
        ["1"],
        ["2"],
        ["2048"],
        ["1"],
    )
    assert (flags["--task-type"], flags["--priority"], flags["--private-machine"]) == (
        ["normal"],
        ["3"],
        ["group"],
    )
    assert flags["--mount"] == [f"{FILESYSTEM}:{bench.workspace}", "gpfs://fs1/shared/a:/shared/a"]
    assert flags["--restart-policy"] == ["never"]
    assert "--gang-start" not in flags


def test_the_idle_lane_has_neither_priority_nor_machines_of_the_group(
    bench: BrainppBench, cluster: BrainppCluster
) -> None:
    ref = submit(cluster, bench.spec(*ends(0), lane="idle", exclude_nodes=("node-a1", "node-a2")))
    flags = bench.jobs()[ref.cluster_job_id]["options"]["flags"]
    assert flags["--task-type"] == ["idle"]
    assert flags["--negative-tags"] == ["node/node-a1,node/node-a2"]
    assert {"--priority", "--private-machine"}.isdisjoint(flags)


def test_several_replicas_start_together_and_each_has_a_record_of_its_own(
    bench: BrainppBench, cluster: BrainppCluster, until: Until
) -> None:
    ref = submit(cluster, bench.spec("sh", "-c", 'echo "rank $NODE_RANK of $NODE_COUNT"', replicas=2))
    end = until(ref)
    assert (end.phase, end.exit_code, end.confirmed, end.replicas) == (Phase.succeeded, 0, True, 2)
    assert sorted(cluster.logs(ref).text.splitlines()) == ["rank 0 of 2", "rank 1 of 2"]
    flags = bench.jobs()[ref.cluster_job_id]["options"]["flags"]
    assert flags["--gang-start"] == ["true"]
    assert "DISTRIBUTED_JOB=true" in flags["-e"]


def test_the_replica_that_failed_first_tells_the_code(
    bench: BrainppBench, cluster: BrainppCluster, until: Until
) -> None:
    ref = submit(
        cluster, bench.spec("sh", "-c", '[ "$NODE_RANK" = 0 ] && exec sleep 600; exit 7', replicas=2)
    )
    end = until(ref)
    assert (end.phase, end.exit_code) == (Phase.failed, 7)


def test_a_named_group_brings_its_namespace(
    bench: BrainppBench, cluster: BrainppCluster, until: Until
) -> None:
    bench.secrets["BRAINPP_CHARGED_GROUP"] = "lab-a:team_gpu,lab-b:other_gpu"
    bench.switch(queues={"lab-a": ["team_gpu"], "lab-b": ["other_gpu"]})
    ref = submit(cluster, bench.spec(*ends(3), group="other_gpu"))
    assert ref.cluster_job_id == f"lab-b/{ref.name}"
    assert until(ref).exit_code == 3
    assert until(Ref(ref.name)).exit_code == 3
    assert [match.cluster_job_id for match in cluster.find(ref.name)] == [ref.cluster_job_id]
    assert cluster.logs(Ref(ref.name)).ready
    assert cluster.capacity("other_gpu").group == "other_gpu"


def test_jobs_of_two_namespaces_are_two_calls(bench: BrainppBench, cluster: BrainppCluster) -> None:
    bench.secrets["BRAINPP_CHARGED_GROUP"] = "lab-a:team_gpu,lab-b:other_gpu"
    bench.switch(queues={"lab-a": ["team_gpu"], "lab-b": ["other_gpu"]})
    refs = [submit(cluster, bench.spec(*ends(0), group=group)) for group in ("team_gpu", "other_gpu")]
    before = bench.calls()
    assert len(cluster.observe(refs)) == 2
    assert bench.calls() - before == 2


def test_a_group_that_is_not_configured_is_refused_before_any_call(
    bench: BrainppBench, cluster: BrainppCluster
) -> None:
    for call in (
        lambda: submit(cluster, bench.spec(*ends(0), group="their_gpu")),
        lambda: cluster.capacity("their_gpu"),
    ):
        with pytest.raises(Refused) as told:
            call()
        assert "their_gpu" in str(told.value)
        assert "team" not in str(told.value)
        assert "lab-a" not in str(told.value)
    assert bench.calls() == 0


@pytest.mark.parametrize("value", ["", "lab-a", "lab-a:", ":team_gpu", "lab-a:team_gpu:x"])
def test_a_missing_or_malformed_group_is_walked_through(
    bench: BrainppBench, cluster: BrainppCluster, value: str
) -> None:
    bench.secrets["BRAINPP_CHARGED_GROUP"] = value
    with pytest.raises(Refused, match="BRAINPP_CHARGED_GROUP"):
        submit(cluster, bench.spec(*ends(0)))
    assert bench.calls() == 0


def test_a_tool_that_fails_after_it_created_the_job_is_believed_about_the_job(
    bench: BrainppBench, cluster: BrainppCluster, until: Until
) -> None:
    bench.switch(created_but_failed=True)
    sent = submission(bench.spec(*ends(0)))
    answer = cluster.submit(sent)
    assert answer.cluster_job_id == f"lab-a/{sent.name}"
    assert "although the job was created" in answer.note
    assert until(Ref(sent.name, answer.cluster_job_id)).phase == Phase.succeeded


@pytest.mark.parametrize("switches", [{"no_answer": True}, {"no_answer": True, "created_but_failed": True}])
def test_a_lost_answer_is_settled_by_the_name(
    bench: BrainppBench, cluster: BrainppCluster, until: Until, switches: dict[str, Any]
) -> None:
    bench.switch(**switches)
    sent = submission(bench.spec(*ends(0)))
    with pytest.raises((Unclear, Unreachable)):
        cluster.submit(sent)
    (found,) = cluster.find(sent.name, fingerprint=sent.fingerprint, owner=OWNER)
    assert (found.cluster_job_id, found.ours) == (f"lab-a/{sent.name}", True)
    assert until(Ref(sent.name, found.cluster_job_id)).exit_code == 0


def test_a_submit_that_hangs_is_ended_and_settled_by_the_name(bench: BrainppBench) -> None:
    bench.switch(hang_s=60.0)
    sent, cluster = submission(bench.spec(*ends(0))), bench.client(submit_timeout_s=1.0)
    assert cluster.capabilities.submit_timeout_s > 1.0
    with pytest.raises(Unreachable):
        cluster.submit(sent)
    assert [match.ours for match in cluster.find(sent.name)] == [True]


def test_a_platform_that_adds_a_suffix_is_found_by_the_display_name(
    bench: BrainppBench, cluster: BrainppCluster, until: Until
) -> None:
    bench.switch(ignores_metadata_name=True)
    sent = submission(bench.spec(*ends(5)))
    answer = cluster.submit(sent)
    assert "the platform named it" in answer.note
    _, _, name = answer.cluster_job_id.partition("/")
    assert name.startswith(f"{sent.name}-")
    assert len(name) == len(sent.name) + 9
    end = until(Ref(sent.name, answer.cluster_job_id))
    assert (end.phase, end.exit_code) == (Phase.failed, 5)
    assert [match.cluster_job_id for match in cluster.find(sent.name)] == [answer.cluster_job_id]


def test_a_name_that_is_taken_is_unclear_and_looked_up(bench: BrainppBench, cluster: BrainppCluster) -> None:
    first = submit(cluster, bench.spec(*sleeps()))
    with pytest.raises(Unclear, match="there already"):
        submit(cluster, bench.spec(*ends(0)), first.name)
    assert len(cluster.find(first.name)) == 1


def test_another_machine_knows_ours_by_the_fingerprint_in_the_name(
    bench: BrainppBench, cluster: BrainppCluster
) -> None:
    spec = bench.spec(*ends(0))
    ref = submit(cluster, spec)
    elsewhere = bench.client(root=str(bench.folder / "elsewhere"))
    found = [elsewhere.find(ref.name, fingerprint=print_) for print_ in (fingerprint(spec), "00000000")]
    assert [match.ours for (match,) in found] == [True, False]


def test_a_refusal_has_its_cause_and_leaves_nothing(bench: BrainppBench, cluster: BrainppCluster) -> None:
    bench.secrets["BRAINPP_CHARGED_GROUP"] = "lab-a:home_group,lab-a:team_gpu"
    sent = submission(bench.spec(*ends(0)))
    with pytest.raises(Refused, match="workspace type") as told:
        cluster.submit(sent)
    assert (told.value.cause, told.value.retryable) == ("scheduling.unsatisfiable", False)
    assert list(cluster.find(sent.name)) == []
    assert list((bench.folder / "notes").rglob("*.json")) == []


@pytest.mark.parametrize("text", ["HTTP 407 Proxy Authentication Required", "503 service unavailable"])
def test_what_may_have_landed_is_never_called_refused(
    bench: BrainppBench, cluster: BrainppCluster, text: str
) -> None:
    bench.switch(sends_to=text)
    with pytest.raises(Unreachable):
        submit(cluster, bench.spec(*ends(0)))
    bench.switch(sends_to="something odd")
    with pytest.raises(Unclear):
        submit(cluster, bench.spec(*ends(0)))


def test_the_created_object_is_compared_with_what_was_asked(
    bench: BrainppBench, cluster: BrainppCluster
) -> None:
    sent = submission(bench.spec(*ends(0), priority=2))
    assert cluster.submit(sent).note == ""
    bench.switch(priority=9, group="their_gpu")
    note = cluster.submit(submission(bench.spec(*ends(0), priority=2))).note
    assert note == "the created job has group their-gpu instead of team-gpu and priority 9 instead of 2"
    bench.switch(away="get")
    note = cluster.submit(submission(bench.spec(*ends(0)))).note
    assert "could not be checked" in note


def test_extra_arguments_go_through_verbatim_or_are_refused(
    bench: BrainppBench, cluster: BrainppCluster
) -> None:
    extra = ("--enable-sshd", "--custom-resources", "rdma/mlnx_shared=8", "--priority=7")
    ref = submit(cluster, bench.spec(*ends(0), extra_args=extra))
    flags = bench.jobs()[ref.cluster_job_id]["options"]["flags"]
    assert flags["--custom-resources"] == ["rdma/mlnx_shared=8"]
    assert flags["--priority"][-1] == "7"
    with pytest.raises(Refused) as told:
        submit(cluster, bench.spec(*ends(0), extra_args=("--no-such-flag",)))
    assert told.value.cause == "command.bad_argument"
    before = bench.calls()
    for word in ("--namespace=x", "--metadata", "--charged-group", "--dry-run=true", "--d=true", "--", "---"):
        with pytest.raises(Refused):
            submit(cluster, bench.spec(*ends(0), extra_args=(word,)))
    assert bench.calls() == before


def test_a_workspace_that_cannot_be_written_is_told_and_the_wrapper_can_be_off(
    bench: BrainppBench, eventually: Eventually
) -> None:
    far = str(bench.workspace / "not-there")
    with pytest.raises(Refused, match="wrapper: false"):
        submit(bench.client(), bench.spec(*ends(0), workspace=far))
    assert bench.calls() == 0
    plain = bench.client(wrapper=False)
    ref = submit(plain, bench.spec("sh", "-c", "pwd; exit 3"))
    end = eventually(lambda: seen if (seen := look(plain, ref)).phase in OVER else None)
    assert (end.phase, end.exit_code, end.confirmed) == (Phase.failed, None, False)
    assert plain.logs(ref).text == f"{bench.workspace}\n"
    assert not plain.capabilities.wrapper


def test_a_time_limit_ends_the_command_and_is_named(
    bench: BrainppBench, cluster: BrainppCluster, until: Until
) -> None:
    end = until(submit(cluster, bench.spec("sleep", "600", time_limit_s=1.0)))
    assert (end.phase, end.cause, end.exit_code) == (Phase.failed, "scheduling.time_limit", 124)
