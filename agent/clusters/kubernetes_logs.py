"""A bounded piece of a pod's log, and a cursor that the API itself does not have.

The API reads a tail or everything since a second. Every line carries the time at which the runtime took it
(`timestamps`), so the cursor is the pod, the time of the last line that was told, and which of the lines
of that very time it was. A log that was rotated away since is told from where it begins now, as cut.

Never: read more than the bound; fail on bytes that are no text; tell half a line twice.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import timedelta
from itertools import accumulate
from typing import Any, NamedTuple

from agent.clusters.base import LogPiece, NotThere
from agent.clusters.kubernetes_api import Api, Said
from agent.clusters.kubernetes_objects import (
    Object,
    count,
    field,
    items,
    main_container,
    moment,
    name_of,
    runs,
    text,
)

BYTES_MAX = 256 << 10
"""Most bytes of text in a piece."""
READ_MAX = 4 << 20
"""Most bytes of one answer, times of the lines included."""
LINES_MAX = 5_000
NOT_YET = (
    "is waiting to start",
    "ContainerCreating",
    "PodInitializing",
    "not found in pod",
    "previous terminated",
)


class Cursor(NamedTuple):
    """Where a reader stands: the last line told, by its time and its number among the lines of that time."""

    pod: str
    at: str = ""
    number: int = 0

    def words(self) -> str:
        return json.dumps(list(self))


class Line(NamedTuple):
    """One line with its end, and the time that the runtime gave it."""

    at: str
    data: bytes


def cursor_of(words: str) -> Cursor | None:
    """The cursor in these words; None for none and for one that is not ours."""
    try:
        pod, at, number = json.loads(words)
        return Cursor(str(pod), str(at), int(number)) if moment(at) else None
    except (ValueError, TypeError, RecursionError):
        return None


def read(api: Api, path: str, pod: Object, *, lines: int, cursor: str = "", head: bool = False) -> LogPiece:
    """At most `lines` lines of the pod's work. path: of the pod. Raises NotThere when the log is gone, and as Api.

    After a cursor the newest lines since are told; `truncated` says that some were left out. `head` counts
    without a cursor only.
    """
    where = f"{text(pod, 'metadata', 'namespace')}/{name_of(pod)}"
    if not text(pod, "spec", "nodeName"):
        return LogPiece(
            text="", cursor=cursor, ready=False, path=where
        )  # the API answers with nothing, and no error
    since = cursor_of(cursor)
    if since is not None and since.pod != name_of(pod):
        since = None
    query: dict[str, Any] = {"container": _container(pod), "timestamps": "true"}
    if _looped(pod):
        query["previous"] = "true"
    try:
        if head and since is None:
            return _head(api, path, name_of(pod), where, lines, query)
        found, cut = _tail(api, path, min(max(lines, 1), LINES_MAX), since, query)
    except Said as error:
        if error.code == 404:
            raise NotThere(f"the pod {where} is gone, and its log with it") from None
        if error.code == 400 and any(word in error.message for word in NOT_YET):
            return LogPiece(text="", cursor=cursor, ready=False, path=where)
        raise error.refused() from None
    return _told(found, cut, since, Cursor(name_of(pod)), cursor, where, lines, runs(pod))


def keep(api: Api, path: str, pod: Object) -> bytes:
    """The newest lines of a pod that is about to be stopped, since its log goes with it; `kept` reads them."""
    query = {"container": _container(pod), "timestamps": "true", "tailLines": LINES_MAX}
    return name_of(pod).encode() + b"\n" + api.raw(f"{path}/log", READ_MAX, **query).body


def kept(data: bytes, *, where: str, lines: int, cursor: str = "", head: bool = False) -> LogPiece:
    """A piece of what `keep` kept, with the same cursors."""
    name, _, raw = data.partition(b"\n")
    pod, found = name.decode(errors="replace"), _lines(raw)
    since = cursor_of(cursor)
    if since is not None and since.pod != pod:
        since = None
    if head and since is None:
        first = _oldest(found, lines)
        return _piece(first, first, Cursor(pod), "", where, False)
    return _told(found, len(found) >= LINES_MAX, since, Cursor(pod), cursor, where, lines, False)


def _told(
    found: list[Line],
    cut: bool,
    since: Cursor | None,
    start: Cursor,
    before: str,
    where: str,
    lines: int,
    grows: bool,
) -> LogPiece:
    """The newest lines since the cursor. A last line without an end, of a container that runs, may still grow: after
    a cursor it is not told yet, and in a tail the cursor stays before it."""
    whole = found[:-1] if grows and found and not found[-1].data.endswith(b"\n") else found
    new, lost = _after(whole if since else found, since)
    newest = _newest(new, lines)
    truncated = lost or len(newest) < len(new) or (cut and len(new) == len(found))
    return _piece(newest, whole, start, before, where, truncated)


def _container(pod: Object) -> str:
    """The container that is the work: `main`, else the first."""
    names = [text(one, "name") for one in items(pod, "spec", "containers")]
    return "main" if "main" in names else (names or [""])[0]


def _head(api: Api, path: str, pod: str, where: str, lines: int, query: dict[str, Any]) -> LogPiece:
    answer = api.raw(f"{path}/log", READ_MAX, limitBytes=BYTES_MAX, **query)
    cut = len(answer.body) >= BYTES_MAX
    found = _lines(answer.body)
    whole = found[:-1] if cut and len(found) > 1 else found
    kept = whole[:lines]
    return _piece(kept, kept, Cursor(pod), "", where, False)


def _tail(
    api: Api, path: str, lines: int, since: Cursor | None, query: dict[str, Any]
) -> tuple[list[Line], bool]:
    """The newest lines, and whether there are older ones (since the cursor's second). Fewer when they are long."""
    window = dict(query)
    if since is not None and (at := moment(since.at)) is not None:
        window["sinceTime"] = f"{at.replace(microsecond=0) - timedelta(seconds=1):%Y-%m-%dT%H:%M:%SZ}"
        lines = max(lines, LINES_MAX)
    while True:
        answer = api.raw(f"{path}/log", READ_MAX, tailLines=lines + 1, **window)
        if not answer.cut or lines <= 1:
            found = _lines(answer.body)
            return (found[-lines:], True) if len(found) > lines else (found, answer.cut)
        lines //= 8


def _after(found: Sequence[Line], since: Cursor | None) -> tuple[list[Line], bool]:
    """The lines after the cursor's, and whether its line is no longer there (rotated away, or too many since)."""
    if since is None or not since.at:
        return list(found), False
    same = [place for place, line in enumerate(found) if line.at == since.at]
    if len(same) >= since.number:
        return list(found[same[since.number - 1] + 1 :]), False
    after, at = [], moment(since.at)
    for line in found:
        when = moment(line.at)
        if at is None or when is None or when > at:
            after.append(line)
    return after, True


def _oldest(lines: Sequence[Line], most: int) -> list[Line]:
    """The first `most` lines within the bound."""
    sizes = accumulate(len(line.data) for line in lines[: max(most, 0)])
    return [line for line, size in zip(lines, sizes, strict=False) if size <= BYTES_MAX]


def _newest(lines: Sequence[Line], most: int) -> list[Line]:
    """The newest `most` lines within the bound; of a single line that is longer, its end."""
    kept: list[Line] = []
    room = BYTES_MAX
    for line in reversed(lines[-most:] if most > 0 else []):
        if len(line.data) > room:
            if not kept:
                kept.append(line._replace(data=line.data[-room:]))
            break
        kept.append(line)
        room -= len(line.data)
    return kept[::-1]


def _piece(
    kept: Sequence[Line], told: Sequence[Line], start: Cursor, before: str, where: str, truncated: bool
) -> LogPiece:
    """The piece as text. told: all whole lines that were read; the cursor stands after the last of them."""
    cursor = before
    if told and kept:
        last = told[-1].at
        cursor = start._replace(at=last, number=sum(line.at == last for line in told)).words()
    return LogPiece(
        text=b"".join(line.data for line in kept).decode(errors="replace"),
        cursor=cursor,
        truncated=truncated,
        wrote_at=moment(kept[-1].at) if kept else None,
        path=where,
    )


def _lines(data: bytes) -> list[Line]:
    """Lines with their times; what has no time belongs to the line before (a piece of a long one)."""
    found: list[Line] = []
    for raw in data.split(b"\n"):
        at, space, rest = raw.partition(b" ")
        if space and moment(at.decode(errors="replace")) is not None:
            found.append(Line(at.decode(), rest + b"\n"))
        elif raw and found:
            found[-1] = found[-1]._replace(data=found[-1].data.removesuffix(b"\n") + raw + b"\n")
    if found and not data.endswith(b"\n"):
        found[-1] = found[-1]._replace(data=found[-1].data.removesuffix(b"\n"))
    return found


def _looped(pod: Object) -> bool:
    """Whether the container waits to be started again: what it last said is the run before's."""
    status = main_container(pod)
    return bool(field(status, "state", "waiting")) and count(status, "restartCount") > 0
