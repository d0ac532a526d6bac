"""RULES E5, E10, E11: the same again and again."""

from __future__ import annotations

from datetime import timedelta

import pytest

from states.reading import Counter, Progress, Quote, Scene, Track
from tests.states.judging import POLICY, START, judged, quiet_for, seen_for, steps, trouble


class TestRepeating:
    """E5: output is no milestone."""

    again = Quote(line=98, text="connection refused, retrying")

    def test_retries_without_a_milestone_are_a_loop_and_asked_about(self) -> None:
        verdict = judged(
            Progress(repeats=12, repeated=self.again), diagnosis=trouble("storage.io", fatal=False)
        )
        assert (verdict.name, verdict.topic, verdict.provable) == ("looping", "loop:storage.io", False)

    def test_a_loop_is_provable_only_when_it_lasts(self) -> None:
        track = Track(milestone_at=START, looked_at=START + timedelta(seconds=POLICY.loop_s), output_at=START)
        progress = Progress(repeats=POLICY.loop_repeats, repeated=self.again)
        told = trouble("storage.io", fatal=False)
        scene = quiet_for(5.0)
        assert judged(progress, scene, told, track).provable
        few = progress.model_copy(update={"repeats": POLICY.loop_repeats - 1})
        assert not judged(few, scene, told, track).provable

    def test_a_download_that_begins_again_and_again_is_asked_about_never_stopped(self) -> None:
        part = Counter(name="bar:w.bin", value=0, total=9e9, line=98)
        track = Track(milestone_at=START, looked_at=START + timedelta(days=1), output_at=START)
        verdict = judged(Progress(main=part, counters=(part,), from_zero=3), quiet_for(5.0), track=track)
        assert (verdict.name, verdict.topic, verdict.provable) == ("looping", "download", False)

    def test_a_network_that_does_not_come_is_asked_about_never_stopped(self) -> None:
        track = Track(milestone_at=START, looked_at=START + timedelta(days=1), output_at=START)
        progress = Progress(repeats=500, repeated=self.again)
        verdict = judged(progress, quiet_for(5.0), trouble("network.timeout", fatal=False), track)
        assert (verdict.name, verdict.topic, verdict.provable) == ("looping", "network", False)

    def test_a_heartbeat_is_no_loop(self) -> None:
        beat = Quote(line=98, text="still waiting for the other workers")
        assert judged(Progress(repeats=200, repeated=beat)).name == "starting"

    def test_a_meter_that_stands_still_is_hung_or_never_began(self) -> None:
        meter = Quote(line=98, text="  7 96.0M    7 6840k    0     0  21k   0  1:02:03  0:05:06")
        percent = Counter(name="percent", value=7, total=100, unit="percent", line=98)
        moved = Progress(repeats=30, repeated=meter, main=percent, counters=(percent,))
        assert (judged(moved).name, judged(moved).topic) == ("hung", "download")
        never = moved.model_copy(update={"main": percent.model_copy(update={"value": 0.0})})
        assert judged(never).name == "looping"

    def test_a_download_that_drags_is_slow(self) -> None:
        verdict = judged(steps(), diagnosis=trouble("download.slow", fatal=False))
        assert (verdict.name, verdict.topic, verdict.provable) == ("slow", "download", False)

    @pytest.mark.parametrize(
        ("restarts", "reasons", "seconds", "provable"),
        [
            (3, (), 5000.0, False),
            (12, (), 5000.0, True),
            (12, (), 300.0, False),
            (3, ("the container restarted 4 times",), 5000.0, True),
            (3, ("CrashLoopBackOff, restart count 5",), 300.0, False),
        ],
    )
    def test_a_crash_loop_is_provable_when_the_cluster_counts_it_or_it_goes_on_for_long(
        self, restarts: int, reasons: tuple[str, ...], seconds: float, provable: bool
    ) -> None:
        again = Quote(line=98, text="worker exited with code 1, restarting in 5 s")
        progress = Progress(repeats=restarts, repeated=again)
        scene = Scene(phase="running", reasons=reasons)
        verdict = judged(progress, scene, trouble("code.exception"), seen_for(seconds, progress))
        assert (verdict.name, verdict.topic, verdict.provable) == ("failing", "crash-loop", provable)

    def test_workers_that_start_before_one_dies_are_no_crash_loop(self) -> None:
        starts = Progress(repeats=63, repeated=Quote(line=40, text="starting worker 63"))
        verdict = judged(starts, diagnosis=trouble("code.exception"), track=seen_for(5000.0, starts))
        assert (verdict.topic, verdict.provable) == ("fatal:code.exception", False)

    def test_the_same_exception_of_many_ranks_is_no_crash_loop(self) -> None:
        verdict = judged(Progress(), diagnosis=trouble("code.exception", times=8))
        assert (verdict.name, verdict.topic, verdict.provable) == ("failing", "fatal:code.exception", False)
