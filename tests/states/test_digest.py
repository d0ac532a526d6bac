"""What one look leaves: freshness, an excerpt that tells, and nothing of the text itself."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from states.digest import EXCERPT_LINES_MAX, QUOTE_CHARS_MAX, digest, excerpt, fingerprint
from states.reading import Quote, Track
from states.text import lines

AT = datetime(2031, 4, 5, 6, 7, tzinfo=UTC)
LOG = "".join(f"step {at}/90 loss {2 - at / 90:.2f}\n" for at in range(0, 90, 10))
CRASH = 'Traceback (most recent call last):\n  File "train.py", line 3, in run\nKeyError: "depth"\n'


def test_new_text_is_fresh_and_the_same_text_is_not() -> None:
    first = digest(LOG, before=Track())
    assert first.fresh
    again = digest(LOG, before=Track(fingerprint=first.fingerprint))
    assert not again.fresh
    assert digest(LOG + "step 90/90\n", before=Track(fingerprint=first.fingerprint)).fresh


def test_the_same_text_written_since_is_fresh() -> None:
    known = Track(fingerprint=fingerprint(LOG), output_at=AT)
    assert digest(LOG, before=known, wrote_at=AT + timedelta(seconds=1)).fresh
    assert not digest(LOG, before=known, wrote_at=AT).fresh


def test_an_empty_log_is_never_new() -> None:
    for text in ("", "\n\n", "   "):
        seen = digest(text, before=Track())
        assert (seen.fresh, seen.fingerprint, seen.excerpt) == (False, "", ())


def test_lines_and_bytes_are_counted_as_read() -> None:
    seen = digest("läuft\rläuft weiter\nzweite\n", before=Track())
    assert (seen.lines_read, seen.bytes_read) == (2, 28)


def test_the_excerpt_shows_the_evidence_with_its_neighbours_and_the_end() -> None:
    text = "\n".join(f"line {at}" for at in range(1, 41))
    shown = excerpt(lines(text), [Quote(line=20, text="line 20")])
    assert [quote.line for quote in shown] == [19, 20, 21, 38, 39, 40]


def test_the_excerpt_is_bounded_in_lines_and_characters() -> None:
    text = "\n".join("x" * 5000 for _ in range(60))
    shown = excerpt(lines(text), [Quote(line=at, text="") for at in range(1, 60, 4)])
    assert len(shown) <= EXCERPT_LINES_MAX
    assert all(len(quote.text) <= QUOTE_CHARS_MAX for quote in shown)


def test_progress_and_diagnosis_come_from_the_same_piece() -> None:
    seen = digest(LOG + CRASH, before=Track())
    assert seen.progress.main is not None
    assert seen.progress.main.value == 80
    assert seen.diagnosis.cause == "code.exception"
    assert any(quote.line == 12 for quote in seen.excerpt)


def test_the_schedulers_words_count_where_the_log_is_silent() -> None:
    seen = digest(LOG, before=Track(), reasons=("OOMKilled",), exit_code=137)
    assert seen.diagnosis.cause == "memory.host"
