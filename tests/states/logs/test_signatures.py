"""The signature files: built-in entries hold their own proof, a bad entry of a user's is refused with its line."""

from __future__ import annotations

import re

import pytest

from states.causes import diagnose
from states.logs import patterns, signatures
from states.reading import Line


def test_every_built_in_entry_matches_its_own_sample_and_passes_the_checks() -> None:
    known = signatures.load()
    assert len(known.entries) >= 250
    assert len({entry.id for entry in known.entries}) == len(known.entries)
    for entry in known.entries:
        hits = known.match(entry.sample, "reason" if entry.where == "reason" else "log")
        assert entry.id in [hit.entry.id for hit in hits], entry.id
        assert patterns.hazard(entry.signature) == "", entry.id
        assert entry.cause in known.causes
        assert set(entry.also) <= set(known.causes)
        assert entry.advice or entry.cause == "none"


GOOD = """[[entry]]
id = "house-scheduler"
signature = 'HOUSE-\\d{3} no tickets left'
cause = "scheduling.quota"
sample = "HOUSE-417 no tickets left"
source = "our scheduler"
"""

BAD: list[tuple[str, str, str]] = [
    ("own.toml:3", "back-reference", GOOD.replace("no tickets left'", "(no) tickets \\1'")),
    ("own.toml:3", "repeat inside a repeat", GOOD.replace("\\d{3}", "(?:\\d+)+")),
    ("own.toml:3", "must be bounded", GOOD.replace("\\d{3}", ".*")),
    ("own.toml:3", "literal", GOOD.replace("HOUSE-\\d{3} no tickets left", "\\d+")),
    ("own.toml:3", "not a regular expression", GOOD.replace("\\d{3}", "(")),
    ("own.toml:4", "unknown cause", GOOD.replace("scheduling.quota", "scheduling.luck")),
    ("own.toml:5", "sample", GOOD.replace('"HOUSE-417 no', '"HOUSE-417 some')),
    ("own.toml:2", "exists already", GOOD.replace("house-scheduler", "cuda-oom")),
    ("own.toml:9", "exists already", GOOD + "\n" + GOOD),
    ("own.toml:1", "needs a text `source`", GOOD.replace('source = "our scheduler"\n', "")),
    ("own.toml:7", "role", GOOD + 'role = "hero"\n'),
    ("own.toml:7", "colour", GOOD + 'colour = "red"\n'),
    (
        "own.toml:3",
        "not TOML",
        GOOD.replace("cause", "cause cause").replace("signature", "signature signature"),
    ),
]


@pytest.mark.parametrize(("where", "what", "toml"), BAD)
def test_a_bad_entry_of_the_users_is_refused_with_its_line(where: str, what: str, toml: str) -> None:
    with pytest.raises(signatures.SignatureError, match=re.escape(what)) as refused:
        signatures.load((("own.toml", toml),))
    assert str(refused.value).startswith(where + ":")


def test_entries_of_the_users_are_used() -> None:
    known = signatures.load((("own.toml", GOOD),))
    assert diagnose([Line(4, "HOUSE-901 no tickets left")], signatures=known).cause == "scheduling.quota"


def test_what_an_entry_leaves_out_comes_from_its_cause() -> None:
    (entry,) = signatures.read("own.toml", GOOD, signatures.load().causes)
    layer = signatures.load().causes["scheduling.quota"]
    assert (entry.owner, entry.retryable, entry.advice) == (layer.owner, layer.retryable, layer.advice)


def test_loading_the_same_files_again_costs_nothing() -> None:
    assert signatures.load((("own.toml", GOOD),)) is signatures.load((("own.toml", GOOD),))


def test_the_gate_lets_through_every_line_that_an_entry_matches() -> None:
    known = signatures.load()
    for place, entry in enumerate(known.entries):
        if entry.where != "reason":
            assert place in set(known.candidates(f"12:00 x {entry.sample} y")), entry.id
