"""What one look at a bounded piece of a log leaves behind: progress, diagnosis, a few telling lines.

`digest` takes text, `digest_lines` lines that somebody has cleaned already (a whole file read in parts).
The log itself is not kept: the excerpt is bounded and the fingerprint only tells "the same text again" (E2).

Never: read a clock or a file; redact (the caller did it before); keep the text.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from datetime import datetime

from states.causes import diagnose
from states.logs.signatures import Signatures
from states.progress import measure
from states.reading import Digest, Line, Quote, Track
from states.text import lines, settled

EXCERPT_LINES_MAX = 8
"""Lines of an excerpt: the evidence with its neighbours, and the end of the piece."""

EXCERPT_LAST_LINES = 3
QUOTE_CHARS_MAX = 300


def digest(
    text: str,
    *,
    before: Track,
    reasons: Sequence[str] = (),
    exit_code: int | None = None,
    signal: int | None = None,
    wrote_at: datetime | None = None,
    cursor: str = "",
    signatures: Signatures | None = None,
) -> Digest:
    """One look at a piece of log text (decoded, redacted, bounded by the caller).

    before: what earlier looks taught; only used to tell new output from the same text again.
    reasons: the scheduler's words, newest last. wrote_at: last write of the log, where the cluster can tell.
    cursor: where the piece ends in the log, as the cluster tells it.
    signatures: the built-in ones with the user's own (`signatures.load`); only the built-in ones if not given.
    """
    return digest_lines(
        lines(text),
        before=before,
        reasons=reasons,
        exit_code=exit_code,
        signal=signal,
        wrote_at=wrote_at,
        signatures=signatures,
        fingerprint=fingerprint(text, cursor),
        bytes_read=len(text.encode("utf-8", "replace")),
    )


def digest_lines(
    found: Sequence[Line],
    *,
    before: Track,
    fingerprint: str,
    bytes_read: int,
    reasons: Sequence[str] = (),
    exit_code: int | None = None,
    signal: int | None = None,
    wrote_at: datetime | None = None,
    signatures: Signatures | None = None,
) -> Digest:
    """The same for lines; their numbers are those of the original file, gaps are allowed."""
    progress = measure(found)
    diagnosis = diagnose(found, reasons=reasons, exit_code=exit_code, signal=signal, signatures=signatures)
    return Digest(
        progress=progress,
        diagnosis=diagnosis,
        fresh=_is_fresh(found, before, fingerprint, wrote_at),
        lines_read=len({line.number for line in found}),
        bytes_read=bytes_read,
        excerpt=excerpt(found, diagnosis.evidence),
        fingerprint=fingerprint,
        wrote_at=wrote_at,
    )


def fingerprint(text: str, cursor: str = "") -> str:
    """32 hex digits; "" for a piece without text, so that an empty log is never new output.

    With its cursor a tail of one line said again and again is new output, as it is: it must not pass for silence,
    which is stopped (E6), where a stuck step is asked about (E5, E9).
    """
    if not text.strip():
        return ""
    known = text if not cursor else f"{text}\0{cursor}"
    return hashlib.blake2b(known.encode("utf-8", "replace"), digest_size=16).hexdigest()


def excerpt(found: Sequence[Line], evidence: Iterable[Quote]) -> tuple[Quote, ...]:
    """At most EXCERPT_LINES_MAX lines in their order: the first evidence with its neighbours, and the end."""
    shown = [line for line in settled(found) if line.text.strip()]
    places = {line.number: at for at, line in enumerate(shown)}
    wanted: set[int] = set(range(max(0, len(shown) - EXCERPT_LAST_LINES), len(shown)))
    for quote in evidence:
        at = places.get(quote.line)
        if at is not None and len(wanted) <= EXCERPT_LINES_MAX - 3:
            wanted.update(range(max(0, at - 1), min(len(shown), at + 2)))
    return tuple(Quote(line=shown[at].number, text=_bounded(shown[at].text)) for at in sorted(wanted))


def _bounded(text: str) -> str:
    text = text.strip()
    return text if len(text) <= QUOTE_CHARS_MAX else text[: QUOTE_CHARS_MAX - 3] + "..."


def _is_fresh(found: Sequence[Line], before: Track, fingerprint: str, wrote_at: datetime | None) -> bool:
    """New output since the last look: the text differs, or the cluster says the log was written since."""
    if not found or not fingerprint:
        return False
    if fingerprint != before.fingerprint:
        return True
    return wrote_at is not None and before.output_at is not None and wrote_at > before.output_at
