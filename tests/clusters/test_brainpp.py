"""Brain++ against the fake tools: the contract, and every way in which the tools are known to misbehave (RJOB 9)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agent.clusters import brainpp_looks, brainpp_reads
from agent.clusters.base import NotThere, Ref, Refused, Unclear, Unreachable
from agent.clusters.brainpp import BrainppCluster
from agent.clusters.run import run
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
    prints,
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


@pytest.mark.parametrize(
    ("text", "cause", "retryable"),
    [
        (
            "rjob can only use GPU/CPU workload quotagroup, but x is workspace type",
            "scheduling.unsatisfiable",
            False,
        ),
        ("admission webhook denied the request: does not pass quotaCheck", "scheduling.quota", True),
        ("insufficient group quota: cpu : 3073/3072 memory : 10.5Gi/11.0Gi", "scheduling.quota", True),
        ("insufficient group quota: nvidia.com/gpu : 9/0", "scheduling.unsatisfiable", False),
        ("无可用机器, 资源不足", "scheduling.capacity", True),
        ("user has no right to operate[use] it", "auth.denied", False),
        ("mongo: no documents in result", "scheduling.unsatisfiable", False),
    ],
)
def test_a_refusal_has_its_cause(
    bench: BrainppBench, cluster: BrainppCluster, text: str, cause: str, retryable: bool
) -> None:
    bench.switch(sends_to=text)
    sent = submission(bench.spec(*ends(0), gpu=1))
    with pytest.raises(Refused) as told:
        cluster.submit(sent)
    assert (told.value.cause, told.value.retryable) == (cause, retryable)
    assert list(cluster.find(sent.name)) == []


@pytest.mark.parametrize(
    "text",
    ["HTTP 407 Proxy Authentication Required", "503 service unavailable", "i/o timeout", "something odd"],
)
def test_what_may_have_landed_is_never_called_refused(
    bench: BrainppBench, cluster: BrainppCluster, text: str
) -> None:
    bench.switch(sends_to=text)
    with pytest.raises((Unclear, Unreachable)) as told:
        submit(cluster, bench.spec(*ends(0)))
    assert not isinstance(told.value, Refused)


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


# --- looking -----------------------------------------------------------------------------------------------


def test_a_waiting_job_may_be_called_unknown_and_is_alive(
    bench: BrainppBench, cluster: BrainppCluster
) -> None:
    bench.switch(unknown_for_inqueue=True, cpu=2)
    submit(cluster, bench.spec(*sleeps(), **bench.whole))
    ref = submit(cluster, bench.spec(*ends(0)))
    look(cluster, ref)
    seen = look(cluster, ref)
    assert (seen.phase, seen.native) == (Phase.unknown, "Unknown")


def test_starting_is_starting_for_as_long_as_it_is_said(
    bench: BrainppBench, cluster: BrainppCluster, until: Until
) -> None:
    bench.switch(starting_calls=2)
    ref = submit(cluster, bench.spec(*sleeps()))
    assert look(cluster, ref).phase == Phase.starting
    seen = until(ref, Phase.running)
    assert (seen.node, seen.replicas, seen.replicas_ready) == ("node-a1", 1, 1)


def test_running_is_not_believed_before_the_command_has_begun(
    bench: BrainppBench, cluster: BrainppCluster, until: Until, monkeypatch: pytest.MonkeyPatch
) -> None:
    ref = submit(cluster, bench.spec(*sleeps()))
    until(ref, Phase.running)
    for record in (bench.workspace / ".watchkeeper" / ref.name).iterdir():
        record.unlink()
    late = bench.client()
    assert look(late, ref).phase == Phase.starting
    monkeypatch.setattr(brainpp_looks, "BEGIN_WITHIN_S", 0.0)
    assert look(late, ref).phase == Phase.running


def test_replicas_that_cannot_be_created_failed(bench: BrainppBench, cluster: BrainppCluster) -> None:
    bench.switch(create_fails=True)
    ref = submit(cluster, bench.spec(*ends(0)))
    seen = look(cluster, ref)
    assert (seen.phase, seen.native, seen.confirmed) == (Phase.failed, "CreatedFailed", False)
    assert seen.reason
    assert [event.message for event in cluster.events(ref)] == ["ErrImagePull: no such image"]


def test_an_answer_that_cannot_be_read_is_no_absence(bench: BrainppBench, cluster: BrainppCluster) -> None:
    ref = submit(cluster, bench.spec(*sleeps()))
    bench.switch(gibberish=True)
    with pytest.raises(Unclear, match="cannot be read"):
        look(cluster, ref)


def test_one_missing_name_that_fails_the_call_hides_no_other(
    bench: BrainppBench, cluster: BrainppCluster
) -> None:
    refs = [submit(cluster, bench.spec(*sleeps())) for _ in range(2)]
    bench.switch(missing_is_an_error=True)
    seen = cluster.observe([refs[0], Ref("nobody-a0-00000000", "lab-a/nobody-a0-00000000"), refs[1]])
    assert seen["nobody-a0-00000000"].phase == Phase.gone
    assert all(seen[ref.name].phase != Phase.gone for ref in refs)
    assert list(cluster.find("nobody-a0-00000000")) == []


def test_the_wrong_namespace_is_empty(bench: BrainppBench, cluster: BrainppCluster) -> None:
    ref = submit(cluster, bench.spec(*ends(0)))
    elsewhere = Ref(ref.name, f"lab-z/{ref.name}")
    assert look(cluster, elsewhere).phase == Phase.gone
    with pytest.raises(NotThere):
        cluster.logs(elsewhere)


def test_more_jobs_than_one_answer_holds_are_asked_for_in_halves(
    bench: BrainppBench, cluster: BrainppCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    refs = [submit(cluster, bench.spec(*sleeps())) for _ in range(4)]
    monkeypatch.setattr("agent.clusters.run.KEPT_BYTES", 300)
    monkeypatch.setattr(brainpp_reads, "KEPT_BYTES", 300)
    seen = cluster.observe(refs)
    assert all(seen[ref.name].phase != Phase.gone for ref in refs)


@pytest.mark.parametrize("word", ["Stopped", "Failed", "Killed"])
def test_a_preempted_idle_job_is_known_by_its_events(
    bench: BrainppBench, cluster: BrainppCluster, until: Until, word: str
) -> None:
    bench.switch(preempted_as=word)
    idle = submit(cluster, bench.spec(*sleeps(), lane="idle", **bench.whole))
    until(idle, Phase.running)
    normal = submit(cluster, bench.spec(*sleeps()))
    end = until(idle)
    assert (end.phase, end.native) == (Phase.preempted, word)
    assert normal.name in end.reason
    bench.switch(away="events")
    assert look(cluster, idle).phase == Phase.unknown


def test_a_preempted_job_that_goes_back_to_the_queue_runs_again(
    bench: BrainppBench, cluster: BrainppCluster, until: Until
) -> None:
    bench.switch(preempted_as="requeue")
    idle = submit(cluster, bench.spec(*sleeps(), lane="idle", **bench.whole))
    until(idle, Phase.running)
    normal = submit(cluster, bench.spec(*sleeps()))
    until(normal, Phase.running)
    until(idle, Phase.pending)
    cluster.stop(normal)
    assert until(idle, Phase.running, Phase.failed).phase == Phase.running


def test_an_idle_job_that_fails_by_itself_failed(
    bench: BrainppBench, cluster: BrainppCluster, until: Until
) -> None:
    end = until(submit(cluster, bench.spec(*ends(3), lane="idle")))
    assert (end.phase, end.exit_code) == (Phase.failed, 3)
    assert not [call for call in bench.said() if call["argv"][0] == "events"]


def test_the_list_is_of_the_person_or_of_everyone(bench: BrainppBench, cluster: BrainppCluster) -> None:
    mine = submit(cluster, bench.spec(*sleeps()))
    bench.secrets["BRAINPP_ACCESS_KEY_ID"] = "another-account"
    theirs = submit(bench.client(root=str(bench.folder / "theirs")), bench.spec(*sleeps()))
    assert [line.name for line in cluster.list()] == [mine.name]
    everyone = {line.name: line.ours for line in cluster.list(everyone=True)}
    assert everyone == {mine.name: True, theirs.name: False}
    bench.secrets["BRAINPP_ACCESS_KEY_ID"] = "a-third-account"
    other = bench.client(creator="key:another-account", root=str(bench.folder / "third"))
    assert [line.name for line in other.list()] == [theirs.name]


# --- logs --------------------------------------------------------------------------------------------------


def test_a_log_that_lags_is_no_silence_of_the_tool(
    bench: BrainppBench, cluster: BrainppCluster, until: Until
) -> None:
    bench.switch(log_after_s=60.0)
    ref = submit(cluster, bench.spec(*sleeps()))
    until(ref, Phase.running)
    piece = cluster.logs(ref)
    assert (piece.text, piece.ready) == ("", True)


def test_the_last_lines_that_come_late_are_waited_for(
    bench: BrainppBench, cluster: BrainppCluster, until: Until
) -> None:
    bench.switch(late_lines=1)
    ref = submit(cluster, bench.spec(*prints(3, "echo the end")))
    until(ref)
    assert cluster.logs(ref).text.endswith("the end\n")


def test_logs_are_always_asked_for_with_a_bound(
    bench: BrainppBench, cluster: BrainppCluster, until: Until
) -> None:
    ref = submit(cluster, bench.spec(*prints(5)))
    until(ref)
    cluster.logs(ref, lines=10_000_000)
    cluster.logs(ref, head=True)
    asked = [call["argv"] for call in bench.said() if call["argv"][0] == "logs"]
    assert all(argv[1] == "job" and 0 < int(argv[argv.index("-n") + 1]) <= 5_001 for argv in asked)


# --- room --------------------------------------------------------------------------------------------------


def test_a_list_of_queues_that_comes_cut_short_is_asked_for_again(
    bench: BrainppBench, cluster: BrainppCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(brainpp_reads, "QUEUE_PAUSE_S", 0.0)
    bench.switch(short_queues=4)
    assert cluster.capacity().free_gpu == 2
    bench.switch(short_queues=9)
    with pytest.raises(Unclear, match="cut short"):
        cluster.capacity()


def test_capacity_is_of_the_group_itself(bench: BrainppBench, cluster: BrainppCluster) -> None:
    bench.switch(queues={"lab-a": ["team_gpu_2", "team_cpu"]})
    with pytest.raises(Refused, match="no queue"):
        cluster.capacity()
    room = cluster.capacity("team_cpu")
    assert (room.free_gpu, room.free_cpu, room.total_memory_mib) == (None, 2.0, 8192)


@pytest.mark.parametrize("old", [False, True])
def test_a_prediction_is_read_from_its_counts(
    bench: BrainppBench, cluster: BrainppCluster, old: bool
) -> None:
    bench.switch(predict_old=old)
    sent = submission(bench.spec(*ends(0), replicas=2))
    assert cluster.predict(sent).startswith("2 of 2 replicas")
    too_many = submission(bench.spec(*ends(0), replicas=3))
    assert cluster.predict(too_many).startswith("0 of 3 replicas")
    assert list(cluster.find(too_many.name)) == []


# --- the tools themselves ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [
        ["submit", "--image=x", "true"],
        ["submit", "--image=x", "--predict-only", "--", "true"],
        ["submit", "--image=x", "--no-such", "--", "true"],
        ["logs", "some-name"],
        ["ls"],
    ],
)
def test_the_fake_is_as_strict_as_the_real_one(bench: BrainppBench, words: list[str]) -> None:
    ran = run([bench.tools["rjob"], *words], timeout_s=20)
    assert ran.rc == 2
    assert "error:" in ran.stderr


def test_the_fake_tool_falls_back_to_the_hosts_keys_and_is_stopped_by_a_proxy(bench: BrainppBench) -> None:
    run([bench.tools["rjob"], "get", "x", "--namespace=lab-a"], timeout_s=20)
    assert bench.said()[-1]["identity"] == "host"
    ran = run([bench.tools["rjob"], "get", "x"], timeout_s=20, env={"HTTPS_PROXY": "http://proxy.example"})
    assert (ran.rc, "407" in ran.stderr) == (1, True)


def test_doctor_finds_what_is_wrong_and_says_how_to_mend_it(
    bench: BrainppBench, cluster: BrainppCluster
) -> None:
    assert {row.name: row.level for row in cluster.doctor()} == dict.fromkeys(
        ("rjob", "brainctl", "keys", "group", "storage", "cluster"), "fine"
    )
    bench.switch(accounts=["somebody-else"])
    (row,) = [row for row in cluster.doctor() if row.level == "wrong"]
    assert (row.name, "no right" in row.said, bool(row.mend)) == ("cluster", True, True)
    other = bench.folder / "other-rjob"
    other.write_text("#!/bin/sh\necho 'usage: rjob run|status|sync|cancel|clean'\n")
    other.chmod(0o755)
    del bench.secrets["BRAINPP_SECRET_ACCESS_KEY"]
    broken = bench.client(rjob=str(other), brainctl="/nowhere/brainctl", storage={})
    rows = {row.name: row for row in broken.doctor()}
    assert {name: row.level for name, row in rows.items()} == {
        "rjob": "wrong", "brainctl": "warn", "keys": "wrong", "group": "fine", "storage": "wrong"
    }  # fmt: skip
    assert "another program" in rows["rjob"].said
    assert "wk key set BRAINPP_SECRET_ACCESS_KEY" in rows["keys"].mend


def test_a_tool_that_is_not_installed_refuses_a_submit_and_concludes_nothing_else(
    bench: BrainppBench,
) -> None:
    cluster = bench.client(rjob="/nowhere/rjob")
    with pytest.raises(Refused, match="not installed"):
        submit(cluster, bench.spec(*ends(0)))
    with pytest.raises(Unreachable):
        look(cluster, Ref("nobody-a0-00000000"))
