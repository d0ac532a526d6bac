"""The config library (RULES H): distinct options, exact repeats folded, hints that may turn stale, no credential."""

from __future__ import annotations

import pytest

from agent.library import Library
from agent.store import Store
from states.effects import Remember
from tests.agent.fakes import at


@pytest.fixture
def library(store: Store) -> Library:
    return Library(store)


def told(what: str = "used", purpose: str = "digits", note: str = "", **values: str) -> Remember:
    return Remember.model_validate({"what": what, "purpose": purpose, "values": values, "note": note})


def test_exact_repeats_are_folded_into_one_with_a_count(library: Library) -> None:
    """H1."""
    for number in range(3):
        library.remember(f"e{number}", told(image="reg/a:1"), at(number))
    library.remember("e9", told("worked", image="reg/a:1"), at(9))
    (entry,) = library.entries()
    assert (entry["used"], entry["worked"], entry["last_at"]) == (3, 1, at(9))


def test_different_choices_stay_distinct(library: Library) -> None:
    """H1."""
    library.remember("e1", told(image="reg/a:1"), at(1))
    library.remember("e2", told(image="reg/b:1"), at(2))
    library.remember("e3", told(image="reg/a:1", purpose="other"), at(3))
    assert len(library.entries()) == 3


def test_the_same_effect_counts_once(library: Library) -> None:
    """A repeat after a crash is dropped (KEYED)."""
    library.remember("e1", told(image="reg/a:1"), at(1))
    library.remember("e1", told(image="reg/a:1"), at(2))
    assert library.entries()[0]["used"] == 1


def test_the_fit_is_what_worked_most_and_says_why(library: Library) -> None:
    """H2."""
    library.remember("e1", told("worked", image="reg/a:1"), at(1))
    library.remember("e2", told("used", image="reg/b:1"), at(2))
    fit = library.best("digits", "image")
    assert fit is not None
    assert (fit.value, fit.why) == ("reg/a:1", "worked 1 times, last on 2026-03-01")
    assert fit.others == 1
    assert library.best("something else", "image") is None
    assert library.best("", "image") is None
    assert library.best("digits", "proxy") is None


def test_capitals_and_spaces_do_not_tell_kinds_of_work_apart(library: Library) -> None:
    """H1: one entry, found by either spelling."""
    library.remember("e1", told("worked", image="reg/a:1", purpose="Fine  Tuning"), at(1))
    library.remember("e2", told("worked", image="reg/a:1", purpose="fine tuning"), at(2))
    (entry,) = library.entries()
    assert (entry["purpose"], entry["worked"]) == ("Fine  Tuning", 2)
    assert library.best("FINE TUNING", "image") is not None


def test_what_is_for_no_known_kind_of_work_is_not_kept(library: Library) -> None:
    library.remember("e1", told("worked", image="reg/a:1", purpose=""), at(1))
    assert library.entries() == []


def test_what_failed_is_as_if_missing_until_it_works_again(library: Library) -> None:
    """H3, F5."""
    library.remember("e1", told("worked", image="reg/a:1"), at(1))
    library.remember("e2", told("stale", image="reg/a:1", note="not found"), at(2))
    assert library.best("digits", "image") is None
    assert library.entries()[0]["stale_why"] == "not found"
    library.remember("e3", told("worked", image="reg/a:1"), at(3))
    assert library.best("digits", "image") is not None


def test_a_value_that_failed_is_stale_for_every_kind_of_work(library: Library) -> None:
    library.remember("e1", told("worked", image="reg/a:1"), at(1))
    library.remember("e2", told("worked", image="reg/a:1", purpose="other"), at(2))
    library.remember("e3", told("stale", image="reg/a:1", note="gone"), at(3))
    assert library.best("other", "image") is None


def test_a_credential_is_never_remembered(library: Library) -> None:
    """H4."""
    secret = "http://kim:pa55-" + "word-of-kim@proxy.example:3128"
    library.remember("e1", told(proxy=secret, image="reg/a:1"), at(1))
    library.remember("e2", told("pitfall", image="reg/a:1", note=f"set http_proxy={secret}"), at(2))
    assert library.best("digits", "proxy") is None
    assert "pa55-" not in str(library.entries())


def test_only_what_the_library_is_for_is_kept(library: Library) -> None:
    library.remember("e1", told(image="reg/a:1", gpu="8", mounts="/data"), at(1))
    assert library.entries()[0]["settings"] == {"image": "reg/a:1"}


def test_a_pitfall_is_noted_once_and_notes_are_bounded(library: Library) -> None:
    for number in range(30):
        library.remember(
            f"e{number}", told("pitfall", image="reg/a:1", note=f"lesson {number // 2}"), at(number)
        )
    notes = library.entries()[0]["notes"]
    assert notes == [f"lesson {number}" for number in range(5, 15)]


def test_an_entry_can_be_forgotten(library: Library) -> None:
    library.remember("e1", told(image="reg/a:1"), at(1))
    entry = library.entries()[0]["id"]
    assert [library.forget(entry), library.forget(entry)] == [True, False]
    assert library.entries() == []
