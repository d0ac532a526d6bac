"""The look itself, and the redactor: what is not found here would be found nowhere.

Never: a canary that the look does not see when nobody redacts.
"""

from __future__ import annotations

import sys
import unicodedata

import pytest

from agent.redaction import Redactor
from tests.security.canaries import CANARIES, KNOWN, LEAKY_LOG, Canary, leaks


@pytest.mark.parametrize("canary", CANARIES, ids=lambda canary: canary.name)
def test_the_look_finds_each_in_the_raw_text_and_none_in_the_redacted(canary: Canary) -> None:
    assert canary.name in leaks(canary.text)
    clean = Redactor(KNOWN).text(canary.text)
    assert "[redacted:" in clean
    assert leaks(clean) == []


def test_a_whole_log_of_them_comes_out_clean() -> None:
    assert len(leaks(LEAKY_LOG)) == len(CANARIES)
    assert leaks(Redactor(KNOWN).text(LEAKY_LOG)) == []


def test_whatever_cannot_be_seen_hides_nothing() -> None:
    """Every control, format and surrogate sign of Unicode, put into the middle of a known value."""
    unseen = [s for s in map(chr, range(sys.maxunicode + 1)) if unicodedata.category(s) in ("Cc", "Cf", "Cs")]
    assert len(unseen) > 2_000
    half = len(KNOWN["LAB_WORD"]) // 2
    redactor = Redactor(KNOWN)
    for sign in {*unseen} - {"\t", "\n", "\r"}:
        hidden = f"{KNOWN['LAB_WORD'][:half]}{sign}{KNOWN['LAB_WORD'][half:]}"
        assert redactor.text(hidden) == "[redacted:LAB_WORD]", ascii(sign)
