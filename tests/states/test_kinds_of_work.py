"""Which kind of work a run is (H1, C15): its purpose, else its project and script; nothing is guessed."""

from __future__ import annotations

from typing import Any

import pytest

from states.kinds_of_work import in_words, kind_of, same_kind
from states.spec import Request

PROJECT = "/home/ann/digits"


@pytest.mark.parametrize(
    ("command", "kind"),
    [
        ("python train.py --lr 3", "train.py in /home/ann/digits"),
        (("python", "scripts/train.py"), "scripts/train.py in /home/ann/digits"),
        ("python /home/ann/digits/train.py", "train.py in /home/ann/digits"),
        ("torchrun --nproc_per_node 8 train.py", "train.py in /home/ann/digits"),
        ("cd src && CUDA_VISIBLE_DEVICES=0 python -u run.py", "run.py in /home/ann/digits"),
        ("python -m digits.train --lr 3", "digits.train in /home/ann/digits"),
        ("set -e; ./bin/simulate --n 4", "simulate in /home/ann/digits"),
        ("make -m x", "make in /home/ann/digits"),
        ("for i in 1 2; do echo $i; done", ""),
        ("echo 'unbalanced", "echo in /home/ann/digits"),
    ],
)
def test_the_script_and_its_project_tell_the_kind(command: Any, kind: str) -> None:
    assert kind_of(Request.model_validate({"command": command}), PROJECT) == kind


def test_a_stated_purpose_goes_before_everything_and_a_name_says_nothing() -> None:
    request = Request(command=("python", "train.py"), name="tune", purpose="  fine  tuning ")
    assert kind_of(request, PROJECT) == "fine tuning"
    assert in_words(request, "fine tuning") == "the same purpose 'fine tuning'"
    named = Request(command=("python", "train.py"), name="tune")
    kind = kind_of(named, PROJECT)
    assert in_words(named, kind) == "the same script train.py in the project /home/ann/digits"
    assert kind_of(named, "") == ""


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("Fine Tuning", "fine  tuning", True),
        ("tuning", "fine tuning", False),
        ("train.py in /a/digits", "train.py in /b/digits", False),
        ("", "", False),
    ],
)
def test_two_kinds_are_one_only_if_they_are_the_same(one: str, other: str, same: bool) -> None:
    assert same_kind(one, other) is same
