"""What every cluster must do, whatever carries it: one suite, run once for each driver.

A driver's test file gives a `bench` fixture and a subclass:

    class TestSlurm(ClusterContract):
        @pytest.fixture
        def bench(self, ...) -> Iterator[Bench]: ...

The jobs are real: each test submits commands in plain sh and reads what became of them. A test that a cluster
cannot pass by its nature is named in `bench.without`, with the reason.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from agent.clock import SystemClock
from agent.clusters.base import Cluster, ClusterError, NotThere, Ref, Refused, Unreachable
from states.naming import fingerprint
from states.observation import Observation, Phase, Waiting
from tests.clusters.bench import (
    HOSTILE,
    OVER,
    OWNER,
    Bench,
    Eventually,
    ends,
    ignores_term,
    look,
    prints,
    sleeps,
    submission,
    submit,
)

CLOCK_ERROR = timedelta(seconds=5)
"""How far a cluster's clock may be from ours, in tests."""


class ClusterContract:
    """The suite. Every test has the `bench` to itself."""

    @pytest.fixture(autouse=True)
    def _may_be_without(self, bench: Bench, request: pytest.FixtureRequest) -> None:
        if reason := bench.without.get(request.function.__name__):
            pytest.skip(reason)

    @pytest.fixture
    def cluster(self, bench: Bench) -> Cluster:
        return bench.client()

    @pytest.fixture
    def until(self, bench: Bench, cluster: Cluster, eventually: Eventually) -> Callable[..., Observation]:
        """`until(ref, Phase.running)`: the first look that shows one of these phases (by default any end)."""

        def wait(ref: Ref, *phases: Phase) -> Observation:
            seen: list[Observation] = []

            def shows() -> bool:
                seen.append(look(cluster, ref))
                return seen[-1].phase in (phases or OVER)

            eventually(shows, within_s=bench.wait_s)
            return seen[-1]

        return wait

    @pytest.fixture
    def says(self, bench: Bench, cluster: Cluster, eventually: Eventually) -> Callable[[Ref, str], None]:
        """`says(ref, "ready")`: wait until the job's log has that text."""

        def wait(ref: Ref, text: str) -> None:
            eventually(lambda: text in cluster.logs(ref).text, within_s=bench.wait_s)

        return wait

    # --- a life from submit to the end ---------------------------------------------------------------------

    def test_it_is_a_cluster(self, cluster: Cluster) -> None:
        assert isinstance(cluster, Cluster)
        assert cluster.name
        assert "normal" in cluster.capabilities.lanes

    def test_a_job_is_found_by_its_name_and_succeeds(
        self, bench: Bench, cluster: Cluster, until: Any
    ) -> None:
        before = SystemClock().now()
        ref = submit(cluster, bench.spec(*ends(0)))
        (found,) = cluster.find(ref.name)
        assert (found.cluster_job_id, found.name, found.ours) == (ref.cluster_job_id, ref.name, True)
        end = until(ref)
        assert end.phase == Phase.succeeded
        assert end.exit_code in (0, None)
        assert end.confirmed is cluster.capabilities.wrapper
        assert end.started_at is not None
        assert end.ended_at is not None
        assert before - CLOCK_ERROR <= end.started_at <= end.ended_at <= end.taken_at + CLOCK_ERROR
        (found,) = cluster.find(ref.name)
        assert found.phase == Phase.succeeded

    @pytest.mark.parametrize("code", [1, 3, 255])
    def test_a_failed_command_tells_its_code(
        self, bench: Bench, cluster: Cluster, until: Any, code: int
    ) -> None:
        end = until(submit(cluster, bench.spec(*ends(code))))
        assert (end.phase, end.exit_code, end.signal) == (Phase.failed, code, None)

    def test_a_command_that_is_not_there_fails(self, bench: Bench, cluster: Cluster, until: Any) -> None:
        end = until(submit(cluster, bench.spec("no-such-program-here")))
        assert (end.phase, end.exit_code) == (Phase.failed, 127)

    def test_a_command_killed_by_the_system_failed_and_tells_the_signal(
        self, bench: Bench, cluster: Cluster, until: Any
    ) -> None:
        end = until(submit(cluster, bench.spec("sh", "-c", "kill -9 $$")))
        assert (end.phase, end.signal, end.cause) == (Phase.failed, 9, "process.killed")

    def test_a_running_job_runs(self, bench: Bench, cluster: Cluster, until: Any) -> None:
        seen = until(submit(cluster, bench.spec(*sleeps())), Phase.running)
        assert seen.exit_code is None
        assert seen.ended_at is None
        assert seen.started_at is not None
        assert seen.twins == ()

    def test_events_tell_the_story_in_order(self, bench: Bench, cluster: Cluster, until: Any) -> None:
        ref = submit(cluster, bench.spec(*ends(0)))
        until(ref)
        events = cluster.events(ref)
        times = [event.at for event in events if event.at is not None]
        assert events
        assert all(event.kind for event in events)
        assert times == sorted(times)

    def test_another_client_sees_the_same_jobs(self, bench: Bench, cluster: Cluster, until: Any) -> None:
        ended, lives = submit(cluster, bench.spec(*ends(4))), submit(cluster, bench.spec(*sleeps()))
        until(ended)
        until(lives, Phase.running)
        other = bench.client()
        assert look(other, ended).exit_code == 4
        assert look(other, Ref(lives.name)).phase == Phase.running
        assert [match.cluster_job_id for match in other.find(lives.name)] == [lives.cluster_job_id]
        other.stop(lives)
        assert until(lives).phase == Phase.stopped

    def test_the_list_has_them(self, bench: Bench, cluster: Cluster, until: Any) -> None:
        refs = [submit(cluster, bench.spec(*ends(0))) for _ in range(2)]
        for ref in refs:
            until(ref)
        listed = {line.cluster_job_id: line for line in cluster.list()}
        for ref in refs:
            assert listed[ref.cluster_job_id].name == ref.name
            assert listed[ref.cluster_job_id].ours
            assert listed[ref.cluster_job_id].observation.phase == Phase.succeeded

    # --- names ---------------------------------------------------------------------------------------------

    def test_an_unknown_name_is_provably_not_there(self, cluster: Cluster) -> None:
        nobody = Ref("nobody-a0-00000000")
        assert list(cluster.find(nobody.name)) == []
        assert look(cluster, nobody).phase == Phase.gone

    @pytest.mark.parametrize("call", ["logs", "events", "stop", "delete"])
    def test_nothing_can_be_done_with_an_unknown_job(self, cluster: Cluster, call: str) -> None:
        with pytest.raises(NotThere):
            getattr(cluster, call)(Ref("nobody-a0-00000000"))

    def test_a_stranger_under_our_name_is_not_ours(self, bench: Bench, cluster: Cluster) -> None:
        ref = submit(cluster, bench.spec(*ends(0)))
        mine = fingerprint(bench.spec(*ends(0)))
        assert [match.ours for match in cluster.find(ref.name, fingerprint=mine, owner=OWNER)] == [True]
        assert [match.ours for match in cluster.find(ref.name, fingerprint="00000000", owner=OWNER)] == [
            False
        ]
        assert [match.ours for match in cluster.find(ref.name, fingerprint=mine, owner="other")] == [False]

    def test_a_second_job_of_one_name_is_refused_or_told(
        self, bench: Bench, cluster: Cluster, until: Any
    ) -> None:
        first = submit(cluster, bench.spec(*sleeps(), **bench.whole))
        until(first, Phase.running)
        if cluster.capabilities.name_is_unique:
            with pytest.raises(Refused):
                submit(cluster, bench.spec(*sleeps()), first.name)
            assert len(cluster.find(first.name)) == 1
            return
        second = submit(cluster, bench.spec(*sleeps()), first.name)
        assert second.cluster_job_id != first.cluster_job_id
        assert [match.cluster_job_id for match in cluster.find(first.name)] == [
            first.cluster_job_id,
            second.cluster_job_id,
        ]
        assert [twin.cluster_job_id for twin in look(cluster, first).twins] == [second.cluster_job_id]
        assert [twin.cluster_job_id for twin in look(cluster, second).twins] == [first.cluster_job_id]
        cluster.stop(second)
        assert look(cluster, first).phase == Phase.running
        assert look(cluster, first).twins == ()

    def test_many_jobs_are_one_call(self, bench: Bench, cluster: Cluster) -> None:
        refs = [submit(cluster, bench.spec(*ends(0))) for _ in range(6)]
        before = bench.calls()
        look(cluster, refs[0])
        between = bench.calls()
        seen = cluster.observe([*refs, Ref("nobody-a0-00000000")])
        assert bench.calls() - between == between - before > 0
        assert set(seen) == {ref.name for ref in refs} | {"nobody-a0-00000000"}
        assert len({observation.taken_at for observation in seen.values()}) == 1

    # --- what arrives in the job, and what does not --------------------------------------------------------

    def test_words_arrive_as_they_were_written(self, bench: Bench, cluster: Cluster, until: Any) -> None:
        show = ("sh", "-c", 'printf "<%s>\\n" "$1" "$WORDS"; ls', "sh", HOSTILE)
        ref = submit(cluster, bench.spec(*show, env={"WORDS": HOSTILE}))
        assert until(ref).phase == Phase.succeeded
        text = cluster.logs(ref).text
        assert text.startswith(f"<{HOSTILE}>\n<{HOSTILE}>\n")
        assert "nested" not in text.splitlines()
        assert "ticked" not in text.splitlines()

    def test_the_agents_secrets_stay_with_the_agent(
        self, bench: Bench, cluster: Cluster, until: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for name in ("CLUSTER_TOKEN", "ANTHROPIC_API_KEY", "HTTPS_PROXY", "https_proxy", "LD_PRELOAD_NOTE"):
            monkeypatch.setenv(name, "hush-hush-value")
        spec = bench.spec("sh", "-c", "env", env={"ASKED_FOR": "yes"})
        ref = submit(cluster, spec)
        until(ref)
        text = cluster.logs(ref, lines=1000).text
        assert "ASKED_FOR=yes" in text
        assert "hush-hush-value" not in text

    def test_rendering_and_predicting_create_nothing(self, bench: Bench, cluster: Cluster) -> None:
        sent = submission(bench.spec(*ends(0), env={"SECRET_TOKEN": "hush-hush-value"}))
        shown = cluster.render(sent)
        assert "exit 0" in shown
        assert "SECRET_TOKEN" in shown
        assert "hush-hush-value" not in shown
        assert cluster.predict(sent)
        assert list(cluster.find(sent.name)) == []

    # --- logs ----------------------------------------------------------------------------------------------

    def test_the_tail_and_the_head_of_a_log(self, bench: Bench, cluster: Cluster, until: Any) -> None:
        ref = submit(cluster, bench.spec(*prints(50)))
        until(ref)
        tail, head = cluster.logs(ref, lines=3), cluster.logs(ref, lines=2, head=True)
        assert tail.text == "line 48\nline 49\nline 50\n"
        assert tail.truncated
        assert head.text == "line 1\nline 2\n"
        whole = cluster.logs(ref, lines=100)
        assert whole.text.splitlines() == [f"line {number}" for number in range(1, 51)]
        assert not whole.truncated
        assert whole.ready
        if cluster.capabilities.tells_log_time:
            assert whole.wrote_at is not None
            assert abs(whole.wrote_at - SystemClock().now()) < timedelta(minutes=1)

    def test_a_cursor_tells_every_line_once(
        self, bench: Bench, cluster: Cluster, eventually: Eventually
    ) -> None:
        slowly = "for i in 1 2 3 4 5 6 7 8; do printf 'half '; sleep 0.03; echo \"$i\"; done"
        ref = submit(cluster, bench.spec("sh", "-c", slowly))
        texts, cursor = [], ""

        def over() -> bool:
            nonlocal cursor
            ended = look(cluster, ref).phase in OVER
            piece = cluster.logs(ref, cursor=cursor)
            cursor = piece.cursor
            texts.append(piece.text)
            return ended

        eventually(over, within_s=bench.wait_s)
        assert "".join(texts) == "".join(f"half {number}\n" for number in range(1, 9))
        assert bench.client().logs(ref, cursor=cursor).text == ""

    def test_bytes_that_are_no_text_are_replaced(self, bench: Bench, cluster: Cluster, until: Any) -> None:
        ref = submit(cluster, bench.spec("sh", "-c", r"printf 'caf\303\251 \377\376 end\n'"))
        until(ref)
        assert cluster.logs(ref).text == "café �� end\n"

    def test_a_huge_log_is_told_in_bounded_pieces(self, bench: Bench, cluster: Cluster, until: Any) -> None:
        flood = "yes 0123456789012345678901234567890123456789 | head -n 100000; echo last"
        ref = submit(cluster, bench.spec("sh", "-c", flood))
        until(ref)
        piece = cluster.logs(ref, lines=1_000_000)
        assert len(piece.text.encode()) <= 1 << 20
        assert piece.text.endswith("\nlast\n")
        assert piece.text.startswith("0123456789")
        assert piece.truncated

    def test_a_job_that_waits_has_no_log(self, bench: Bench, cluster: Cluster, until: Any) -> None:
        until(submit(cluster, bench.spec(*sleeps(), **bench.whole)), Phase.running)
        piece = cluster.logs(submit(cluster, bench.spec(*ends(0))))
        assert (piece.text, piece.ready) == ("", False)

    # --- stopping and deleting -----------------------------------------------------------------------------

    def test_a_job_that_ignores_term_is_stopped(
        self, bench: Bench, cluster: Cluster, until: Any, says: Any
    ) -> None:
        ref = submit(cluster, bench.spec(*ignores_term()))
        says(ref, "ready")
        cluster.stop(ref)
        cluster.stop(ref)
        assert until(ref).phase == Phase.stopped
        assert "ready" in cluster.logs(ref).text

    def test_a_queued_job_is_stopped_and_never_runs(self, bench: Bench, cluster: Cluster, until: Any) -> None:
        until(submit(cluster, bench.spec(*sleeps(), **bench.whole)), Phase.running)
        ref = submit(cluster, bench.spec(*ends(0)))
        waits = look(cluster, ref)
        assert (waits.phase, waits.waiting, waits.held) == (Phase.pending, Waiting.wait, False)
        cluster.stop(ref)
        end = until(ref)
        assert (end.phase, end.exit_code, end.started_at) == (Phase.stopped, None, None)

    def test_stopping_what_ended_changes_nothing(self, bench: Bench, cluster: Cluster, until: Any) -> None:
        ref = submit(cluster, bench.spec(*ends(5)))
        end = until(ref)
        cluster.stop(ref)
        again = look(cluster, ref)
        assert again == end.model_copy(update={"taken_at": again.taken_at})

    def test_only_what_ended_can_be_deleted(self, bench: Bench, cluster: Cluster, until: Any) -> None:
        ref = submit(cluster, bench.spec(*sleeps()))
        until(ref, Phase.running)
        with pytest.raises(Refused):
            cluster.delete(ref)
        assert look(cluster, ref).phase == Phase.running
        cluster.stop(ref)
        until(ref)
        cluster.delete(ref)
        assert look(cluster, ref).phase == Phase.gone
        assert list(cluster.find(ref.name)) == []

    # --- room ----------------------------------------------------------------------------------------------

    def test_capacity_follows_the_jobs(self, bench: Bench, cluster: Cluster, until: Any) -> None:
        empty = cluster.capacity()
        for kind in ("gpu", "cpu", "memory_mib"):
            free, total = getattr(empty, f"free_{kind}"), getattr(empty, f"total_{kind}")
            assert free is None or total is None or 0 <= free <= total
        assert empty.block_gpu is None or empty.free_gpu is None or empty.block_gpu <= empty.free_gpu
        until(submit(cluster, bench.spec(*sleeps(), **bench.whole)), Phase.running)
        submit(cluster, bench.spec(*ends(0)))
        full = cluster.capacity()
        if empty.free_cpu is not None and full.free_cpu is not None:
            assert full.free_cpu < empty.free_cpu
        assert full.queued in (None, 1)

    def test_what_can_never_fit_is_refused_or_told(self, bench: Bench, cluster: Cluster) -> None:
        sent = submission(bench.spec(*ends(0), cpu=100_000))
        refusal = None
        try:
            cluster.submit(sent)
        except Refused as refused:
            refusal = refused.cause
        seen = look(cluster, Ref(sent.name))
        told = seen.phase == Phase.pending and seen.waiting == Waiting.never and seen.reason != ""
        assert told or (refusal == "scheduling.unsatisfiable" and seen.phase == Phase.gone)

    def test_an_idle_job_makes_room_for_a_normal_one(
        self, bench: Bench, cluster: Cluster, until: Any
    ) -> None:
        if "idle" not in cluster.capabilities.lanes:
            pytest.skip("this cluster has no idle lane")
        idle = submit(cluster, bench.spec(*sleeps(), lane="idle", **bench.whole))
        until(idle, Phase.running)
        normal = submit(cluster, bench.spec(*sleeps()))
        assert until(idle, Phase.preempted).phase == Phase.preempted
        until(normal, Phase.running)

    # --- a cluster that is away ----------------------------------------------------------------------------

    @pytest.mark.parametrize(
        "call",
        [
            lambda away, ref, sent: away.find(ref.name),
            lambda away, ref, sent: away.observe([ref]),
            lambda away, ref, sent: away.list(),
            lambda away, ref, sent: away.capacity(),
            lambda away, ref, sent: away.logs(ref),
            lambda away, ref, sent: away.events(ref),
            lambda away, ref, sent: away.stop(ref),
            lambda away, ref, sent: away.submit(sent),
        ],
        ids=["find", "observe", "list", "capacity", "logs", "events", "stop", "submit"],
    )
    def test_could_not_ask_is_no_answer(self, bench: Bench, call: Callable[..., Any]) -> None:
        sent = submission(bench.spec(*ends(0)))
        with pytest.raises(ClusterError) as told:
            call(bench.severed(), Ref(sent.name), sent)
        assert isinstance(told.value, Unreachable)
        assert str(told.value)
