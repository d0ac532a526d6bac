"""What `wk read` prints: a log file of any size, read by the rules, as one plain object.

The file is taken in bounded pieces; `states/` cleans, measures, diagnoses and judges. Nothing here decides.
Keys of the result: the contract of the reading command (verdict, cause, evidence, progress, ...).

Never: act on what it read; print a line that was not redacted; keep the log.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO

from agent.pieces import BLOCK_BYTES, Pieces, Searches, pieces, searches
from states.logs.signatures import Signatures
from states.policy import Policy
from states.reading import Counter, Line, Progress, Scene, Track
from states.verdict import Looked, look

STDIN = "-"


class ReadError(ValueError):
    """A file that cannot be read, or a file of events or of an earlier reading that makes no sense."""


def read(
    path: str | Path,
    *,
    phase: str = "unknown",
    exit_code: int | None = None,
    events: Sequence[str] = (),
    previous: Mapping[str, object] | None = None,
    silence_s: float | None = None,
    lines_max: int | None = None,
    redact: Callable[[str], str] = str,
    policy: Policy | None = None,
    search: Searches | None = None,
    signatures: Signatures | None = None,
) -> dict[str, object]:
    """One log -> one result. `path` may be "-" for the standard input.

    phase: the cluster's normalised phase; "unknown" when only the file is known. events: the scheduler's
    words, newest last. previous: the result of an earlier reading of the same log. silence_s: seconds since
    the last output. lines_max: look at the last so many lines only. signatures: the built-in ones with the
    user's own. Raises ReadError.
    """
    kept = _pieces(path, redact, search)
    found = kept.lines if lines_max is None else _last(kept.lines, lines_max)
    scene = Scene(phase=phase, reasons=tuple(events), exit_code=exit_code, silence_s=silence_s)
    seen = look(
        found,
        scene,
        policy or Policy(),
        before=earlier(previous),
        fingerprint=kept.fingerprint,
        bytes_read=kept.bytes_read,
        signatures=signatures,
    )
    return result(seen)


def read_many(paths: Sequence[str | Path], **known: object) -> list[dict[str, object]]:
    """Several logs in one process, in order; `known` as for `read`. A file that fails gives {file, error}."""
    search = searches()
    found: list[dict[str, object]] = []
    for path in paths:
        try:
            found.append({"file": str(path)} | read(path, search=search, **known))  # type: ignore[arg-type]
        except ReadError as error:
            found.append({"file": str(path), "error": str(error)})
    return found


def result(seen: Looked) -> dict[str, object]:
    """A reading in the words of the contract, ready for JSON (a NaN loss is the text "nan")."""
    verdict, diagnosis = seen.verdict, seen.verdict.diagnosis
    return {
        "verdict": verdict.name,
        "settled": verdict.settled,
        "cause": diagnosis.cause,
        "also": list(diagnosis.also),
        "owner": diagnosis.owner,
        "retryable": diagnosis.retryable,
        "evidence": [{"line": quote.line, "text": quote.text} for quote in diagnosis.evidence],
        "progress": _progress(seen.digest.progress, seen.track),
        "summary": verdict.summary,
        "advice": verdict.advice,
        "because": list(verdict.because),
        "model": None,
    }


def earlier(previous: Mapping[str, object] | None) -> Track:
    """What an earlier result of `read` (or a kept Track) still tells: which counters stood where.

    Raises ReadError when the object is neither.
    """
    if not previous:
        return Track()
    try:
        if "progress" not in previous:
            return Track.model_validate(previous)
        progress = previous["progress"]
        assert isinstance(progress, Mapping)
        counters = tuple(
            Counter(name=str(one["name"]), value=float(one["value"]), total=one.get("total"))
            for one in progress.get("counters", ())
        )
    except (ValueError, TypeError, KeyError, AssertionError, AttributeError) as error:
        raise ReadError(f"the earlier reading is not one that this command prints: {error}") from None
    main = next((one for one in counters if one.value == progress.get("step")), None)
    return Track(
        counters=counters,
        main=main,
        highest={one.name: one.value for one in counters},
        cadence_s=progress.get("cadence_s"),
        looks=1,
    )


def events_from(text: str) -> tuple[str, ...]:
    """The scheduler's words from a file: one a line, or a JSON list of strings or objects with a message."""
    if not text.lstrip().startswith("["):
        return tuple(line.strip() for line in text.splitlines() if line.strip())
    try:
        listed = json.loads(text)
    except (ValueError, RecursionError):
        return tuple(line.strip() for line in text.splitlines() if line.strip())
    return tuple(_event(one) for one in listed)


def _event(one: object) -> str:
    if not isinstance(one, Mapping):
        return str(one)
    parts = (one.get(key) for key in ("kind", "reason", "message"))
    return ": ".join(str(part) for part in parts if part) or json.dumps(one, ensure_ascii=False)


def _pieces(path: str | Path, redact: Callable[[str], str], search: Searches | None) -> Pieces:
    if str(path) == STDIN:
        return pieces(_chunks(sys.stdin.buffer), redact=redact, search=search)
    try:
        with open(path, "rb") as file:
            return pieces(_chunks(file), redact=redact, search=search)
    except OSError as error:
        why = error.strerror or error
        raise ReadError(f"cannot read {path}: {why}. Give a log file, or - for the input.") from None


def _chunks(file: BinaryIO) -> Iterator[bytes]:
    while chunk := file.read(BLOCK_BYTES):
        yield chunk


def _last(found: Sequence[Line], count: int) -> list[Line]:
    """The last `count` lines of the file with all their refreshes."""
    numbers = sorted({line.number for line in found})[-count:]
    return [line for line in found if numbers and line.number >= numbers[0]]


def _progress(progress: Progress, track: Track) -> dict[str, object]:
    main = progress.main
    return {
        "step": _number(main.value) if main else None,
        "total": _number(main.total) if main else None,
        "unit": main.unit if main else None,
        "eta_s": _number(track.eta_s),
        "log_eta_s": _number(progress.log_eta_s),
        "loss": _number(progress.loss),
        "rate_per_s": progress.rate_per_s,
        "cadence_s": progress.cadence_s,
        "counters": [
            {"name": one.name, "value": _number(one.value), "total": _number(one.total)}
            for one in progress.counters
        ],
    }


def _number(value: float | None) -> float | int | str | None:
    """Whole numbers without a fraction; what JSON has no number for, as text ("nan", "inf")."""
    if value is None:
        return None
    if not math.isfinite(value):
        return str(value)
    return int(value) if value == int(value) else value
