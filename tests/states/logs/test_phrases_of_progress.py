"""Sentences: the end of the work, phases, overflow, throughput, repeats."""

from __future__ import annotations

import pytest

from states.logs.phrases_of_progress import finished, overflowed, phase, served, template, throughput


@pytest.mark.parametrize(
    "text",
    [
        "Training completed in 3h 4m",
        "INFO training is finished",
        "{'train_runtime': 812.5, 'train_loss': 0.5}",
        "`Trainer.fit` stopped: `max_steps=900` reached.",
        "reached max epochs",
        "Total training time: 2:03:04",
        "Job completed successfully",
        "All tasks done",
        "Done.",
        "Finished!!!",
        "===== 41 passed, 2 skipped in 3.25s =====",
        "Saved final model to out/model.zip",
        "Finished evaluation for the model",
        "worker exited with code 0",
        "训练完成",
        "所有任务已完成",
    ],
)
def test_the_end_of_the_work(text: str) -> None:
    assert finished(text)


@pytest.mark.parametrize(
    "text",
    [
        "epoch 3 done",
        "finished loading the data",
        "Finished task 0.0 in stage 14.0",
        "Epoch 4 training finished",
        "training not finished",
        "the run will be done when training is completed",
        "warm-up run done",
        "worker exited with code 1",
        "step 100/1000 loss 2.0",
        "训练尚未完成",
    ],
)
def test_the_end_of_a_part_or_none(text: str) -> None:
    assert not finished(text)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Saving model checkpoint to out/ckpt-9", "saving checkpoint"),
        ("Resuming training from out/ckpt-9", "resuming"),
        ("***** Running Evaluation *****", "evaluating"),
        ("***** Running training *****", "training"),
        ("Loading model weights took 2.5 GB", "loading model"),
        ("loading the training data", "loading data"),
        ("Running tokenizer on dataset", "tokenizing"),
        ("Compiling the train step", "compiling"),
        ("Fetching 7 files", "downloading"),
        ("Waiting for 3 more nodes to be ready", "waiting for peers"),
        ("Initializing distributed backend", "initializing"),
        ("Application startup complete.", "serving"),
        ("加载模型", "loading model"),
        ("step 5 loss 2.0", ""),
    ],
)
def test_phases(text: str, name: str) -> None:
    assert phase(text) == name


def test_overflow() -> None:
    assert overflowed("OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 8, reducing to 4")
    assert overflowed("Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to 8.0")
    assert overflowed("iteration 4/900 | number of skipped iterations:   1 | number of nan iterations: 0")
    assert not overflowed("iteration 4/900 | number of skipped iterations:   0 | number of nan iterations: 0")


def test_throughput_takes_the_best_figure_of_the_line() -> None:
    assert throughput("prompt throughput: 0.0 tokens/s, generation throughput: 65.5 tokens/s") == 65.5
    assert throughput("gen throughput (token/s): 412.5, #queue: 0") == 412.5
    assert throughput("step 4 loss 2.0") is None


def test_served() -> None:
    assert served('INFO: 10.0.0.7:40 - "POST /v1/chat HTTP/1.1" 200 OK')
    assert not served('INFO: 10.0.0.7:40 - "POST /v1/chat HTTP/1.1" 503 Busy')


def test_a_template_forgets_numbers_and_spinners() -> None:
    assert template("10:20:30 try 4 at 0x7f00 /") == template("10:20:31 try 5 at 0x8a11 \\")
    assert template("reading") != template("writing")
