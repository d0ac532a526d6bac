"""Names: the idempotency key of a cluster that has none."""

from __future__ import annotations

import re

import pytest

from states.naming import NAME_CHARS_MAX, attempt_name, fingerprint, job_id
from states.spec import Spec

SPEC = Spec(command=("train",), image="reg/a:1", env={"A": "1", "B": "2"})
SAFE = re.compile(r"[a-z][a-z0-9-]*")


def test_the_same_spec_gives_the_same_name() -> None:
    again = Spec.model_validate(SPEC.model_dump())
    assert attempt_name("digits-k3f9", 1, again) == attempt_name("digits-k3f9", 1, SPEC)


def test_the_order_in_which_a_database_gives_keys_back_does_not_matter() -> None:
    turned = SPEC.model_copy(update={"env": dict(reversed(SPEC.env.items()))})
    assert turned == SPEC
    assert fingerprint(turned) == fingerprint(SPEC)


def test_any_other_value_gives_another_fingerprint() -> None:
    changes = ({"image": "reg/a:2"}, {"gpu": 2}, {"command": ("train", "")}, {"env": {"A": "1"}})
    prints = {fingerprint(SPEC.model_copy(update=change)) for change in changes}
    assert len(prints | {fingerprint(SPEC)}) == 5


def test_a_new_attempt_is_a_new_name() -> None:
    assert attempt_name("digits-k3f9", 1, SPEC) != attempt_name("digits-k3f9", 2, SPEC)


HARD_NAMES = (
    "",
    "digits",
    "Digits 2",
    "7b-run",
    "训练",
    "---",
    "a" * 90,
    "-x-",
    "a_b.c/d",
    "É",
    "x\n;rm -rf",
)


@pytest.mark.parametrize("asked", HARD_NAMES)
@pytest.mark.parametrize("attempt", [1, 12, 999])
def test_every_name_fits_every_cluster(asked: str, attempt: int) -> None:
    name = attempt_name(job_id(asked, "k3f9q2"), attempt, SPEC)
    assert SAFE.fullmatch(name)
    assert len(name) <= NAME_CHARS_MAX
    assert "k3f9q2" in name


def test_a_long_id_keeps_its_unique_end() -> None:
    first = attempt_name("a-very-long-name-of-a-run-indeed-k3f9q2", 1, SPEC)
    second = attempt_name("a-very-long-name-of-a-run-indeed-x7p4m8", 1, SPEC)
    assert first != second
    assert len(first) <= NAME_CHARS_MAX
