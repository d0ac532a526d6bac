"""Brain++ against the fake tools: looking, logs, room and doctor, with every known misbehaviour (RJOB 9)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agent.clusters import brainpp_looks, brainpp_reads
from agent.clusters.base import NotThere, Ref, Refused, Unclear, Unreachable
from agent.clusters.brainpp import BrainppCluster
from agent.clusters.run import run
from states.observation import Observation, Phase
from tests.clusters.brainpp_bench import BrainppBench
from tests.clusters.contract import (
    OVER,
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


@pytest.mark.parametrize("word", ["Stopped", "Failed"])
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
