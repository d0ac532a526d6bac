"""Ray: the contract on a real one, and its own: what Ray says of every bad end, and what it does not say."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from agent.clusters import wrapper
from agent.clusters.base import NotThere, Ref, Refused
from agent.clusters.ray import RayCluster
from agent.clusters.ray_delete import JOBS
from agent.clusters.ray_runs import withdrawn_at
from states.naming import fingerprint
from states.observation import Phase, Waiting
from states.spec import Spec
from tests.clusters.bench import (
    HOSTILE,
    Eventually,
    ends,
    look,
    prints,
    sleeps,
    submission,
    submit,
)
from tests.clusters.contract import ClusterContract
from tests.clusters.ray.bench import CPUS, RayBench, Until
from tests.clusters.ray.engine import Ray, running


@pytest.fixture(scope="module")
def ray() -> Iterator[Ray]:
    with running({"num_cpus": CPUS, "num_gpus": 2, "memory": 2 << 30}) as ray:
        yield ray


class TestTheContract(ClusterContract):
    """With the `bench` of this folder."""


class TestARayOfItsOwnMind:
    """What Ray says, and does, in its own way."""

    def test_what_fits_no_node_waits_for_ever_and_can_be_taken_back(
        self, bench: RayBench, cluster: RayCluster
    ) -> None:
        spec = bench.spec(*ends(0), gpu=99)
        assert cluster.predict(submission(spec)) == "it asks for 99 GPUs; the largest node has 2 GPUs"
        ref = submit(cluster, spec)
        seen = look(cluster, ref)
        assert (seen.phase, seen.waiting) == (Phase.pending, Waiting.never)
        assert seen.reason == "asks for 99 GPUs; the largest node has 2 GPUs"
        grows = look(bench.client(autoscales=True), ref)
        assert (grows.phase, grows.waiting) == (Phase.pending, Waiting.wait)
        with pytest.raises(Refused, match="PENDING"):
            cluster.delete(ref)
        cluster.stop(ref)
        assert look(bench.client(), ref).phase == Phase.stopped
        assert cluster.http.get(f"{JOBS}{ref.name}").json()["status"] == "PENDING"
        assert withdrawn_at(wrapper.run_dir(bench.workspace, ref.name)) is not None

    def test_a_stop_of_what_waits_is_not_told_as_an_end_when_nothing_keeps_it_from_starting(
        self, bench: RayBench, until: Until
    ) -> None:
        blind = bench.client(workspace_visible=False)
        until(submit(blind, bench.spec(*sleeps(), **bench.whole)), Phase.running)
        ref = submit(blind, bench.spec(*ends(0)))
        blind.stop(ref)
        blind.stop(ref)
        assert look(blind, ref).phase == Phase.pending

    def test_a_withdrawn_job_runs_nothing_when_its_turn_comes(
        self, bench: RayBench, cluster: RayCluster, until: Until, eventually: Eventually
    ) -> None:
        holds = submit(cluster, bench.spec(*sleeps(), **bench.whole))
        until(holds, Phase.running)
        ref = submit(cluster, bench.spec("touch", "ran"))
        cluster.stop(ref)
        cluster.stop(holds)
        eventually(lambda: cluster.http.get(f"{JOBS}{ref.name}").json()["status"] != "PENDING")
        assert until(ref).phase == Phase.stopped
        assert not (bench.workspace / "ran").exists()

    def test_an_answer_that_was_lost_is_taken_up_by_the_second_call(
        self, bench: RayBench, cluster: RayCluster, until: Until
    ) -> None:
        sent = submission(bench.spec("sh", "-c", "echo once >>ran"))
        cluster.submit(sent)
        again = bench.client().submit(sent)
        assert (again.cluster_job_id, again.note) == (
            sent.name,
            "Ray had it already: an earlier call had arrived",
        )
        with pytest.raises(Refused, match="another job"):
            cluster.submit(sent.model_copy(update={"fingerprint": "00000000"}))
        with pytest.raises(Refused, match="another job"):
            cluster.submit(sent.model_copy(update={"owner": "other"}))
        until(Ref(sent.name))
        assert (bench.workspace / "ran").read_text() == "once\n"

    @pytest.mark.parametrize(
        ("runtime_env", "cause", "error_type"),
        [
            ({"working_dir": "/no/such/folder"}, "mount.missing", "JOB_SUPERVISOR_ACTOR_START_FAILURE"),
            ({"conda": "no-such-environment"}, "", "RUNTIME_ENV_SETUP_FAILURE"),
        ],
    )
    def test_an_environment_that_cannot_be_built_is_no_failure_of_the_program(
        self, bench: RayBench, cluster: RayCluster, until: Until,
        runtime_env: dict[str, str], cause: str, error_type: str,
    ) -> None:  # fmt: skip
        given = ("--runtime-env-json", json.dumps(runtime_env))
        ref = submit(cluster, bench.spec("touch", "ran", extra_args=given))
        end = until(ref)
        assert (end.phase, end.exit_code, end.confirmed, end.started_at) == (Phase.failed, None, False, None)
        assert (end.cause, end.native) == (cause, f"FAILED {error_type}")
        piece = cluster.logs(ref)
        assert piece.ready
        assert next(iter(runtime_env.values())) in piece.text or "conda" in piece.text
        assert cluster.logs(ref, cursor=piece.cursor).text == ""
        assert not (bench.workspace / "ran").exists()

    def test_a_shell_that_a_signal_ended_tells_the_signal(
        self, bench: RayBench, cluster: RayCluster, until: Until
    ) -> None:
        end = until(submit(cluster, bench.spec("sh", "-c", "kill -9 $PPID; exec sleep 1")))
        assert (end.phase, end.exit_code, end.signal, end.cause) == (Phase.failed, None, 9, "process.killed")
        assert not end.confirmed

    def test_a_time_limit_ends_the_job_and_is_named(
        self, bench: RayBench, cluster: RayCluster, until: Until
    ) -> None:
        end = until(submit(cluster, bench.spec(*sleeps(), time_limit_s=0.5)))
        assert (end.phase, end.exit_code, end.cause) == (Phase.failed, 124, "scheduling.time_limit")

    def test_a_supervisor_that_died_is_a_loss_and_takes_its_program_along(
        self, ray: Ray, bench: RayBench, cluster: RayCluster, until: Until, eventually: Eventually
    ) -> None:
        ref = submit(cluster, bench.spec("sh", "-c", "echo $$ >pid; exec sleep 600"))
        until(ref, Phase.running)
        assert ray.kill("JobSupervisor") == 1
        end = until(ref)
        assert (end.phase, end.cause, end.exit_code) == (Phase.lost, "node.lost", None)
        assert end.native == "FAILED JOB_SUPERVISOR_ACTOR_DIED"
        eventually(lambda: not ray.processes("sleep 600"))

    def test_variables_and_the_environments_programs_arrive(
        self, bench: RayBench, cluster: RayCluster, until: Until
    ) -> None:
        tools = bench.workspace / "an environment" / "bin"
        tools.mkdir(parents=True)
        (tools / "tool").write_text(
            '#!/bin/sh\nprintf "%s|" "$PRICE" "$NAMES" "$https_proxy" "$WATCHKEEPER_ID"\n'
        )
        (tools / "tool").chmod(0o755)
        env = {"PRICE": "5$ and $PATH and ${path}", "NAMES": HOSTILE}
        spec = bench.spec("tool", env=env, environment=str(tools.parent), proxy="http://proxy.example:1/")
        ref = submit(cluster, spec)
        assert until(ref).phase == Phase.succeeded
        assert cluster.logs(ref).text == f"{env['PRICE']}|{HOSTILE}|http://proxy.example:1/|{ref.name}|"

    def test_what_was_deleted_stays_away_and_what_ray_writes_anew_is_no_job(
        self, bench: RayBench, cluster: RayCluster, until: Until, eventually: Eventually
    ) -> None:
        """Ray's monitor of a job writes a record anew that is removed too soon after the job's end."""

        def has_record(ref: Ref) -> bool:
            return cluster.http.get(f"{JOBS}{ref.name}").status == 200

        deleted, stopped = submit(cluster, bench.spec(*ends(0))), submit(cluster, bench.spec(*sleeps()))
        until(stopped, Phase.running)
        cluster.stop(stopped)
        for ref in (deleted, stopped):
            until(ref)
            cluster.delete(ref)

        left = submit(cluster, bench.spec(*ends(0)))
        until(left)
        assert cluster.http.send("DELETE", f"{JOBS}{left.name}").status == 200
        eventually(lambda: has_record(left))
        assert cluster.http.get(f"{JOBS}{left.name}").json()["status"] == "FAILED"
        assert not any(has_record(ref) for ref in (deleted, stopped))

        assert look(cluster, left).phase == Phase.succeeded  # the run's own record says so
        assert look(bench.client(root=bench.workspace / "elsewhere"), left).phase == Phase.gone
        assert list(cluster.find(left.name)) == []
        assert left.name not in {line.name for line in cluster.list(everyone=True)}
        with pytest.raises(NotThere):
            cluster.events(left)
        cluster.delete(left)
        assert not has_record(left)
        assert look(cluster, left).phase == Phase.gone

    def test_the_only_node_is_not_left_out(self, bench: RayBench, cluster: RayCluster, until: Until) -> None:
        sent = submission(bench.spec(*ends(0), exclude_nodes=("n1",)))
        assert "none is left out" in cluster.submit(sent).note
        assert until(Ref(sent.name)).phase == Phase.succeeded

    def test_jobs_of_others_are_listed_for_everyone_only(
        self, bench: RayBench, cluster: RayCluster, until: Until
    ) -> None:
        theirs = {"submission_id": "theirs", "entrypoint": "exit 5", "entrypoint_num_cpus": 0.1}
        assert cluster.http.send("POST", JOBS, theirs).status == 200
        end = until(Ref("theirs"))
        assert (end.phase, end.exit_code, end.confirmed) == (Phase.failed, 5, False)
        assert "theirs" not in {line.name for line in cluster.list()}
        assert ("theirs", False) in {(line.name, line.ours) for line in cluster.list(everyone=True)}
        assert [match.ours for match in cluster.find("theirs", fingerprint="00000000")] == [False]
        with pytest.raises(NotThere):
            cluster.stop(Ref("theirs/stop"))

    def test_the_doctor_finds_it_well(self, bench: RayBench, cluster: RayCluster) -> None:
        rows = {row.name: row for row in cluster.doctor()}
        assert list(rows) == ["dashboard", "clock", "jobs", "nodes", "workspace"]
        assert {row.level for row in rows.values()} == {"fine"}
        assert rows["nodes"].said == "1 alive"
        (away,) = bench.severed().doctor()
        assert (away.name, away.level) == ("dashboard", "wrong")
        assert "address" in away.mend


class TestAWorkspaceThatTheNodesDoNotSee:
    """Everything then comes through the dashboard."""

    def test_a_log_comes_without_rays_own_lines(
        self, bench: RayBench, until: Until, eventually: Eventually
    ) -> None:
        blind = bench.client(workspace_visible=False)
        assert not blind.capabilities.wrapper
        said = prints(
            50,
            r"printf 'caf\303\251 \377\376 end\n'; until [ -e "
            + f"{bench.workspace}/go ]; do sleep 0.1; done",
        )
        ref = submit(blind, bench.spec(*said))
        eventually(lambda: "end" in blind.logs(ref).text)
        running = look(blind, ref)
        assert (running.phase, running.started_at, running.node) == (Phase.running, None, "n1")
        begun = blind.logs(ref, lines=100)
        assert begun.text.splitlines() == [*(f"line {number}" for number in range(1, 51)), "café �� end"]
        assert blind.logs(ref, lines=2, head=True).text == "line 1\nline 2\n"
        tail = blind.logs(ref, lines=1)
        assert (tail.text, tail.truncated) == ("café �� end\n", True)
        (bench.workspace / "go").touch()
        end = until(ref)
        assert (end.phase, end.exit_code, end.confirmed) == (Phase.succeeded, 0, False)
        after = blind.logs(ref, cursor=tail.cursor)
        assert (after.text, after.cursor) == ("", tail.cursor)
        assert not wrapper.run_dir(bench.workspace, ref.name).exists()

    def test_a_log_that_is_too_long_gives_its_tail(
        self, bench: RayBench, until: Until, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("agent.clusters.ray_logs.BYTES_MAX", 1000)
        blind = bench.client(workspace_visible=False)
        ref = submit(blind, bench.spec(*prints(500)))
        assert until(ref).phase == Phase.succeeded
        piece = blind.logs(ref, lines=3)
        assert (piece.text, piece.truncated, piece.cursor) == ("line 498\nline 499\nline 500\n", True, "")


def test_a_spec_arrives_as_its_fingerprint(bench: RayBench, cluster: RayCluster) -> None:
    spec: Spec = bench.spec(*ends(0))
    ref = submit(cluster, spec)
    metadata: dict[str, Any] = cluster.http.get(f"{JOBS}{ref.name}").json()["metadata"]
    assert metadata["watchkeeper_fingerprint"] == fingerprint(spec)
