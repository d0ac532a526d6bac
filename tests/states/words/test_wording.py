"""Figures with their units, safe text, and phrases that both languages have.

Never: a phrase that one language lacks a fact of.
"""

from __future__ import annotations

import math
import re
import string
from datetime import UTC, datetime, timedelta, timezone

import pytest

from states.reading import Counter
from states.words.phrases import PHRASES
from states.words.wording import (
    command_line,
    count_of,
    duration,
    mib,
    number,
    plain,
    rate,
    say,
    since,
    size,
    when,
    wrapped,
)

AT = datetime(2026, 3, 1, 8, 0, 0, 999_999, tzinfo=timezone(timedelta(hours=8)))


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (-5, "0 s"),
        (0, "0 s"),
        (0.4, "0 s"),
        (59.4, "59 s"),
        (59.6, "1 min"),
        (125, "2 min 05 s"),
        (600, "10 min"),
        (3599, "59 min"),
        (3900, "1 h 05 min"),
        (86_400, "1 d 00 h"),
        (183_600, "2 d 03 h"),
        (math.nan, "?"),
        (math.inf, "?"),
    ],
)
def test_a_duration_is_told_in_two_units_at_most(seconds: float, said: str) -> None:
    assert duration(seconds) == said


def test_a_duration_in_chinese() -> None:
    assert duration(3900, "zh") == "1 小时 05 分钟"


@pytest.mark.parametrize(
    ("count", "said"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (1536, "1.5 KiB"),
        (1024**2 - 1, "1.0 MiB"),
        (3 * 2**60, "3072.0 PiB"),
    ],
)
def test_a_size_in_bytes(count: int, said: str) -> None:
    assert size(count) == said


@pytest.mark.parametrize(
    ("count", "said"), [(512, "512 MiB"), (1024, "1 GiB"), (1536, "1.5 GiB"), (131_072, "128 GiB")]
)
def test_memory_in_mib(count: int, said: str) -> None:
    assert mib(count) == said


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (3.0, "3"),
        (120_000, "120000"),
        (0.123456, "0.1235"),
        (math.nan, "nan"),
        (math.inf, "inf"),
        (1e22, "1e+22"),
        (-2.0, "-2"),
    ],
)
def test_a_number(value: float, said: str) -> None:
    assert number(value) == said


@pytest.mark.parametrize(
    ("per_s", "said"), [(2.5, "2.5 step/s"), (0.2, "12 step/min"), (1 / 1200, "3 step/h")]
)
def test_a_rate_is_told_in_the_readable_unit(per_s: float, said: str) -> None:
    assert rate(per_s, "step") == said


def test_a_moment_keeps_its_zone_and_drops_the_fraction() -> None:
    assert when(AT) == "2026-03-01T08:00:00+08:00"


def test_time_since_is_never_negative_and_knows_zones() -> None:
    assert since(AT, AT.astimezone(UTC) + timedelta(seconds=7)) == 7
    assert since(AT + timedelta(hours=1), AT) == 0


@pytest.mark.parametrize(
    ("counter", "said"),
    [
        (Counter(name="step", value=3, total=12), "step 3/12 (25 %)"),
        (Counter(name="bar:Loading shards", value=3, total=4), "Loading shards 3/4 (75 %)"),
        (Counter(name="epoch", value=3), "epoch 3"),
        (Counter(name="epoch", value=3, total=0), "epoch 3"),
        (Counter(name="", value=1.5, total=math.inf), "item 1.5"),
        (Counter(name="step", value=math.nan, total=10), "step nan"),
    ],
)
def test_a_counter(counter: Counter, said: str) -> None:
    assert count_of(counter) == said


# --- text of others ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\nnext: b", "a next: b"),
        ("a\r\n\tb\x0bc\u2028d\x85e", "a b c d e"),
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07after", "after"),
        ("\x1b]8;;http://x\x1b\\link", "link"),
        ("\x9b31mraw", "31mraw"),
        ("a\u202eb\u200bc\ufeffd\U000e0041e", "abcde"),
        ("\udc80\x00\x7f", ""),
        ("损失 0.5", "损失 0.5"),
        ("", ""),
    ],
)
def test_plain_leaves_one_line_of_visible_text(text: str, shown: str) -> None:
    assert plain(text) == shown


@pytest.mark.parametrize("limit", [1, 2, 10, 240])
def test_plain_is_bounded_and_says_that_it_cut(limit: int) -> None:
    for text in ("x" * 5000, "x " * 5000, "\x1b[0m" * 5000 + "y", "\n" * 9000 + "y", "x" * limit):
        shown = plain(text, limit)
        assert len(shown) <= limit
    assert plain("x" * (limit + 1), limit).endswith("…")
    assert plain("x" * limit, limit) == "x" * limit


def test_plain_twice_is_plain_once() -> None:
    for text in ("a\n\x1b[3", "\x1b\x1b[0m[0m", "x" * 400, "\u202e" * 40 + "  b  "):
        assert plain(plain(text)) == plain(text)


def test_a_command_is_quoted_as_a_shell_would_read_it() -> None:
    assert command_line(("python", "a b.py", "--x=$HOME")) == "python 'a b.py' '--x=$HOME'"
    assert command_line(("bash", "-c", "cd x\npython y")) == "bash -c 'cd x ⏎ python y'"
    assert len(command_line(("x" * 9000,))) == 600


def test_a_long_line_breaks_at_spaces_and_stands_deeper() -> None:
    first, second = wrapped("  " + "word " * 25).split("\n")
    assert first.startswith("  word")
    assert len(first) <= 100
    assert second.startswith("      word")
    assert wrapped("x" * 300) == "x" * 300


# --- phrases -----------------------------------------------------------------------------------------------


def facts_of(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name is not None}


@pytest.mark.parametrize("phrase", PHRASES)
def test_a_phrase_has_both_languages_with_the_same_facts(phrase: str) -> None:
    english, chinese = PHRASES[phrase]
    assert facts_of(english) == facts_of(chinese)
    assert english.replace("…", "").replace("±", "").isascii() or phrase.startswith("lane.")
    if phrase != "outcome.live" and re.search(r"[a-z]", re.sub(r"{\w+}", "", english)):
        assert re.search(r"[\u4e00-\u9fff]", chinese)


def test_a_phrase_takes_its_facts_as_they_are() -> None:
    assert say("en", "on_node", node="{job}") == "on {job}"
    with pytest.raises(KeyError):
        say("en", "on_node")
    with pytest.raises(KeyError):
        say("zh", "no.such.phrase")
