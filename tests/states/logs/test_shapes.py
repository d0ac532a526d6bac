"""Shapes: what is kept per shape must be true of every line of that shape, whatever its digits."""

from __future__ import annotations

import re

import pytest

from states.logs.counters import keyed, readings
from states.logs.losses import loss_name
from states.logs.phrases_of_progress import finished, overflowed, phase, throughput
from states.logs.pulse import pulse
from states.logs.shapes import SHAPE_CHARS_MAX, has_digit, per_shape, shape
from states.logs.stamps import stamp


def test_every_digit_becomes_0_and_every_position_stays() -> None:
    assert shape("step 12/340 ▎ 第3轮") == "step 00/000 ▎ 第0轮"


@pytest.mark.parametrize(("text", "digit"), [("a1", True), ("abc", False), ("第٣轮", True), ("", False)])
def test_digits_of_any_script_count(text: str, digit: bool) -> None:
    assert has_digit(text) is digit


def test_a_shape_is_worked_out_once_unless_it_is_long() -> None:
    asked: list[str] = []

    @per_shape
    def length(of: str) -> int:
        asked.append(of)
        return len(of)

    long = "0" * (SHAPE_CHARS_MAX + 1)
    assert [length("step 0"), length("step 0"), length(long), length(long)] == [6, 6, len(long), len(long)]
    assert asked == ["step 0", long, long]


LINES = [
    "step {}/{} loss {}.5 eta 0:{}0:0{}",
    "Epoch {}:  {}%|██        | {}/{} [0{}:00<00:10, 2.0it/s]",
    "worker exited with code {}",
    "number of skipped iterations: {} | loss: {}",
    "copied {}/{} 0{}:0{}:00 of it",
    "head{} loss is {}.25, f{} {}/{}",
    "2031-0{}-0{} 1{}:0{}:00 INFO part{}.bin {}/9",
    "throughput {} tokens/s, {} samples/s",
]


@pytest.mark.parametrize("line", LINES)
def test_lines_of_one_shape_are_read_each_by_its_own_digits(line: str) -> None:
    blanks = line.count("{}")
    for digit in "0123456789":
        text = line.format(*([digit] * blanks))
        pieces = keyed(text)
        values = [float(found) for found in re.findall(r"(?<=loss is )\d\.25", text)]
        assert [piece.value for piece in pieces if piece.key == "is"] == values
        assert all(text[piece.start : piece.start + len(piece.key)] == piece.key for piece in pieces)
        for reading in readings(text, pieces):
            assert reading.value == int(digit) or reading.value in (float(f"{digit}0"), 100.0)
        assert finished(text) is ("exited" in line and digit == "0")
        assert overflowed(text) is ("skipped" in line and digit != "0")


def test_a_label_with_a_file_in_it_keeps_its_digits() -> None:
    names = {readings(f"part{n}.bin: 10%|█ | {n}/9", [])[0].name for n in (1, 2)}
    assert names == {"bar:part1.bin", "bar:part2.bin"}


def test_a_key_with_digits_names_its_own_loss() -> None:
    names = {loss_name(keyed(f"head{n} loss is 0.5")[0]) for n in (1, 2)}
    assert names == {"head1 loss is", "head2 loss is"}


def test_times_and_rates_come_from_the_line_itself() -> None:
    first, second = pulse("1/9 [00:10<01:20, 2.5it/s]"), pulse("2/9 [00:20<01:10, 4.5it/s]")
    assert (first.eta_s, first.rate_per_s) == (80.0, 2.5)
    assert (second.eta_s, second.rate_per_s) == (70.0, 4.5)
    assert throughput("12 tokens/s") == 12.0
    assert throughput("95 tokens/s") == 95.0


def test_what_looks_like_a_stamp_must_be_one() -> None:
    assert stamp("27:00:00 x") is None
    assert stamp("07:00:00 x") is not None
    assert phase("Loading model 7") == "loading model"
