"""The local cluster: the contract, and its own: a queue without a scheduler, jobs without an agent."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psutil
import pytest

from agent.clusters import local_records
from agent.clusters.base import Ref, Refused, Unreachable
from agent.clusters.local import LocalCluster
from states.observation import Observation, Phase, Waiting
from tests.clusters.bench import (
    OVER,
    Eventually,
    ends,
    ignores_term,
    look,
    sleeps,
    submission,
    submit,
)
from tests.clusters.contract import ClusterContract
from tests.clusters.local_bench import LocalBench

Until = Callable[..., Observation]


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[LocalBench]:
    bench = LocalBench(tmp_path)
    yield bench
    bench.close()


@pytest.fixture
def cluster(bench: LocalBench) -> LocalCluster:
    return bench.client()


@pytest.fixture
def until(bench: LocalBench, eventually: Eventually) -> Until:
    """`until(ref, Phase.running)`: the first look that shows one of these phases (by default any end)."""

    def wait(ref: Ref, *phases: Phase) -> Observation:
        client = bench.client()
        return eventually(
            lambda: seen if (seen := look(client, ref)).phase in (phases or OVER) else None,
            within_s=bench.wait_s,
        )

    return wait


class TestTheContract(ClusterContract):
    """With the `bench` of this file."""


def record_of(bench: LocalBench, ref: Ref) -> Path:
    (path,) = bench.root.glob(f"*/{ref.cluster_job_id}~*.json")
    return path


def change(path: Path, **fields: Any) -> None:
    """Write into a record behind the cluster's back."""
    path.write_text(json.dumps({**json.loads(path.read_text()), **fields}))


def group_of(bench: LocalBench, ref: Ref) -> int:
    return int(json.loads(record_of(bench, ref).read_text())["group"][0])


def in_a_process_that_dies(code: str, *arguments: object) -> None:
    """Run code as an agent of its own that is killed at its last line."""
    death = "\nimport os, signal\nos.kill(os.getpid(), signal.SIGKILL)"
    done = subprocess.run([sys.executable, "-c", code + death, *map(str, arguments)], check=False)
    assert done.returncode == -signal.SIGKILL


AGENT = """
import json, sys
from agent.clusters.base import Ref, Submission
from agent.clusters.local import LocalCluster
from states.spec import Spec
options, specs = json.loads(sys.argv[1]), json.loads(sys.argv[2])
cluster = LocalCluster("local", options)
for name, spec in specs.items():
    cluster.submit(Submission(name=name, fingerprint="f", owner="o", spec=Spec.model_validate(spec)))
"""


def agents_words(bench: LocalBench, **specs: Any) -> tuple[str, str]:
    options = {**bench.options, "root": str(bench.root)}
    return json.dumps(options), json.dumps({name: spec.model_dump() for name, spec in specs.items()})


# --- without an agent --------------------------------------------------------------------------------------


def test_the_queue_moves_on_after_the_agent_died(bench: LocalBench, eventually: Eventually) -> None:
    first = bench.spec("sh", "-c", "sleep 0.3; exit 3", **bench.whole)
    words = agents_words(bench, first=first, second=bench.spec(*ends(0), **bench.whole))
    in_a_process_that_dies(AGENT, *words)
    # Nobody asks: the files alone tell.
    eventually(lambda: list(bench.root.glob("ended/*~second.json")))
    cluster = bench.client()
    assert look(cluster, Ref("first")).exit_code == 3
    assert look(cluster, Ref("second")).phase == Phase.succeeded


def test_a_stop_is_carried_out_although_who_asked_for_it_died(
    bench: LocalBench, cluster: LocalCluster, until: Until, eventually: Eventually
) -> None:
    ref = submit(cluster, bench.spec(*ignores_term()))
    eventually(lambda: "ready" in cluster.logs(ref).text)
    options, specs = agents_words(bench)
    in_a_process_that_dies(f"{AGENT}\ncluster.stop(Ref({ref.name!r}))", options, specs)
    eventually(lambda: list(bench.root.glob(f"ended/*~{ref.name}.json")))
    assert until(ref).phase == Phase.stopped


def test_a_job_outlives_its_launcher_and_is_taken_over(
    bench: LocalBench, cluster: LocalCluster, until: Until, eventually: Eventually
) -> None:
    gate = bench.workspace / "gate"
    wait = 'echo ready; while [ ! -e "$GATE" ]; do sleep 0.02; done; exit 7'
    ref = submit(cluster, bench.spec("sh", "-c", wait, env={"GATE": str(gate)}))
    eventually(lambda: "ready" in cluster.logs(ref).text)
    (launcher,) = bench.launchers()
    launcher.kill()
    eventually(lambda: not launcher.is_running() or launcher.status() == psutil.STATUS_ZOMBIE)
    assert look(cluster, ref).phase == Phase.running
    eventually(lambda: [other for other in bench.launchers() if other.pid != launcher.pid])
    gate.touch()
    end = until(ref)
    assert (end.phase, end.exit_code, end.confirmed) == (Phase.failed, 7, True)
    started = [event for event in cluster.events(ref) if event.kind == "Started"]
    assert len(started) == 1


def test_an_end_that_no_launcher_saw_is_known(
    bench: LocalBench, cluster: LocalCluster, until: Until, eventually: Eventually
) -> None:
    ref = submit(cluster, bench.spec("sh", "-c", "sleep 0.3; exit 7"))
    until(ref, Phase.running)
    for launcher in bench.launchers():
        launcher.kill()
    eventually(lambda: list(bench.workspace.glob(".watchkeeper/*/exit.json")))
    end = until(ref)
    assert (end.phase, end.exit_code, end.confirmed) == (Phase.failed, 7, True)


def test_a_job_whose_processes_vanished_is_lost(
    bench: LocalBench, cluster: LocalCluster, until: Until
) -> None:
    ref = submit(cluster, bench.spec(*sleeps()))
    until(ref, Phase.running)
    group = group_of(bench, ref)
    for launcher in bench.launchers():
        launcher.kill()
    os.killpg(group, signal.SIGKILL)
    end = until(ref)
    assert (end.phase, end.exit_code, end.confirmed) == (Phase.lost, None, False)
    assert end.reason
    until(submit(cluster, bench.spec(*ends(0), **bench.whole)), Phase.succeeded)


def test_a_job_whose_wrapper_alone_was_killed_is_waited_for(
    bench: LocalBench, cluster: LocalCluster, until: Until, eventually: Eventually
) -> None:
    command = ("sh", "-c", "echo ready; sleep 0.4; echo the work went on")
    ref = submit(cluster, bench.spec(*command, env={"WATCHKEEPER_HEARTBEAT_S": "0.05"}))
    eventually(lambda: "ready" in cluster.logs(ref).text)
    os.kill(group_of(bench, ref), signal.SIGKILL)
    assert look(cluster, ref).phase == Phase.running
    assert until(ref).phase == Phase.lost
    assert cluster.logs(ref).text == "ready\nthe work went on\n"


def test_a_recycled_process_id_is_not_taken_for_the_job(
    bench: LocalBench, cluster: LocalCluster, until: Until
) -> None:
    ref = submit(cluster, bench.spec(*sleeps()))
    until(ref, Phase.running)
    for launcher in bench.launchers():
        launcher.kill()
    os.killpg(group_of(bench, ref), signal.SIGKILL)
    with subprocess.Popen(["sleep", "60"], start_new_session=True) as stranger:
        born = "another birth"
        change(record_of(bench, ref), group=[stranger.pid, born], launcher=[stranger.pid, born])
        cluster.stop(ref)
        assert until(ref).phase == Phase.lost
        assert stranger.poll() is None
        stranger.kill()


# --- the queue ---------------------------------------------------------------------------------------------


def test_higher_priorities_start_first_and_equals_in_their_order(
    bench: LocalBench, cluster: LocalCluster, until: Until
) -> None:
    blocker = submit(cluster, bench.spec(*sleeps(), **bench.whole))
    until(blocker, Phase.running)
    refs = [
        submit(cluster, bench.spec("sh", "-c", f"echo {word} >>order", priority=priority, **bench.whole))
        for word, priority in [("low", 1), ("middle", 5), ("high", 9), ("later", 5)]
    ]
    assert {look(cluster, ref).phase for ref in refs} == {Phase.pending}
    cluster.stop(blocker)
    for ref in refs:
        assert until(ref).phase == Phase.succeeded
    assert (bench.workspace / "order").read_text().split() == ["high", "middle", "later", "low"]


def test_no_more_runs_at_once_than_there_are_slots(
    bench: LocalBench, cluster: LocalCluster, until: Until
) -> None:
    counts = 'echo + >>"$1"; sleep 0.05; echo - >>"$1"'
    spec = bench.spec("sh", "-c", counts, "sh", str(bench.workspace / "count"), cpu=1.0)
    with ThreadPoolExecutor(4) as pool:
        refs = list(pool.map(lambda _: submit(bench.client(), spec), range(8)))
    assert len({ref.cluster_job_id for ref in refs}) == 8
    for ref in refs:
        assert until(ref).phase == Phase.succeeded
    running = most = 0
    for sign in (bench.workspace / "count").read_text().split():
        running += 1 if sign == "+" else -1
        most = max(most, running)
    assert most == 2


def test_a_preempted_job_goes_back_into_the_queue_where_that_is_wanted(
    tmp_path: Path, eventually: Eventually
) -> None:
    bench = LocalBench(tmp_path, requeue_preempted=True)
    try:
        cluster = bench.client()
        once = 'echo "begun"; [ -e again ] || { touch again; exec sleep 600; }'
        idle = submit(cluster, bench.spec("sh", "-c", once, lane="idle", **bench.whole))
        eventually(lambda: (bench.workspace / "again").exists())
        gate = bench.workspace / "gate"
        normal = submit(cluster, bench.spec("sh", "-c", "while [ ! -e gate ]; do sleep 0.02; done"))
        eventually(lambda: look(cluster, normal).phase == Phase.running)
        waits = look(cluster, idle)
        assert (waits.phase, waits.attempt, waits.exit_code) == (Phase.pending, 1, None)
        assert "Preempted" in [event.kind for event in cluster.events(idle)]
        gate.touch()
        eventually(lambda: look(cluster, idle).phase in OVER)
        end = look(cluster, idle)
        assert (end.phase, end.attempt, end.confirmed) == (Phase.succeeded, 1, True)
        assert cluster.logs(idle).text == "begun\nbegun\n"
    finally:
        bench.close()


def test_what_never_fits_says_why_and_holds_up_nobody(
    bench: LocalBench, cluster: LocalCluster, until: Until
) -> None:
    never = submit(cluster, bench.spec(*ends(0), cpu=64.0, gpu=3))
    until(submit(cluster, bench.spec(*ends(0), **bench.whole)), Phase.succeeded)
    seen = look(cluster, never)
    assert (seen.phase, seen.waiting) == (Phase.pending, Waiting.never)
    assert "64 CPU cores of 2" in seen.reason
    assert "3 GPUs of 2" in seen.reason


# --- one job -----------------------------------------------------------------------------------------------


def test_a_time_limit_is_kept(bench: LocalBench, cluster: LocalCluster, until: Until) -> None:
    end = until(submit(cluster, bench.spec(*sleeps(), time_limit_s=0.3)))
    assert (end.phase, end.cause) == (Phase.failed, "scheduling.time_limit")
    assert "0.3 s" in end.reason


def test_gpus_are_given_out_one_to_a_job(bench: LocalBench, cluster: LocalCluster, until: Until) -> None:
    show = ("sh", "-c", 'echo "gpus: $CUDA_VISIBLE_DEVICES"; exec sleep 600')
    wishes = (1, 1, 0)
    refs = [submit(cluster, bench.spec(*show, gpu=gpu)) for gpu in wishes]
    for ref in refs:
        until(ref, Phase.running)
    assert cluster.capacity().free_gpu == 0
    assert look(cluster, submit(cluster, bench.spec(*ends(0), gpu=1))).phase == Phase.pending
    for ref in refs:
        cluster.stop(ref)
        until(ref)
    assert sorted(cluster.logs(ref).text for ref in refs) == ["gpus: \n", "gpus: 0\n", "gpus: 1\n"]


def test_an_environment_and_a_proxy_are_set_as_asked(
    bench: LocalBench, cluster: LocalCluster, until: Until, tmp_path: Path
) -> None:
    (tmp_path / "venv" / "bin").mkdir(parents=True)
    spec = bench.spec("env", environment=str(tmp_path / "venv"), proxy="http://proxy.invalid:3128")
    ref = submit(cluster, spec)
    until(ref)
    env = dict(line.split("=", 1) for line in cluster.logs(ref).text.splitlines())
    assert env["PATH"].split(os.pathsep)[0] == str(tmp_path / "venv" / "bin")
    assert env["VIRTUAL_ENV"] == str(tmp_path / "venv")
    assert {env[name] for name in ("http_proxy", "HTTPS_PROXY", "all_proxy")} == {"http://proxy.invalid:3128"}
    assert env["WATCHKEEPER_JOB"] == ref.name


def test_what_the_command_left_running_ends_with_it(
    bench: LocalBench, cluster: LocalCluster, until: Until, eventually: Eventually
) -> None:
    ref = submit(cluster, bench.spec("sh", "-c", "sleep 600 & echo $!"))
    assert until(ref).phase == Phase.succeeded
    left = int(cluster.logs(ref).text)
    eventually(lambda: not psutil.pid_exists(left) or psutil.Process(left).status() == psutil.STATUS_ZOMBIE)


def test_a_namesake_never_runs_a_second_time_in_the_same_workspace(
    bench: LocalBench, cluster: LocalCluster, until: Until
) -> None:
    first = submit(cluster, bench.spec("sh", "-c", "echo ran; exec sleep 600"))
    until(first, Phase.running)
    second = until(submit(cluster, bench.spec("sh", "-c", "echo ran; exec sleep 600"), first.name))
    assert (second.phase, second.confirmed) == (Phase.failed, False)
    assert "did not run" in second.reason
    assert cluster.logs(first).text == "ran\n"
    assert look(cluster, first).phase == Phase.running


def test_records_are_the_persons_own_and_forget_secrets(
    bench: LocalBench, cluster: LocalCluster, until: Until
) -> None:
    ref = submit(cluster, bench.spec(*ends(0), env={"A_TOKEN": "hush-hush-value"}))
    until(ref)
    path = record_of(bench, ref)
    assert "hush-hush-value" not in path.read_text()
    assert "A_TOKEN" in path.read_text()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(bench.root.stat().st_mode) == 0o700


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"replicas": 2}, "replicas must be 1"),
        ({"workspace": "no/such/folder"}, "not a folder"),
        ({"extra_args": ("--x",)}, "extra"),
        ({"environment": "no/such/venv"}, "environment"),
        ({"env": {"A": "nul \0"}}, "NUL"),
        ({"command": ()}, "no command"),
    ],
)
def test_what_it_cannot_do_as_asked_is_refused(
    bench: LocalBench, cluster: LocalCluster, changes: dict[str, Any], says: str
) -> None:
    sent = submission(bench.spec(*ends(0)).model_copy(update=changes))
    with pytest.raises(Refused, match=says):
        cluster.submit(sent)
    assert list(cluster.find(sent.name)) == []


def test_what_means_nothing_here_is_told(bench: LocalBench, cluster: LocalCluster) -> None:
    told = cluster.submit(submission(bench.spec(*ends(0), image="registry.invalid/x:1", group="team")))
    assert "image is not used" in told.note
    assert "no groups" in told.note


def test_a_held_lock_is_could_not_ask(
    bench: LocalBench, cluster: LocalCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local_records, "LOCK_WAIT_S", 0.05)
    with bench.client()._locked(), pytest.raises(Unreachable, match="has been held"):
        cluster.capacity()
