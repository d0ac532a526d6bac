"""The goals of a run (E8): met only by what a look showed, or by time that the job really ran."""

from __future__ import annotations

from typing import Any

import pytest

from states.conditions import (
    budget_ends_at,
    files_to_look_for,
    goals_of,
    met_goal,
    metrics_to_look_for,
    ran_before_s,
    spent_goal,
    texts_to_look_for,
)
from states.events import LogsRead
from states.goals import StopCondition
from states.job import Job, State
from states.observation import Phase
from states.orders import Budgets, Orders, Standing
from states.reading import Counter, Digest, Point, Progress, Quote
from tests.states import builders as b


def a_look(job: Job, digest: Digest, **more: Any) -> LogsRead:
    return LogsRead(at=b.after(90), name=job.attempt.name, digest=digest, **more)


def looked(condition: dict[str, Any], digest: Digest, **more: Any) -> StopCondition | None:
    """A run with this condition, and a look at its log."""
    job: Job = b.in_running(request={"stop_when": (condition,)})
    met = met_goal(job, a_look(job, digest, **more))
    return met.condition if met else None


@pytest.mark.parametrize(
    ("condition", "metrics", "met"),
    [
        ({"metric": "acc", "above": 0.9}, {"acc": 0.91}, True),
        ({"metric": "acc", "above": 0.9}, {"acc": 0.9}, False),
        ({"metric": "acc", "above": 0.9}, {"f1": 0.99}, False),
        ({"metric": "val_loss", "below": 0.1}, {"val_loss": 0.05}, True),
        ({"metric": "val_loss", "below": 0.1}, {"val_loss": float("nan")}, False),
        ({"metric": "val_loss", "above": 9.0}, {"val_loss": float("inf")}, True),
    ],
)
def test_a_metric_crosses_its_bound(condition: dict[str, Any], metrics: dict[str, float], met: bool) -> None:
    found = looked(condition, Digest(progress=Progress(metrics=metrics)))
    assert (found is not None) is met


def test_a_metric_that_is_a_loss_of_its_own_name_is_found_by_its_series() -> None:
    """`val_loss` is no plain metric of a digest: it comes with the values that the look was asked for."""
    series = {"val_loss": (Point(step=1, value=0.4), Point(step=2, value=0.05))}
    assert looked({"metric": "val_loss", "below": 0.1}, Digest(), series=series) is not None
    assert looked({"metric": "val_loss", "below": 0.01}, Digest(), series=series) is None


def test_the_loss_has_a_name_of_its_own() -> None:
    assert looked({"metric": "loss", "below": 1.0}, Digest(progress=Progress(loss=0.5))) is not None


def test_a_step_is_reached_by_the_main_counter() -> None:
    assert looked({"step": 300.0}, Digest()) is not None  # the job stands at 300
    assert looked({"step": 301.0}, Digest()) is None


def test_a_text_is_met_only_by_the_line_that_was_found() -> None:
    line = Digest(found=(Quote(line=3, text="early stopping: no gain for 5 epochs"),))
    assert looked({"line": "early stopping"}, line) is not None
    assert looked({"line": "EARLY STOPPING"}, line) is None


def test_a_file_is_met_even_where_there_is_no_log() -> None:
    """A run that prints nothing still leaves its file: the row of the goal stands before that of the log."""
    goal = {"file": "done.flag"}
    assert looked(goal, Digest(), there=("done.flag",), readable=False) is not None
    assert looked(goal, Digest(), there=(), readable=False) is None
    job = b.in_running(request={"stop_when": (goal,)})
    step = b.take(job, a_look(job, Digest(), there=("done.flag",), readable=False))
    assert step.job.state is State.stopping
    assert step.rule == "E8"
    assert "done.flag" in step.said


def test_running_time_is_the_timers_matter() -> None:
    assert looked({"wall_s": 1.0}, b.moving()) is None


def test_what_a_look_must_bring_is_what_the_goals_need() -> None:
    goals = (
        {"line": "enough"},
        {"step": 5.0},
        {"line": "done"},
        {"file": "out/flag"},
        {"metric": "acc", "above": 1},
        {"metric": "acc", "plateau_steps": 9, "better": "higher"},
    )
    job = b.in_running(request={"stop_when": goals})
    assert texts_to_look_for(job) == ("enough", "done")
    assert files_to_look_for(job) == {"out/flag": "ws/out/flag"}
    assert metrics_to_look_for(job) == ("acc",)


# --- a plateau ---------------------------------------------------------------------------------------------

PLATEAU = {"metric": "loss", "plateau_steps": 1000, "min_delta": 0.1}


def losses(*points: tuple[float, float]) -> Digest:
    """A look at (step, loss) lines."""
    main = Counter(name="step", value=points[-1][0], unit="step", line=len(points))
    told = tuple(Point(step=step, value=value) for step, value in points)
    progress = Progress(main=main, counters=(main,), losses=told, loss=told[-1].value)
    return Digest(progress=progress, fresh=True, fingerprint=str(points))


def after_looks(*digests: Digest, goal: dict[str, Any] = PLATEAU) -> Job:
    """A running job without a log so far, after these looks; the same event may stop it at any of them."""
    job = b.led(b.in_queued(request={"stop_when": (goal,)}), b.seen(Phase.running), start_s=20)
    return b.led(job, *map(b.log, digests), start_s=60, every_s=60)


def test_a_loss_that_no_longer_falls_enough_is_a_plateau_and_the_report_names_it() -> None:
    going = after_looks(losses((0, 3.0), (500, 2.0)), losses((1000, 1.95), (1400, 1.92)))
    assert going.state is State.running
    assert going.track.bests["loss:1000:0.1:lower"].step == 500
    step = b.take(going, b.log(losses((1500, 1.94)))(going, b.after(300)))
    assert step.job.state is State.stopping
    assert step.job.stop is not None
    assert (
        step.job.stop.reason == "its own stop condition is met: loss no better by more than 0.1 in 1000 steps"
    )


def test_a_gain_starts_the_count_again() -> None:
    job = after_looks(losses((0, 3.0), (900, 2.95)), losses((1000, 2.0), (1900, 1.95)))
    assert job.state is State.running


def test_looks_overlap_and_what_was_seen_counts_once() -> None:
    """The tail of the look before comes again: its old points neither gain nor make the counter fall back."""
    job = after_looks(losses((0, 3.0), (400, 2.0)), losses((0, 3.0), (400, 2.0), (600, 2.1)))
    best = job.track.bests["loss:1000:0.1:lower"]
    assert (best.value, best.step, best.at_step) == (2.0, 400, 600)


def test_a_restart_from_an_earlier_step_counts_its_steps_anew() -> None:
    """Preempted at 1200 and resumed at 500: the repeated steps are no plateau; the best value is remembered."""
    job = after_looks(losses((300, 2.0), (1200, 2.1)), losses((500, 2.2), (1100, 2.15)))
    assert job.state is State.running
    best = job.track.bests["loss:1000:0.1:lower"]
    assert (best.value, best.step) == (2.0, 500)
    assert b.led(job, b.log(losses((1500, 2.1))), start_s=400).state is State.stopping


def test_steps_without_a_value_of_the_metric_do_not_count() -> None:
    """An accuracy that is printed every 5000 steps is not on a plateau of 2000 between two of its values."""
    goal = {"metric": "acc", "plateau_steps": 2000, "better": "higher"}
    job = after_looks(losses((0, 3.0), (10, 3.0)), goal=goal)
    acc = a_look(job, losses((5000, 1.0)), series={"acc": (Point(step=5000, value=0.7),)})
    job = b.take(job, acc).job
    job = b.led(job, b.log(losses((9999, 0.5))), start_s=200)
    assert job.state is State.running
    worse = a_look(job, losses((10_000, 0.5)), series={"acc": (Point(step=10_000, value=0.69),)})
    assert b.take(job, worse.model_copy(update={"at": b.after(300)})).job.state is State.stopping


def test_a_loss_that_is_no_number_is_neither_gain_nor_step() -> None:
    job = after_looks(losses((0, 3.0), (500, 2.0)), losses((900, 2.0), (1600, float("nan"))))
    assert job.track.bests["loss:1000:0.1:lower"].at_step == 900


# --- budgets -----------------------------------------------------------------------------------------------


def running_with(*goals: dict[str, Any], **request: Any) -> Job:
    return b.led(b.in_queued(request={"stop_when": goals, **request}), b.seen(Phase.running), start_s=20)


def test_gpu_hours_are_all_gpus_times_the_hours_of_running() -> None:
    job = running_with({"gpu_hours": 16}, gpu=4, replicas=2)
    assert budget_ends_at(job) == b.after(20 + 2 * 3600)
    assert spent_goal(job, b.after(20 + 2 * 3600 - 1)) is None
    late = b.take(job, b.woken()(job, b.after(20 + 2 * 3600)))
    assert late.job.state is State.stopping
    assert "16 GPU-hours used" in late.said


def test_a_budget_counts_what_ran_before_a_requeue() -> None:
    """The cluster put it back after 600 s of running: 400 s of 1000 are left."""
    job = running_with({"wall_s": 1000})
    back = b.led(job, b.seen(Phase.pending, attempt=1), start_s=620)
    assert budget_ends_at(back) is None
    again = b.led(back, b.seen(Phase.running, attempt=1), start_s=5000)
    assert ran_before_s(again) == 600
    assert budget_ends_at(again) == b.after(5400)


def test_a_budget_counts_earlier_attempts() -> None:
    job = running_with({"wall_s": 1000})
    gone = b.led(job, b.seen(Phase.preempted), b.seen(Phase.preempted), start_s=320, every_s=120)
    assert len(gone.attempts) == 2
    again = b.led(gone, b.submitted("42"), b.seen(Phase.running), start_s=900)
    assert budget_ends_at(again) == b.after(901 + 1000 - 420)


# --- standing orders ---------------------------------------------------------------------------------------

ORDERED = Standing(
    person=Orders(stop_when=(StopCondition(wall_s=500),), budgets=Budgets(gpu_hours=3)),
    site=Orders(stop_when=(StopCondition(wall_s=900),)),
)


def words(job: Job) -> list[str]:
    return [f"{goal.condition.in_words()}/{goal.by_order}" for goal in goals_of(job)]


def test_standing_goals_stand_behind_the_requests_own_and_say_whose_they_are() -> None:
    job = b.in_running(request={"stop_when": ({"step": 900},)}, orders=ORDERED)
    assert words(job) == [
        "step 900 reached/",
        "running for 500 s/your standing order",
        "running for 900 s/your site's standing order",
        "3 GPU-hours used/your standing order",
    ]
    stopped = b.take(job, b.woken()(job, b.after(520)))
    assert stopped.job.stop is not None
    assert stopped.job.stop.reason == "the stop condition of your standing order is met: running for 500 s"


def test_a_budget_of_the_request_goes_before_a_standing_one_of_its_kind() -> None:
    job = b.in_running(request={"stop_when": ({"wall_s": 9000},)}, orders=ORDERED)
    assert words(job) == ["running for 9000 s/", "3 GPU-hours used/your standing order"]


def test_a_run_without_gpus_has_no_budget_of_gpu_hours() -> None:
    job = b.in_running(request={"gpu": 0}, orders=ORDERED)
    assert not any("GPU" in line for line in words(job))


def test_a_standing_order_does_not_end_a_job_that_was_handed_over_to_be_watched() -> None:
    """A10: only with leave, given when it was handed over."""
    assert words(b.taken_over(orders=ORDERED)) == []
    assert words(b.taken_over(orders=ORDERED, may_stop=True)) != []
