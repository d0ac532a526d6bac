"""The look itself, and the redactor: what is not found here would be found nowhere.

Never: a canary that the look does not see when nobody redacts.
"""

from __future__ import annotations

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
