"""The judgement as a whole: start-up, progress, looks in a row, and what holds for every verdict."""

from __future__ import annotations

from datetime import timedelta
from itertools import product

import pytest

from states.digest import digest
from states.progress import advance
from states.reading import Counter, Diagnosis, Digest, Point, Progress, Quote, Scene, Track, Verdict
from states.verdict import judge
from tests.states.judging import (
    OLD,
    POLICY,
    RUNNING,
    START,
    digested,
    judged,
    quiet_for,
    seen_for,
    steps,
    trouble,
)


class TestStartUp:
    """E1: waiting, pulling and loading are never failure."""

    @pytest.mark.parametrize("phase", ["pending", "starting"])
    def test_what_waits_is_starting_however_long_it_is_silent(self, phase: str) -> None:
        verdict = judged(Progress(), quiet_for(9 * 3600, phase))
        assert verdict.name == "starting"
        assert verdict.because == ("E1",)

    def test_a_pull_that_may_pass_is_starting(self) -> None:
        pull = trouble("image.unreachable", retryable=True)
        assert judged(Progress(), Scene(phase="starting"), pull).name == "starting"

    def test_what_can_never_start_is_failing_and_asked(self) -> None:
        verdict = judged(Progress(), Scene(phase="starting"), trouble("image.not_found"))
        assert (verdict.name, verdict.provable) == ("failing", False)
        assert verdict.topic == "start:image.not_found"

    def test_output_without_a_counter_is_getting_ready(self) -> None:
        assert judged(Progress(phase="loading model", phase_line=99)).name == "starting"

    def test_a_bar_of_the_preparation_is_not_the_work(self) -> None:
        bar = Counter(name="bar:Map (num_proc=#)", value=26, total=26, line=99)
        assert judged(Progress(main=bar, counters=(bar,))).name == "starting"

    def test_a_second_start_in_the_same_file_is_starting_again(self) -> None:
        progress = steps(phase="loading model", phase_line=190)
        assert judge(Track(), digested(progress, last=200), RUNNING, POLICY).name == "starting"


class TestProgress:
    def test_a_moving_counter_is_progress_and_the_figures_are_said(self) -> None:
        verdict = judged(steps(loss=2.5), track=Track(cadence_s=30.0, eta_s=18_000.0))
        assert verdict.name == "progressing"
        assert verdict.summary == "Progressing: step 400 of 1000 (40 %), loss 2.5, about 5 h 0 min left."

    def test_a_service_is_judged_by_its_throughput(self) -> None:
        assert judged(Progress(throughput_only=True)).name == "progressing"

    def test_an_evaluation_prints_no_counter_and_is_work(self) -> None:
        assert judged(Progress(phase="evaluating", phase_line=99), quiet_for(600)).name == "progressing"

    def test_trouble_that_the_run_outlived_is_progress(self) -> None:
        survived = trouble("network.timeout", line=40, fatal=False)
        verdict = judged(steps(), diagnosis=survived)
        assert (verdict.name, verdict.diagnosis.cause) == ("progressing", "none")

    def test_trouble_of_a_running_job_is_believed_at_the_second_look(self) -> None:
        fatal = trouble("memory.gpu")
        assert judged(steps(), diagnosis=fatal, track=seen_for(10.0, steps())).name == "progressing"
        assert (
            judged(steps(), diagnosis=fatal, track=seen_for(POLICY.second_look_s, steps())).name == "failing"
        )

    def test_a_warning_with_ordinary_output_behind_it_is_no_death(self) -> None:
        quote = Quote(line=20, text="WARNING a library is not installed, falling back")
        warned = trouble("env.missing_module").model_copy(update={"evidence": (quote,)})
        assert judged(steps(), Scene(phase="unknown"), warned).name == "progressing"
        late = quote.model_copy(update={"line": 95})
        ended = warned.model_copy(update={"evidence": (late,)})
        assert judged(steps(), Scene(phase="unknown"), ended).name == "failed"

    def test_nothing_at_all_is_unsettled_and_says_what_would_help(self) -> None:
        verdict = judge(Track(), Digest(), Scene(phase="unknown"), POLICY)
        assert (verdict.name, verdict.settled, verdict.provable) == ("unsettled", False, False)
        assert verdict.wants == ("head", "events", "model")


class TestLooksInARow:
    """The same functions as a watch uses them: text in, track forward, verdict out."""

    @staticmethod
    def log(upto: int, tail: str = "") -> str:
        return "".join(f"step {at}/500 loss {3 - at / 500:.3f}\n" for at in range(0, upto, 10)) + tail

    def watch(self, texts: list[str], every_s: float) -> Verdict:
        track, verdict, at = Track(), None, START
        for text in texts:
            seen = digest(text, before=track)
            track = advance(track, seen.progress, at, fresh=seen.fresh, fingerprint=seen.fingerprint)
            silence_s = (at - track.output_at).total_seconds() if track.output_at else None
            verdict = judge(track, seen, Scene(phase="running", silence_s=silence_s), POLICY)
            at += timedelta(seconds=every_s)
        assert verdict is not None
        return verdict

    def test_steps_that_come_are_progress_at_every_look(self) -> None:
        assert self.watch([self.log(upto) for upto in range(50, 450, 50)], 300.0).name == "progressing"

    def test_steps_that_stop_coming_are_hung_after_an_hour_and_not_before(self) -> None:
        moving = [self.log(upto) for upto in range(50, 250, 50)]
        assert not self.watch(moving + [self.log(200)] * 5, 300.0).provable
        verdict = self.watch(moving + [self.log(200)] * 40, 300.0)
        assert (verdict.name, verdict.provable) == ("hung", True)

    def test_a_job_that_saves_for_long_is_asked_about_not_stopped(self) -> None:
        saving = self.log(200, "Saving checkpoint to out/model-200\n")
        verdict = self.watch([self.log(150), self.log(200), *[saving] * 40], 300.0)
        assert (verdict.name, verdict.provable) == ("ambiguous", False)


MAP_BAR = Counter(name="bar:Map", value=26.0, total=26.0, line=99)
RETRY = Quote(line=98, text="failed, retrying")
EVERY_PROGRESS = (
    Progress(),
    steps(),
    steps(cadence_s=None),
    steps(cadence_s=0.0),
    steps(loss_nan_run=30),
    steps(overflow_run=30),
    steps(losses=tuple(Point(step=at, value=at**3) for at in range(9)), loss_missing_steps=3),
    steps(finished=Quote(line=99, text="done")),
    steps(phase="saving checkpoint", phase_line=99),
    Progress(main=MAP_BAR, counters=(MAP_BAR,)),
    Progress(throughput_only=True),
    Progress(repeats=90, repeated=RETRY),
    Progress(repeats=90, repeated=Quote(line=98, text="3.1M of 96M, 0 B/s")),
    Progress(phase="evaluating", phase_line=99),
)
EVERY_PHASE = "pending starting running succeeded failed stopped preempted lost gone unknown".split()
EVERY_DIAGNOSIS = (
    Diagnosis(),
    trouble("code.exception", times=4),
    trouble("network.timeout", fatal=False),
    trouble("crash.loop", times=4),
    trouble("download.slow", fatal=False),
    trouble("memory.gpu", line=10),
)
EVERY_SCENE = tuple(
    Scene(phase=phase, silence_s=silence_s, exit_code=code, suspended=suspended)
    for phase in EVERY_PHASE
    for silence_s in (None, 0.0, 1e9)
    for code in (None, 0, 137)
    for suspended in (False, True)
)


def test_a_verdict_always_comes_and_proof_needs_a_job_that_runs() -> None:
    for progress, diagnosis, scene in product(EVERY_PROGRESS, EVERY_DIAGNOSIS, EVERY_SCENE):
        for track in (Track(cadence_s=progress.cadence_s), OLD):
            verdict = judged(progress, scene, diagnosis, track)
            assert verdict.because
            assert verdict.summary
            assert verdict.settled == (verdict.name != "unsettled")
            assert verdict.settled or verdict.wants
            if verdict.provable:
                assert scene.phase == "running"
                assert not scene.suspended
                assert verdict.name in ("hung", "looping", "failing")
                assert verdict.topic in ("hung", "nan", "crash-loop", f"loop:{diagnosis.cause}")
