"""From what is written to what the scripted cluster plays: histories to moments, logs to timed lines.

A history may speak in a cluster's own words (`native:`); they go through that cluster's own `normalise`, so a
scenario proves the mapping together with the machine.

Never: invent a phase; read a file that is not beside the story.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from agent.app import DRIVERS
from agent.clusters.scripted import JobScript, Moment, Written
from agent.scenarios.model import File, JobStory, LogPart, Look
from agent.yamlfile import UserFileError
from states.observation import ENDED, Phase

LINES_MAX = 50_000

PLAIN = ("reason", "waiting", "held", "finishing", "suspended", "attempt", "signal", "node", "cause")
"""Fields of a look that are fields of an observation as they are."""


def script(story: JobStory, *, beside: Path, normalise: str = "") -> JobScript:
    """What a job does. beside: folder of the story; normalise: kind of cluster that the native words are of."""
    return JobScript(
        moments=tuple(moments(story.history, normalise)),
        log=tuple(printed(story.log, beside)),
        events=tuple((told.at, told.kind, told.message) for told in story.events),
        files=tuple(written(story.files)),
        record=story.record,
        stop_s=story.stop_takes,
        deaf_stops=story.deaf_stops,
    )


def moments(history: Sequence[Look], normalise: str) -> Iterator[Moment]:
    """The history as moments. Raises UserFileError for looks without a time or out of order."""
    at_s = 0.0
    next_s: float | None = 0.0
    for place, look in enumerate(history, start=1):
        begins_s = look.at if look.at is not None else next_s
        if begins_s is None:
            raise UserFileError(f"history, entry {place}: needs `at`, or a `for` in the entry before")
        if begins_s < at_s:
            raise UserFileError(f"history, entry {place}: begins before the one above it")
        at_s = begins_s
        next_s = at_s + look.lasts if look.lasts is not None else None
        yield _moment(look, at_s, normalise)
    if not history:
        yield Moment(0.0, Phase.pending)


def _moment(look: Look, at_s: float, normalise: str) -> Moment:
    if look.native:
        fields = dict(normaliser(normalise)(look.native))
        return Moment(at_s, Phase(fields.pop("phase")), fields)
    assert look.phase is not None  # the model says so
    fields = {name: getattr(look, name) for name in PLAIN}
    fields |= {"native": look.words or str(look.phase)}
    counts = {"replicas": look.replicas, "replicas_ready": look.replicas_ready}
    fields |= {name: count for name, count in counts.items() if count is not None}
    code = look.exit_code
    if code is None and look.phase in ENDED:
        code = {Phase.succeeded: 0, Phase.failed: 1}.get(look.phase)
    return Moment(at_s, look.phase, fields | {"exit_code": code})


def normaliser(kind: str) -> Any:
    """The function of a kind of cluster that turns its own words into fields of an observation.

    Raises UserFileError when the story names none, or the cluster has none yet.
    """
    if not kind:
        raise UserFileError("`native:` needs `cluster: {normalise: KIND}`, the cluster whose words they are")
    if kind not in DRIVERS:
        raise UserFileError(f"there is no cluster {kind!r}; known: {', '.join(sorted(DRIVERS))}")
    found = getattr(import_module(DRIVERS[kind].partition(":")[0]), "normalise", None)
    if found is None:
        raise UserFileError(
            f"`native:` is not available yet for {kind!r}: it has no `normalise`; use `phase:`"
        )
    return found


def written(files: Sequence[File]) -> Iterator[Written]:
    for file in files:
        yield Written(file.path, file.text, file.at)


def printed(parts: Sequence[LogPart], beside: Path) -> list[tuple[float, str]]:
    """Timed lines, in order of time. Raises UserFileError for a log without end."""
    found: list[tuple[float, str]] = []
    now_s = 0.0
    for part in parts:
        now_s = part.at if part.at is not None else now_s
        for text in _texts(part, beside):
            found.append((now_s, text))
            now_s += part.every
        now_s += part.silence or 0.0
        if len(found) > LINES_MAX:
            raise UserFileError(f"the log has more than {LINES_MAX} lines; say it with fewer")
    return sorted(found, key=lambda item: item[0])


def _texts(part: LogPart, beside: Path) -> Iterator[str]:
    if part.line is not None:
        yield part.line
    elif part.repeat is not None:
        yield from (part.repeat for _ in range(part.times))
    elif part.file is not None:
        path = beside / part.file
        if not path.resolve().is_relative_to(beside.resolve()) or not path.is_file():
            raise UserFileError(f"the log {part.file!r} is not a file beside the story")
        yield from path.read_text(encoding="utf-8").splitlines()
    elif part.steps is not None:
        yield from _counted(part)
    else:
        yield from part.lines


def _counted(part: LogPart) -> Iterator[str]:
    first, last = (int(number) for number in str(part.steps).split(".."))
    total = part.total or last
    for step in range(first, last + 1):
        loss = _on_curve(part, step, first, last)
        yield _formatted(
            part.format, {"step": step, "total": total, "loss": loss, "percent": 100 * step // total}
        )


def _on_curve(part: LogPart, step: int, first: int, last: int) -> float:
    curve = part.loss
    if curve is None:
        return 1.0 / (1 + step)
    if curve.nan_from is not None and step >= curve.nan_from:
        return math.nan
    share = (step - first) / max(1, last - first)
    return curve.start + (curve.to - curve.start) * share


def _formatted(template: str, values: Mapping[str, Any]) -> str:
    try:
        return template.format_map(values)
    except (KeyError, ValueError, IndexError) as error:
        known = ", ".join(values)
        raise UserFileError(
            f"the log format {template!r} does not fit ({error}); it may use {known}"
        ) from None
