"""Expressions of signatures: what they need, and which of them could blow up."""

from __future__ import annotations

import re
import time

import pytest

from states.logs.patterns import hazard, needles, trie


@pytest.mark.parametrize(
    ("pattern", "wanted"),
    [
        ("out of memory", {"out of memory"}),
        (r"(?:abcd|efgh) x?", {"abcd", "efgh"}),
        (r"\d+ (?:lost|gone)", {"lost", "gone"}),
        (r"[Kk]illed by \w+", {"illed by "}),
        (r"(?:ab)?\d", set()),
        (r"x*yyy|zzzz", {"yyy", "zzzz"}),
        (r"(?i)out of memory", set()),
        ("内存", {"内存"}),
        (r"model (?:vanished|evaporated)", {"vanished", "evaporated"}),
    ],
)
def test_one_of_the_needles_is_in_every_match(pattern: str, wanted: set[str]) -> None:
    assert needles(pattern) == wanted


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        (r"error (a+)+b", "repeat inside a repeat"),
        (r"error (?:\w+\s?)*end", "repeat inside a repeat"),
        (r"error .*", "bounded"),
        (r"error [^x]+ end", "bounded"),
        (r"(error) \1", "back-reference"),
        (r"\d+", "literal"),
        (r"error|\d+", "literal"),
        (r"error (", "not a regular expression"),
        (r"e1.{0,99}e2.{0,99}e3.{0,99}e4.{0,99}error", "more than 3"),
    ],
)
def test_a_dangerous_expression_is_refused_with_the_reason(pattern: str, reason: str) -> None:
    assert reason in hazard(pattern)


@pytest.mark.parametrize(
    "pattern", [r"error .{0,80}end", r"error (?:a|b)? \d{1,9}", r"(?<!x)error \S{1,40}:"]
)
def test_a_bounded_expression_is_accepted(pattern: str) -> None:
    assert hazard(pattern) == ""


def test_what_is_accepted_stays_fast_on_a_hostile_line() -> None:
    pattern = r"error.{0,400}x.{0,400}y.{0,400}z"
    assert hazard(pattern) == ""
    begun = time.perf_counter()
    assert re.search(pattern, "error" + "xy" * 6000) is None
    assert time.perf_counter() - begun < 5


def test_the_trie_finds_the_same_words() -> None:
    words = ["abc", "abd", "x.y", "xz", "q"]
    merged = re.compile(trie(words))
    assert all(merged.fullmatch(word) for word in words)
    assert merged.search("ab xxy") is None


def test_the_trie_stops_at_a_word_that_begins_another() -> None:
    assert re.match(trie(["abc", "abcdef"]), "abcdef")[0] == "abc"  # type: ignore[index]
