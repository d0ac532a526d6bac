"""The judgement: what is provable, what is asked, what is normal."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import product

import pytest

from states.digest import digest
from states.policy import Policy
from states.progress import advance
from states.reading import Counter, Diagnosis, Digest, Point, Progress, Quote, Scene, Sign, Track, Verdict
from states.verdict import judge

START = datetime(2031, 4, 5, 6, 0, tzinfo=UTC)
POLICY = Policy()
RUNNING = Scene(phase="running")
OLD = Track(
    milestone_at=START, output_at=START, looked_at=START + timedelta(days=3), looks=90, still_looks=80
)
STEP = Counter(name="step", value=400.0, total=1000.0, unit="step", line=90)
FULL_BAR = Counter(name="bar:Epoch #", value=50.0, total=50.0, line=89)


def steps(**known: object) -> Progress:
    """A run that counts steps, one every 30 s."""
    return Progress(**({"main": STEP, "counters": (STEP,), "cadence_s": 30.0} | known))


def digested(progress: Progress, diagnosis: Diagnosis | None = None, last: int = 100) -> Digest:
    return Digest(
        progress=progress,
        diagnosis=diagnosis or Diagnosis(),
        fresh=True,
        lines_read=last,
        excerpt=(Quote(line=last, text="the last line"),),
    )


def judged(
    progress: Progress,
    scene: Scene = RUNNING,
    diagnosis: Diagnosis | None = None,
    track: Track | None = None,
    policy: Policy = POLICY,
) -> Verdict:
    return judge(track or seen_for(600.0, progress), digested(progress, diagnosis), scene, policy)


def seen_for(seconds: float, progress: Progress) -> Track:
    """A job watched for so long, with output to the end and no milestone."""
    now = START + timedelta(seconds=seconds)
    return Track(started_at=START, looked_at=now, output_at=now, looks=3, cadence_s=progress.cadence_s)


def quiet_for(seconds: float, phase: str = "running", **known: object) -> Scene:
    return Scene(phase=phase, silence_s=seconds, **known)


def trouble(cause: str, *, line: int = 95, fatal: bool = True, times: int = 1, **known: object) -> Diagnosis:
    quote = Quote(line=line, text=f"something about {cause}")
    sign = Sign(entry=cause, cause=cause, role="root", owner="user", retryable=False, evidence=quote)
    return Diagnosis(cause=cause, evidence=(quote,), signs=(sign,) * times, fatal=fatal, **known)


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


class TestSilence:
    """E6: against the cadence of the phase, and an hour when regular output is due."""

    def test_an_hour_and_many_cadences_of_silence_is_hung_and_provable(self) -> None:
        verdict = judged(steps(), quiet_for(POLICY.hung_s))
        assert (verdict.name, verdict.provable, verdict.because, verdict.topic) == (
            "hung",
            True,
            ("E6",),
            "hung",
        )

    @pytest.mark.parametrize(
        ("progress", "scene", "name"),
        [
            (steps(cadence_s=1200.0), quiet_for(1.5 * 3600.0), "progressing"),
            (steps(cadence_s=1200.0), quiet_for(6 * 3600.0), "slow"),
            (steps(), quiet_for(POLICY.hung_s, "unknown"), "hung"),
            (steps(phase="saving checkpoint", phase_line=95), quiet_for(2 * 3600.0), "ambiguous"),
            (steps(phase="compiling", phase_line=95), quiet_for(1800.0), "progressing"),
            (Progress(throughput_only=True, cadence_s=10.0), quiet_for(2 * 3600.0), "ambiguous"),
            (Progress(phase="initializing"), quiet_for(5400.0), "ambiguous"),
            (steps(finished=Quote(line=99, text="Training done")), quiet_for(5400.0), "ambiguous"),
            (steps(main=STEP.model_copy(update={"value": 1000.0})), quiet_for(5400.0), "ambiguous"),
            (steps(), quiet_for(9 * 3600.0, suspended=True), "progressing"),
            (steps(counters=(STEP, FULL_BAR)), quiet_for(2 * 3600.0), "hung"),
            (steps(), quiet_for(1000.0), "hung"),
            (steps(), quiet_for(500.0), "progressing"),
            (steps(cadence_s=100.0), quiet_for(1000.0), "slow"),
        ],
    )
    def test_other_silence_is_not_provable(self, progress: Progress, scene: Scene, name: str) -> None:
        verdict = judged(progress, scene)
        assert (verdict.name, verdict.provable) == (name, False)

    def test_the_calmer_of_two_cadences_counts(self) -> None:
        verdict = judged(steps(cadence_s=1.0), quiet_for(4000.0), track=Track(cadence_s=600.0))
        assert verdict.name == "slow"

    def test_silence_is_taken_from_the_track_where_nobody_tells(self) -> None:
        track = Track(cadence_s=30.0, looked_at=START + timedelta(hours=2), output_at=START)
        assert judged(steps(), track=track).provable

    def test_output_without_a_milestone_for_long_is_asked_about(self) -> None:
        later = START + timedelta(hours=2)
        track = Track(cadence_s=30.0, milestone_at=START, looked_at=later, output_at=later, still_looks=4)
        verdict = judged(steps(), track=track)
        assert (verdict.name, verdict.topic, verdict.provable) == ("ambiguous", "stuck", False)


class TestDivergence:
    """E7: NaN that stays is provable; overflow in warm-up and a spike that recovers are not even failing."""

    def test_nan_at_many_steps_is_provably_wasted(self) -> None:
        finite = (Point(step=1, value=2.5), Point(step=2, value=float("nan")))
        verdict = judged(steps(loss=float("nan"), loss_nan_run=POLICY.nan_steps, losses=finite))
        assert (verdict.name, verdict.provable, verdict.topic) == ("failing", True, "nan")

    @pytest.mark.parametrize(("times", "provable"), [(1, False), (3, False), (4, True)])
    def test_a_loss_that_never_was_a_number_takes_longer_to_prove(self, times: int, provable: bool) -> None:
        assert judged(steps(loss_nan_run=times * POLICY.nan_steps)).provable is provable

    @pytest.mark.parametrize(
        ("run", "name"), [(0, "progressing"), (1, "progressing"), (2, "ambiguous"), (19, "failing")]
    )
    def test_fewer_are_said_but_not_stopped(self, run: int, name: str) -> None:
        verdict = judged(steps(loss_nan_run=run))
        assert (verdict.name, verdict.provable) == (name, False)

    def test_overflow_is_normal_in_warm_up_and_failing_late(self) -> None:
        early = STEP.model_copy(update={"value": 12.0})
        assert judged(steps(main=early, overflow_run=11)).name == "progressing"
        verdict = judged(steps(overflow_run=11))
        assert (verdict.name, verdict.provable) == ("failing", False)

    @pytest.mark.parametrize(
        ("values", "missing", "name"),
        [
            ((2.1, 2.0, 2.2, 2.1, 2.0, 2.1), 0, "progressing"),
            ((2.1, 2.0, 2.2, 6.5, 6.8, 6.6), 0, "ambiguous"),
            ((2.1, 2.0, 2.2, 6.5, 6.8, 6.6), 2, "failing"),
            ((2.1, 2.0, 6.5, 4.0, 2.3, 2.2), 0, "progressing"),
            ((0.01, 0.02, 0.01, 0.09, 0.08, 0.09), 0, "progressing"),
            ((0.0,) * 6, 0, "ambiguous"),
            ((4.2,) * 6, 0, "progressing"),
        ],
    )
    def test_a_loss_that_runs_away_is_asked_about(
        self, values: tuple[float, ...], missing: int, name: str
    ) -> None:
        points = tuple(Point(step=at, value=value) for at, value in enumerate(values))
        verdict = judged(steps(losses=points, loss_missing_steps=missing))
        assert (verdict.name, verdict.provable) == (name, False)


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


class TestTheEnd:
    """F1, F4: record, exit code, outputs and log together."""

    done = steps(finished=Quote(line=99, text="Training complete"))

    @pytest.mark.parametrize(
        ("phase", "code", "outputs", "diagnosis", "progress", "name"),
        [
            ("succeeded", 0, None, None, steps(), "succeeded"),
            ("succeeded", 0, True, trouble("code.exception"), steps(), "succeeded"),
            ("succeeded", 0, None, trouble("code.exception"), steps(), "ambiguous"),
            ("succeeded", 0, False, None, steps(), "ambiguous"),
            ("succeeded", 0, False, trouble("storage.full"), steps(), "failed"),
            ("succeeded", 0, None, trouble("comm.error", line=50), done, "succeeded"),
            ("unknown", 0, None, None, steps(), "succeeded"),
            ("unknown", 1, None, trouble("code.exception"), steps(), "failed"),
            ("failed", 1, None, trouble("memory.gpu"), steps(), "failed"),
            ("failed", 1, True, trouble("comm.error", line=50), done, "ambiguous"),
            ("stopped", None, None, None, steps(), "failed"),
            ("gone", None, None, None, steps(), "ambiguous"),
        ],
    )
    def test_what_ended(
        self,
        phase: str,
        code: int | None,
        outputs: bool | None,
        diagnosis: Diagnosis | None,
        progress: Progress,
        name: str,
    ) -> None:
        verdict = judged(progress, Scene(phase=phase, exit_code=code, outputs_ok=outputs), diagnosis)
        assert (verdict.name, verdict.provable) == (name, False)

    @pytest.mark.parametrize(
        ("phase", "cause"), [("preempted", "scheduling.preempted"), ("lost", "node.lost")]
    )
    def test_the_record_names_the_cause_where_the_log_does_not(self, phase: str, cause: str) -> None:
        assert judged(steps(), Scene(phase=phase)).diagnosis.cause == cause

    def test_an_exit_code_beside_a_live_phase_is_of_an_earlier_start(self) -> None:
        assert judged(steps(), Scene(phase="running", exit_code=1)).name == "progressing"

    def test_a_process_that_died_while_the_job_runs_is_failing_until_silence_proves_it(self) -> None:
        fatal = trouble("memory.gpu")
        assert judged(steps(), diagnosis=fatal).name == "failing"
        assert not judged(steps(), diagnosis=fatal).provable
        assert judged(steps(), Scene(phase="unknown"), fatal).name == "failed"

    def test_the_text_says_it_is_complete(self) -> None:
        assert judged(self.done).name == "succeeded"
        evaluating = self.done.model_copy(update={"phase": "evaluating", "phase_line": 100})
        assert judged(evaluating).name == "progressing"

    def test_full_counters_end_a_file_but_not_a_running_job(self) -> None:
        full = STEP.model_copy(update={"value": 1000.0})
        progress = steps(main=full, counters=(full,))
        assert judged(progress, Scene(phase="unknown")).name == "succeeded"
        assert judged(progress).name == "progressing"


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
