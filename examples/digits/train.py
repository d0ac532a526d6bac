"""Train a small network on the handwritten digits that ship with scikit-learn: a real run of a few seconds.

One hidden layer, plain numpy, momentum SGD. It prints a line per `--every` steps, writes checkpoints (the
last few only), goes on from the last one with `--resume`, and ends with `model.npz` and `metrics.json` in
`--out`. The same seed gives the same model, however often the run was interrupted. Flags can make it stall,
diverge or crash at a given step, to see how a watcher takes it.

Exit codes: 0 done, 1 crashed, 2 wrong flags, 143 stopped by SIGTERM with a checkpoint written first.

Never: write outside `--out`, or leave a half-written checkpoint behind.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits

Arrays = dict[str, NDArray[np.float64]]

HIDDEN = 64
BATCH = 64
TRAINED_ON = 1500
"""Images that train; the other 297 measure the accuracy."""
MOMENTUM = 0.9
STALL_LINE_S = 0.5
"""Seconds between the lines that a stalled run prints."""
STOPPED = 128 + signal.SIGTERM


class Data(NamedTuple):
    """x: images, shape (n, 64), 0..1. y: digits, shape (n,), 0..9."""

    x: NDArray[np.float64]
    y: NDArray[np.int64]
    x_test: NDArray[np.float64]
    y_test: NDArray[np.int64]


def load(seed: int) -> Data:
    """The 1,797 images of 8 x 8 pixels, shuffled by the seed and split into training and test."""
    bunch = load_digits()
    order = np.random.default_rng(seed).permutation(len(bunch.target))
    x, y = bunch.data[order] / 16.0, bunch.target[order].astype(np.int64)
    return Data(x[:TRAINED_ON], y[:TRAINED_ON], x[TRAINED_ON:], y[TRAINED_ON:])


def fresh(seed: int) -> Arrays:
    """The parameters and their velocities before the first step."""
    rng = np.random.default_rng([seed, 0])
    parameters = {
        "w1": rng.normal(0.0, math.sqrt(2.0 / 64), (64, HIDDEN)),
        "b1": np.zeros(HIDDEN),
        "w2": rng.normal(0.0, math.sqrt(2.0 / HIDDEN), (HIDDEN, 10)),
        "b2": np.zeros(10),
    }
    return parameters | {f"v_{name}": np.zeros_like(value) for name, value in parameters.items()}


def forward(net: Arrays, x: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The hidden layer (n, HIDDEN) and the probabilities of the ten digits (n, 10)."""
    hidden = np.maximum(x @ net["w1"] + net["b1"], 0.0)
    scores = hidden @ net["w2"] + net["b2"]
    scores = np.exp(scores - scores.max(axis=1, keepdims=True))
    return hidden, scores / scores.sum(axis=1, keepdims=True)


def train_step(net: Arrays, data: Data, step: int, seed: int, rate: float) -> float:
    """One step in place; returns the batch's mean cross-entropy.

    The batch depends on the seed and the step alone: a resumed run sees what an uninterrupted one would see.
    """
    batch = np.random.default_rng([seed, step]).integers(0, len(data.y), BATCH)
    x, y = data.x[batch], data.y[batch]
    hidden, probability = forward(net, x)
    rows = np.arange(BATCH)
    loss = float(-np.log(probability[rows, y] + 1e-12).mean())

    error = probability.copy()
    error[rows, y] -= 1.0
    error /= BATCH
    back = (error @ net["w2"].T) * (hidden > 0.0)
    gradients = {"w1": x.T @ back, "b1": back.sum(axis=0), "w2": hidden.T @ error, "b2": error.sum(axis=0)}
    for name, gradient in gradients.items():
        net[f"v_{name}"] = MOMENTUM * net[f"v_{name}"] - rate * gradient
        net[name] = net[name] + net[f"v_{name}"]
    return loss


def accuracy(net: Arrays, data: Data) -> float:
    """Share of the test images read right, 0..1."""
    _, probability = forward(net, data.x_test)
    return float((probability.argmax(axis=1) == data.y_test).mean())


class Checkpoints:
    """The last `keep` states of a run as `step-000100.npz` files in one folder."""

    def __init__(self, folder: Path, keep: int) -> None:
        self.folder = folder
        self.keep = keep
        folder.mkdir(parents=True, exist_ok=True)

    def files(self) -> list[Path]:
        """Oldest first."""
        return sorted(self.folder.glob("step-*.npz"))

    def save(self, net: Arrays, step: int, loss: float) -> None:
        """Write one and drop those that are too old."""
        progress = {"step": np.array(float(step)), "loss": np.array(loss)}
        write_arrays(self.folder / f"step-{step:06d}.npz", net | progress)
        for old in self.files()[: -self.keep]:
            old.unlink()

    def last(self) -> tuple[Arrays, int, float] | None:
        """The newest state, its step and its loss, or None."""
        files = self.files()
        if not files:
            return None
        with np.load(files[-1]) as saved:
            net = {name: saved[name] for name in saved.files}
        return net, int(net.pop("step")), float(net.pop("loss"))

    def clear(self) -> None:
        """A run that starts anew leaves no later step of an earlier one to resume from."""
        for file in self.files():
            file.unlink()


def write_arrays(path: Path, arrays: Arrays) -> None:
    """All or nothing: a run killed while it writes leaves the file as it was."""
    beside = path.with_suffix(".part")
    with beside.open("wb") as file:
        np.savez(file, allow_pickle=False, **arrays)
    os.replace(beside, path)


def say(text: str) -> None:
    """One line of the log, at once: a watcher reads it while the run goes on."""
    print(text, flush=True)


class Stop:
    """SIGTERM asks the run to end; the loop looks at it between two steps."""

    def __init__(self) -> None:
        self.asked = False
        signal.signal(signal.SIGTERM, self._ask)

    def _ask(self, _signal: int, _frame: FrameType | None) -> None:
        self.asked = True


def stall(seconds: float, stop: Stop) -> None:
    """Print without getting anywhere, as a data loader does that waits for slow storage."""
    for _ in range(max(1, round(seconds / STALL_LINE_S))):
        say("data: loading shard 3 of 4, retrying")
        time.sleep(min(STALL_LINE_S, seconds))
        if stop.asked:
            return


def misbehave(options: argparse.Namespace, net: Arrays, step: int, stop: Stop) -> None:
    """What the flags ask to go wrong at this step."""
    if step == options.stall_at:
        stall(options.stall_s, stop)
    if step == options.nan_at:
        net["w2"] = net["w2"] * np.nan  # as one overflowing gradient does: every later loss is NaN
    if step == options.crash_at:
        raise RuntimeError(f"data: shard 3 of 4 is unreadable (asked for by --crash-at {step})")


def train(options: argparse.Namespace, data: Data, checkpoints: Checkpoints, stop: Stop) -> int:
    """The loop from the last checkpoint (or the start) to the last step; returns the exit code."""
    found = checkpoints.last() if options.resume else None
    if found and found[1] >= options.steps:
        found = None  # that run is complete: the same command again is a new run, not an empty one
    net, done, loss = found or (fresh(options.seed), 0, math.nan)
    say(f"resuming from step {done}" if found else "starting at step 0")
    if not found:
        checkpoints.clear()
    for step in range(done + 1, options.steps + 1):
        misbehave(options, net, step, stop)
        loss = train_step(net, data, step, options.seed, options.rate)
        if step % options.every == 0 or step == options.steps:
            say(f"step {step}/{options.steps} loss {loss:.4f} acc {accuracy(net, data):.4f}")
        if step % options.checkpoint_every == 0 or step == options.steps or stop.asked:
            checkpoints.save(net, step, loss)
        if stop.asked:
            say(f"stopped by SIGTERM at step {step}, checkpoint written")
            return STOPPED
        time.sleep(options.step_delay_s)
    finish(options, net, data, loss)
    return 0


def finish(options: argparse.Namespace, net: Arrays, data: Data, loss: float) -> None:
    """The artifacts: the parameters without velocities, and what they reached (null: not a number)."""
    score = accuracy(net, data)
    write_arrays(options.out / "model.npz", {name: net[name] for name in ("w1", "b1", "w2", "b2")})
    metrics = {"steps": options.steps, "loss": loss if math.isfinite(loss) else None, "accuracy": score}
    (options.out / "metrics.json").write_text(json.dumps(metrics, indent=2) + "\n", encoding="utf-8")
    say(f"done: accuracy {score:.4f} on {len(data.y_test)} test images, model in {options.out / 'model.npz'}")


def positive(text: str) -> int:
    """An argument that counts something: 1 or more."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not 1 or more")
    return number


def options_from(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The command line; steps count from 1, durations are seconds."""
    parser = argparse.ArgumentParser(description="Train a small network on handwritten digits.")
    parser.add_argument("--out", type=Path, default=Path("runs/digits"), help="folder for what it writes")
    parser.add_argument("--steps", type=positive, default=400)
    parser.add_argument("--every", type=positive, default=20, help="steps between two lines of the log")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--rate", type=float, default=0.05, help="learning rate")
    parser.add_argument("--step-delay-s", type=float, default=0.0, help="pause after each step")
    parser.add_argument("--checkpoint-every", type=positive, default=50, help="steps between two checkpoints")
    parser.add_argument("--keep", type=positive, default=3, help="checkpoints that are kept")
    parser.add_argument(
        "--resume", action="store_true", help="go on from the last checkpoint of an unfinished run"
    )
    parser.add_argument("--stall-at", type=int, metavar="STEP", help="get nowhere for a while at this step")
    parser.add_argument("--stall-s", type=float, default=10.0, help="how long a stall lasts")
    parser.add_argument("--nan-at", type=int, metavar="STEP", help="the loss is NaN from this step on")
    parser.add_argument("--crash-at", type=int, metavar="STEP", help="end with an error at this step")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run; returns the exit code."""
    options = options_from(arguments)
    stop = Stop()
    data = load(options.seed)
    say(f"digits: {len(data.y)} images to train on, {len(data.y_test)} to test, {HIDDEN} hidden units")
    return train(options, data, Checkpoints(options.out / "checkpoints", options.keep), stop)


if __name__ == "__main__":
    sys.exit(main())
