"""What one piece of a log says: the main counter, totals, segments, losses, speed, loops, the end."""

from __future__ import annotations

import math
from collections.abc import Iterable

import pytest

from states.progress import LINES_MAX, measure
from states.reading import Line, Progress
from states.text import lines


def seen(*texts: str) -> Progress:
    return measure(lines("\n".join(texts)))


def rows(pattern: str, values: Iterable[object]) -> list[str]:
    return [pattern.format(value) for value in values]


def main_of(found: Progress) -> tuple[str, float, float | None] | None:
    return (found.main.name, found.main.value, found.main.total) if found.main else None


@pytest.mark.parametrize(
    ("text", "value", "total", "loss", "eta"),
    [
        ("Epoch 4/12\n 30/200 [==>......] - ETA: 25s - loss: 0.75 - acc: 0.5", 4, 12, 0.75, 25),
        (
            "08:00 - INFO - Epoch [5][60/900]\tlr: 2e-3, eta: 1:02:03, loss_box: 0.25, loss: 1.5",
            5,
            None,
            1.5,
            3723,
        ),
        (
            "08:00 - INFO - Epoch(train)  [5][ 60/900]  lr: 2e-3  eta: 1 day, 1:00:00  loss: 1.5",
            5,
            None,
            1.5,
            90_000,
        ),
        ("Epoch [2/6], Step [40/700], Loss: 0.625", 2, 6, 0.625, None),
        ("Train Epoch: 5 [1280/6000 (21%)]\tLoss: 0.875", 5, None, 0.875, None),
        ("loss = 2.5, step = 1400 (12.5 sec)", 1400, None, 2.5, None),
        ("completed step: 1400, seconds: 1.25, Tokens/s/device: 3100.5, loss: 2.5", 1400, None, 2.5, None),
        ("{'loss': 2.5, 'epoch': 0.25}\n 25%|██▌   | 300/1200 [05:00<15:00,  1.00s/it]", 300, 1200, 2.5, 900),
        ("ep 4 | it 1400 | loss 2.5", 1400, None, 2.5, None),
        ("[step: 140/700] [loss: 2.5] [eta: 0:30:00]", 140, 700, 2.5, 1800),
        ("| epoch   5 |   300/ 2100 batches | lr 4.5 | loss  5.25 | ppl 190.5", 5, None, 5.25, None),
        (
            "epoch: [4/60], global_step: 1400, loss: 2.5, ips: 99.5 samples/s, eta: 0:10:00",
            1400,
            None,
            2.5,
            600,
        ),
        ("训练步数: 140/700, 损失: 2.5, 剩余时间: 1小时30分", 140, 700, 2.5, 5400),
        (
            "Steps:  20%|█▉        | 1400/7000 [10:00<40:00, 2.33it/s, loss=0.5, lr=1e-5]",
            1400,
            7000,
            0.5,
            2400,
        ),
        ("1|140|Loss: 1.5:  20%|██        | 140/700 [05:00<20:00,  2.14s/it]", 140, 700, 1.5, 1200),
        ("Getting answers:  20%|██        | 140/700 [05:00<20:00,  2.14s/it]", 140, 700, None, 1200),
        ("step 1400/7000 | loss 2.5 | 1.5 s/it | ETA 2h 20m", 1400, 7000, 2.5, 8400),
    ],
)
def test_one_look_at_many_trainers(
    text: str, value: float, total: float | None, loss: float | None, eta: float | None
) -> None:
    found = seen(text)
    assert found.main is not None
    assert (found.main.value, found.main.total) == (value, total)
    assert found.loss == loss
    assert found.log_eta_s == eta


def test_nothing_in_nothing() -> None:
    assert measure([]) == Progress()
    assert seen("", "hello").main is None


# --- which counter is the main one -------------------------------------------------------------------------


def test_the_run_beats_its_inner_bar() -> None:
    bars = [
        f"Epoch {epoch}/6:  {step}0%|██ | {step}/10 [00:0{step}<00:05, 1.0it/s]"
        for epoch in (1, 2, 3)
        for step in range(1, 10)
    ]
    found = seen(*bars)
    assert main_of(found) == ("epoch", 3, 6)
    assert any(one.name.startswith("bar:") and one.value == 9 for one in found.counters)


def test_the_run_beats_evaluation_and_loading() -> None:
    training = [f" {step}%|██ | {step}/100 [00:{step:02d}<00:40, 1.0it/s]" for step in range(1, 50)]
    evaluation = [
        f"Evaluating:  {step}0%|██ | {step}/10 [00:0{step}<00:05, 2.0it/s]" for step in range(1, 10)
    ]
    shards = ["Loading checkpoint shards: 100%|██| 4/4 [00:04<00:00, 1.0it/s]"]
    found = seen(*shards, *training, *evaluation)
    assert main_of(found) == ("bar/100", 49, 100)


def test_evaluation_alone_is_the_run() -> None:
    found = seen(*rows("Inference done {0}/360. Total: 0.5 s / iter", range(10, 150, 10)))
    assert found.main is not None
    assert (found.main.value, found.main.total) == (140, 360)


def test_a_step_that_falls_at_every_epoch_is_inner() -> None:
    texts = [f"epoch: {epoch}, step: {step}, lr 0.1" for epoch in range(3) for step in (0, 100, 200)]
    assert main_of(seen(*texts)) == ("epoch", 2, None)


def test_a_step_that_runs_over_epochs_is_the_run() -> None:
    texts = [f"epoch: {step // 300}, step: {step}, lr 0.1" for step in range(0, 1000, 100)]
    assert main_of(seen(*texts)) == ("step", 900, None)


def test_an_epoch_that_stands_at_nought_does_not_hide_the_bar() -> None:
    texts = rows("Epoch 0:   1%|▏ | {0}/90000 [00:10<9:00:00, 2.0it/s]", range(700, 760, 3))
    found = seen(*texts)
    assert found.main is not None
    assert (found.main.value, found.main.total) == (757, 90_000)


def test_a_constant_number_is_not_the_run() -> None:
    found = seen(*rows("Epoch {0} | Batchsize: 32 | Steps: 8", range(40, 60)))
    assert main_of(found) == ("epoch", 59, None)


def test_totals_come_from_headers_and_goals_that_move_are_counters() -> None:
    found = seen("  Total optimization steps = 900", *rows("step {0} loss 2.0", range(10)))
    assert main_of(found) == ("step", 9, 900)
    table = rows("|    total_timesteps | {0}   |", (2048, 4096, 6144))
    assert main_of(seen(*table)) == ("total_timesteps", 6144, None)


def test_a_step_shares_the_total_of_a_bar_that_rounds() -> None:
    found = seen("Progress on: 6.42kit/90.0kit rate:1.5s/it remaining:30:00:00", "Step 6400: loss=0.5")
    assert found.main is not None
    assert (found.main.value, found.main.total) == (6400, 90_000)


def test_ranks_out_of_step_are_no_new_segment() -> None:
    texts = [f"[RANK {rank}] Epoch {epoch + rank % 2} done" for epoch in range(50, 60) for rank in range(4)]
    found = seen(*texts)
    assert main_of(found) == ("epoch", 60, None)
    assert found.segments == 0


def test_a_second_run_is_a_segment() -> None:
    found = seen(*rows("step {0}/900 loss 2.0", [*range(0, 60, 5), *range(0, 20, 5)]))
    assert main_of(found) == ("step", 15, 900)
    assert found.segments == 1


def test_only_unnamed_numbers_that_rise_evenly_count() -> None:
    found = seen(*rows("current widget {0} is made", range(7, 20)))
    assert main_of(found) == ("current_widget", 19, None)
    assert seen(*rows("process {0} started", (4411, 9021, 9077, 12001))).main is None
    assert seen("widget 7 is made").main is None


def test_a_bare_number_at_the_line_start() -> None:
    found = seen(*rows("   {0}  -1.25E+02  -0.5E-03", range(1, 9)))
    assert main_of(found) == ("bare", 8, None)


def test_things_left_count_down() -> None:
    found = seen(*rows("Waiting for {0} more workers to join", (3, 3, 2, 1)))
    assert main_of(found) == ("left:workers", 2, 3)


@pytest.mark.parametrize(
    "pattern",
    [
        "connection refused, attempt {0}, trying again in 3 s",
        "still waiting, {0} seconds elapsed",
        "heartbeat {0}",
        "retrying in {0} s (timeout)",
        "resuming from step {0}",
        "restart {0} of the worker",
    ],
)
def test_numbers_that_rise_without_work(pattern: str) -> None:
    found = seen(*rows(pattern, range(1, 30)))
    assert found.counters == ()
    assert found.repeats == 28


# --- losses ------------------------------------------------------------------------------------------------


def test_the_loss_series_stands_at_the_steps() -> None:
    found = seen("step 10 loss 3.0", "step 20 loss 2.5", "step 30 loss 2.75")
    assert [(point.step, point.value) for point in found.losses] == [(10, 3.0), (20, 2.5), (30, 2.75)]


def test_nan_is_counted_from_the_end() -> None:
    found = seen(*rows("iter {0}: loss 2.0", range(4)), *rows("iter {0}: loss nan", range(4, 10)))
    assert found.loss is not None
    assert math.isnan(found.loss)
    assert found.loss_nan_run == 6
    assert seen("iter 1: loss nan", "iter 2: loss 2.0").loss_nan_run == 0


def test_a_loss_that_vanishes_is_counted() -> None:
    with_loss = [f"iteration {step}/900 | lm loss: 7.{step} | grad norm: 1.5" for step in range(10, 16)]
    without = [f"iteration {step}/900 | grad norm: 1.5" for step in range(16, 20)]
    assert seen(*with_loss, *without).loss_missing_steps == 4
    assert seen(*with_loss).loss_missing_steps == 0
    assert seen(*without).loss_missing_steps == 0


def test_a_loss_printed_now_and_then_is_not_missing() -> None:
    texts = [f"step {step}" + (f" loss {step / 8}" if step % 10 == 0 else " ok") for step in range(28)]
    assert seen(*texts).loss_missing_steps == 0


def test_a_loss_that_rounds_to_the_same_is_no_loop() -> None:
    found = seen(*[f"{{'loss': 4.5, 'epoch': 0.{step}}}" for step in range(10, 60)])
    assert found.loss == 4.5
    assert found.repeats == 0


def test_a_changing_loss_alone_is_no_loop() -> None:
    assert seen(*rows("Epoch 3 - Batch loss: 0.{0}", range(11, 60))).repeats == 0


def test_overflow_in_warm_up_passes_and_at_every_step_adds_up() -> None:
    skipped = "OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 8.0, reducing to 4.0"
    warm = [skipped, "step 1 loss 3.0", "step 2 loss 3.0", "step 3 loss 2.5"]
    assert seen(*warm).overflow_run == 0
    fatal = [text for step in range(1, 9) for text in (skipped, f"step {step} loss 3.0")]
    assert seen(*fatal).overflow_run == 7
    assert seen(*[skipped] * 12).overflow_run == 12


def test_overflow_once_in_a_logging_interval_is_none() -> None:
    texts = [text for step in range(100, 900, 100) for text in ("overflow detected", f"step {step} loss 3.0")]
    assert seen(*texts).overflow_run == 0


# --- speed -------------------------------------------------------------------------------------------------


def test_rate_and_cadence_by_time_stamps() -> None:
    found = seen(*[f"2031-05-06 07:{minute:02d}:00 step {minute * 10}/900" for minute in range(8)])
    assert found.rate_per_s == pytest.approx(10 / 60)
    assert found.cadence_s == pytest.approx(60)


def test_rate_by_the_bar_itself() -> None:
    found = seen(*[f"{step}%|█ | {step}/100 [00:{step * 2:02d}<02:00, 2.00s/it]" for step in range(5, 20)])
    assert found.rate_per_s == pytest.approx(0.5)
    assert found.cadence_s == pytest.approx(2)


def test_rate_by_the_time_per_iteration() -> None:
    found = seen(*rows("iteration {0}/900 | elapsed time per iteration (ms): 4000.0 |", range(5, 9)))
    assert found.rate_per_s == pytest.approx(0.25)
    assert found.cadence_s == pytest.approx(4)


def test_samples_per_second_are_not_steps() -> None:
    assert seen(*rows("global_step: {0}, ips: 99.5 samples/s", range(5, 9))).rate_per_s is None


def test_the_eta_of_a_finished_side_bar_is_not_the_runs() -> None:
    found = seen("Map: 100%|██| 9/9 [00:01<00:00, 9.0it/s]", *rows("step {0} loss 2.0", range(10)))
    assert found.log_eta_s is None


# --- sentences, services, loops ----------------------------------------------------------------------------


def test_the_end_counts_only_if_nothing_went_on_after_it() -> None:
    steps = rows("step {0}/9 loss 2.0", range(10))
    ended = seen(*steps, "Training completed in 3 min")
    assert ended.finished is not None
    assert (ended.finished.line, ended.finished.text) == (11, "Training completed in 3 min")
    assert seen("Training completed in 3 min", *steps).finished is None


def test_a_phase_stands_until_the_counter_goes_on() -> None:
    steps = rows("step {0}/9 loss 2.0", range(5))
    saving = seen(*steps, "Saving model checkpoint to out")
    assert (saving.phase, saving.phase_line) == ("saving checkpoint", 6)
    assert seen("Loading model weights", *steps).phase == ""


def test_a_loading_bar_is_a_phase() -> None:
    assert seen("Loading checkpoint shards:  50%|██ | 2/4 [00:04<00:04, 2.0s/it]").phase == "loading model"


def test_a_service_is_known_by_its_throughput() -> None:
    found = seen(
        *rows("[07:08:{0}] Decode batch, #running: 2, gen throughput (token/s): 99.5", range(10, 30))
    )
    assert found.throughput_only
    assert found.main is None
    assert found.repeats == 0


def test_requests_that_succeed_outweigh_retries() -> None:
    retries = rows("Retrying request in 0.{0} seconds", range(10, 60))
    assert seen(*retries).repeats == 49
    assert seen(*retries, 'POST /v1/chat "HTTP/1.1 200 OK"').repeats == 0


def test_a_loop_is_counted_since_the_last_move() -> None:
    found = seen(*rows("step {0}/900", range(10)), *["fetch failed: reset by peer", "trying again"] * 20)
    assert found.repeats == 19
    assert found.repeated is not None
    assert found.repeated.line in (49, 50)
    assert seen(*["fetch failed"] * 20, *rows("step {0}/900", range(10))).repeats == 0


def test_the_same_step_again_and_again_is_a_loop() -> None:
    assert seen(*["step 70/900 loss 2.5 waiting"] * 30).repeats >= 28


def test_refreshes_of_one_line_are_read() -> None:
    bar = [f"{step}%|█ | {step}/100 [00:{step:02d}<01:00, 1.0it/s]" for step in range(40)]
    found = measure(lines("\r".join(bar)))
    assert main_of(found) == ("bar/100", 39, 100)
    assert found.main is not None
    assert found.main.line == 1


def test_only_the_end_of_a_long_piece_is_measured() -> None:
    early = [Line(1, "step 7/900")]
    blank = [Line(2 + at, "nothing here") for at in range(LINES_MAX)]
    assert measure([*early, *blank]).main is None


def test_what_is_kept_is_bounded() -> None:
    names = [
        f"bar{chr(97 + a)}{chr(97 + b)}: 10%|█ | 1/10 [00:01<00:09, 1.0it/s]"
        for a in range(9)
        for b in range(9)
    ]
    found = seen(*names, *rows("loss: 2.{0}", range(2_000)))
    assert len(found.counters) <= 24
    assert len(found.losses) <= 240


START_UP = ("Initializing the process group", "Loading dataset from mix", "Loading model weights")


def test_after_a_new_start_the_old_step_is_not_shown() -> None:
    steps = rows("step {}/900 loss 2.5", range(40, 45))
    found = seen(*steps, *START_UP)
    assert (found.main, found.anew) == (None, True)
    again = seen(*steps, *START_UP, "step 41/900 loss 2.5")
    assert (main_of(again), again.anew) == (("step", 41, 900), False)


def test_loading_for_an_evaluation_is_no_new_start() -> None:
    found = seen(*rows("step {}/900 loss 2.5", range(40, 45)), *START_UP[1:])
    assert (main_of(found), found.anew) == (("step", 44, 900), False)


def test_a_download_that_begins_from_nothing_again_is_counted() -> None:
    tries = ["w.bin:  0%|  | 0.00/9.0G [00:00<?, ?B/s]", "w.bin: 11%|█ | 1.0G/9.0G [00:40<05:20, 25MB/s]"]
    assert seen(*tries * 4).from_zero == 3
    others = ["v.bin:  0%|  | 0.00/9.0G [00:00<?, ?B/s]", "v.bin:100%|██| 9.0G/9.0G [05:00<00:00, 25MB/s]"]
    assert seen(*others * 2).from_zero == 0


def test_a_line_that_tells_the_time_ends_a_run_only_once_and_after_a_counter() -> None:
    steps = rows("epoch {} loss 2.5", range(1, 6))
    assert seen(*steps, "Execution time: 81.5 seconds").finished is not None
    assert seen("Execution time: 81.5 seconds").finished is None
    each = [line for step in steps for line in (step, "Training time: 16.2 s")]
    assert seen(*each).finished is None


def test_requests_that_succeed_are_the_work_of_a_service() -> None:
    assert seen(*['"POST /v1/chat HTTP/1.1" 200 OK'] * 3).throughput_only
    assert not seen(*['"POST /v1/chat HTTP/1.1" 503 Service Unavailable'] * 3).throughput_only
