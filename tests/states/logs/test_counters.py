"""Which numbers of a line count work: the five shapes, and the numbers that only rise."""

from __future__ import annotations

import pytest

from states.logs.bars import Reading, label, scaled
from states.logs.counters import keyed, readings


def read(text: str) -> list[Reading]:
    return readings(text, keyed(text))


def counted(text: str) -> set[tuple[str, float, float | None]]:
    """(name, value, total) of what is recognised for sure; unnamed numbers must be seen rising first."""
    return {
        (one.name, one.value, one.total) for one in read(text) if one.kind not in ("word", "bare", "quota")
    }


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("Training:  30%|███▏      | 300/1000 [05:00<11:40,  1.00it/s]", ("bar:Training", 300, 1000)),
        (" 12%|#2        | 6/50 [01:00<07:20, 10.0s/it, loss=2.2]", ("bar/50", 6, 50)),
        ("warm start done 40%|████      | 2.5k/6.0k [00:10<00:14]", ("bar:warm start done", 2500, 6000)),
        ("1400it [02:20, 10.0it/s]", ("bar:", 1400, None)),
        ("Epoch: [4/90]  [ 110/2000]  eta: 0:03:01", ("epoch", 4, 90)),
        ("Epoch: [4/90]  [ 110/2000]  eta: 0:03:01", ("pair", 110, 2000)),
        ("step:1200/5000 train_loss:3.3", ("step", 1200, 5000)),
        (" iteration      700/   90000 | consumed samples:  7000 |", ("iteration", 700, 90000)),
        ("epoch 5/20, global step: 840", ("epoch", 5, 20)),
        ("-- Step 33 of 44 --", ("step", 33, 44)),
        ("02/03 04:05:06 - INFO - Iter(train) [  60/4000]  lr: 1e-3", ("iter", 60, 4000)),
        ("[19/77] Building CXX object a.o", ("pair", 19, 77)),
        ("第 4/12 轮", ("epoch", 4, 12)),
        ("第 4 轮, 共 12 轮", ("epoch", 4, 12)),
        ("训练步数: 90/300, 损失: 1.5", ("训练步数", 90, 300)),
        ("Epoch  17 Train Loss:  3.3", ("epoch", 17, None)),
        ("iter 55: loss 2.5, time 20ms", ("iter", 55, None)),
        ("(step=0000091) Train Loss: 0.02", ("step", 91, None)),
        ('{"current_steps": 81, "loss": 0.2}', ("current_steps", 81, None)),
        ("{'loss': 1.25, 'epoch': 0.61}", ("epoch", 0.61, None)),
        ("steps: 300 loss: 2.5", ("steps", 300, None)),
        ("  7%", ("percent", 7, 100)),
        ("progress: 61.5%", ("percent", 61.5, 100)),
        ("test_c.py::test_9 PASSED    [ 58%]", ("percent", 58, 100)),
        (
            " 41 80.0M   41 32.9M    0     0  1200k      0  0:01:06  0:00:27  0:00:39 1180k",
            ("percent", 41, 100),
        ),
        (" 2150K .......... .......... .......... ..........  7% 2.5M 12s", ("kib", 2150, None)),
        ("model.bin   61%[======>     ] 61.25M  3.1MB/s    eta 12s", ("percent", 61, 100)),
        ("peer closed (received 512 bytes, expected 4096)", ("bytes", 512, 4096)),
        ("Waiting for 5 more workers", ("left:workers", 5, None)),
    ],
)
def test_shapes(text: str, wanted: tuple[str, float, float | None]) -> None:
    assert wanted in counted(text)


@pytest.mark.parametrize(
    "text",
    [
        "fetch failed, attempt 3/9, trying again in 4 s",
        "Retrying (2/10) after timeout",
        "heartbeat 19",
        "waited 120 seconds for the lock",
        "Retry(total=3, connect=None)",
        "GPU memory: 30.5/80.0 GB",
        "resuming from step 4400",
        "loading checkpoint at iteration 900",
        "Saving checkpoint for step 900",
        "save_steps: 500, eval_steps: 250, warmup_steps: 100",
        "eval every 200 steps",
        "[02/03 04:05:06] started",
        "listening on 10.0.0.7:8080, pid 4411",
        "version 3/4 found",
        "accuracy: 45/50",
        "[launch.py:256:main] ok",
        "rank 3/8 joined",
        "elapsed 300 s",
        "epochs 1-100",
        "/data/2/3/file",
    ],
)
def test_numbers_that_rise_or_stand_and_are_no_work(text: str) -> None:
    assert counted(text) == set()
    assert not [one for one in read(text) if one.unit in ("step", "epoch", "episode")]


def test_goals_are_kept_apart_from_positions() -> None:
    goals = {(one.name, one.value) for one in read("Total optimization steps = 900") if one.kind == "quota"}
    assert goals == {("total_optimization_steps", 900.0)}
    assert [one.kind for one in read("Num Epochs = 3")] == ["quota"]
    assert read("Gradient Accumulation steps = 8") == []


def test_several_counters_of_one_line() -> None:
    line = "epoch 2, iteration 30/999 | global_step: 1029 | reduced_train_loss: 9.5 | consumed_samples: 5120"
    assert {("epoch", 2, None), ("iteration", 30, 999), ("global_step", 1029, None)} <= counted(line)


def test_glued_bars_are_all_read() -> None:
    line = "A:  10%|█ | 1/10 [00:01<00:09, 1.0it/s]A:  20%|██ | 2/10 [00:02<00:08, 1.0it/s]"
    assert [one.value for one in read(line) if one.kind == "bar"] == [1, 2]


def test_evaluation_and_loading_are_told_apart() -> None:
    assert [one.context for one in read("Evaluating:  50%|██  | 5/10 [00:05<00:05, 1.0it/s]")] == ["eval"]
    assert [one.context for one in read("Loading shards:  50%|██  | 5/10 [00:05<00:05, 1.0it/s]")] == ["load"]


def test_values_that_are_not_numbers_are_kept_for_the_series() -> None:
    found = {
        piece.key: piece.value for piece in keyed("loss nan, grad_norm=inf, lr: 1e-4, kl:np.float64(0.25)")
    }
    assert str(found["loss"]) == "nan"
    assert found["grad_norm"] == float("inf")
    assert found["lr"] == 1e-4
    assert found["kl"] == 0.25


def test_labels_and_suffixes() -> None:
    assert label("INFO loss 0.5 global step ") == "global step"
    assert label("Epoch 7: ") == "Epoch 7"
    assert label("12 34 ") == ""
    assert scaled("6.5", "k") == 6500
    assert scaled("2", "Ki") == 2048
    assert scaled("1,200", None) == 1200


@pytest.mark.parametrize(
    "piece", ["9", "1/", "1/2 ", "a=", "1%|", "a ", "step 1 ", "1 more ", "第", "1,", "loss: 1 "]
)
def test_hostile_lines_give_a_bounded_number_of_readings(piece: str) -> None:
    line = piece * (16_000 // len(piece))
    assert len(keyed(line)) <= 400
    assert len(read(line)) <= 1_300
