"""Python tracebacks in a log, taken apart: chains, ranks, boxes, and which lines are quoted source code.

A line of source shown in a traceback (`raise ValueError("out of memory")`) is not an event, so the reader has to
know which lines are frames. One pass per rank; a block ends at the first line that is not indented, which is
the exception itself. Understood: chained exceptions ("During handling", "direct cause"), exception groups,
logger prefixes before every line, boxed (rich) output, blocks whose head was cut off, blocks glued to a bar.

Never: judge what an exception means (`causes` does); assume that a block is complete.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from states.reading import Line

How = Literal["", "context", "cause", "group"]
"""How an exception hangs on the one before it: raised while handling it, raised from it, or one of a group."""

TRACES_MAX = 400
MESSAGE_LINES_MAX = 60
_CHAIN_GAP_LINES = 8

_HEAD = "Traceback (most recent call last)"
_DURING = "During handling of the above exception"
_DIRECT = "The above exception was the direct cause"
_FRAME = re.compile(r"""(?:> )?\s{0,80}File ["“]([^"”]{1,400})["”], line \d{1,9}(?:, in (.{1,120}))?""")
_LOGGED_FRAME = re.compile(r"""\S.{0,100}?(?=  File "[^"]{1,400}", line \d)""")
_RAISED = re.compile(r"((?:\w{1,80}\.){0,8}[A-Za-z_]\w{1,80})(?:\((\w{1,80})\))?(?::(?:\s(.*))?|\s*)$")
_CLASS_ENDS = (
    "Error",
    "Exception",
    "Interrupt",
    "Exit",
    "Timeout",
    "Failure",
    "Failed",
    "Expired",
    "Group",
    "Disconnected",
    "NotFound",
)
_NO_CLASSES = ("LustreError",)
"""Look like a class and are a kernel module's name."""
_BOX = "│╭╰┃❱╮╯"
_GROUP_RAIL = re.compile(r"\s{0,40}(?:\| ?){1,8}")
_GROUP_FORK = re.compile(r"\s{0,40}\+-[+-]")
_IGNORED = ("Exception ignored in", "--- Logging error ---", "Exception ignored on")
_UNRETRIEVED = "exception was never retrieved"
_QUIET = re.compile(r"\b(?:WARN(?:ING)?|INFO|DEBUG)\b")


class Raised(NamedTuple):
    """One exception as printed.

    at: position of its line in the lines given. name: class without module ("" if the line shows only a message).
    frames: `path in function` of its block, outermost first.
    """

    at: int
    name: str
    message: str
    frames: tuple[str, ...]
    how: How = ""


class Trace(NamedTuple):
    """One chain of exceptions. first, last: positions; members: all those of its rank from first to last.

    quiet: printed as ignored or below error level. survived: of a task whose loop goes on without it (asyncio).
    """

    first: int
    last: int
    rank: str
    links: tuple[Raised, ...]
    members: tuple[int, ...] = ()
    quiet: bool = False
    survived: bool = False


class Tracebacks(NamedTuple):
    """All chains in order of their last line, and the positions that only show source code or frames."""

    chains: tuple[Trace, ...]
    code: frozenset[int]


def find(lines: Sequence[Line]) -> Tracebacks:
    """Every traceback in the lines, each rank read as its own stream. Linear in the number of lines."""
    streams: dict[str, list[int]] = {}
    for at, line in enumerate(lines):
        if line.text.strip():
            streams.setdefault(line.rank, []).append(at)
    chains: list[Trace] = []
    code: set[int] = set()
    for rank, positions in streams.items():
        reader = _Reader(rank)
        for at, after in zip(positions, [*positions[1:], -1], strict=True):
            reader.feed(at, lines[at].text, lines[after].text if after >= 0 else "")
        chains.extend(reader.finish())
        code |= reader.code
    chains.sort(key=lambda chain: (chain.last, chain.first))
    return Tracebacks(tuple(chains[-TRACES_MAX:]), frozenset(code))


def raised(text: str) -> tuple[str, str] | None:
    """(class, message) if the text is an exception line by its own look: a class name with a telling end."""
    found = _RAISED.match(text.strip())
    if found is None:
        return None
    name = found[2] or found[1].rpartition(".")[2]
    telling = name.endswith(_CLASS_ENDS) or name.endswith("error")
    if name in _NO_CLASSES or (name == "Error" and (found[3] or "")[:1].isdigit()):
        return None
    return (name, found[3] or "") if telling and not found[1][0].isdigit() else None


class _Reader:
    """The state of one rank's stream: inside a block, just after one, or outside."""

    def __init__(self, rank: str) -> None:
        self.rank = rank
        self.code: set[int] = set()
        self._done: list[Trace] = []
        self._links: list[Raised] = []
        self._first = self._last = -1
        self._frames: list[str] = []
        self._inside: Literal["", "block", "headless"] = ""
        self._how: How = ""
        self._since = 0
        self._seen: list[int] = []
        self._quiet = self._group = self._alone = False
        self._told: list[str] = []
        self._prefix: re.Pattern[str] | None = None
        self._candidate: tuple[int, str] | None = None

    def feed(self, at: int, text: str, after: str) -> None:
        """Takes the next non-blank line; `after` is the one that follows it in this stream."""
        self._seen.append(at)
        body = self._body(text)
        if _HEAD in text:
            self._begin(at, text)
        elif self._inside:
            self._within(at, body, self._body(after))
        elif "File " in text and _FRAME.match(body) and not body.startswith("File"):
            self._headless(at, body)
        elif "  File " in text and (logged := _LOGGED_FRAME.match(text)) and not self._links:
            self._headless(at, text[logged.end() :])
            self._prefix = _shape(logged[0])
        elif self._links:
            self._between(at, body)
        self._told = [*self._told[-1:], text]
        if not (self._inside or self._links):
            self._seen.clear()

    def finish(self) -> Iterator[Trace]:
        """What the stream held. A block whose exception line never came is left out."""
        self._inside = ""
        self._close()
        return iter(self._done)

    def _body(self, text: str) -> str:
        if self._prefix is not None and (found := self._prefix.match(text)):
            text = text[found.end() :]
        if self._group and (rail := _GROUP_RAIL.match(text)):
            text = text[rail.end() :]
        return text

    def _begin(self, at: int, text: str) -> None:
        prefix = text[: text.index(_HEAD)]
        if self._links and self._links[-1].message.startswith("Caught "):
            self._how = self._how or "cause"
        if not (self._links and self._how):
            self._close()
            self._first = at
            self._quiet = any(text.startswith(_IGNORED) for text in self._told[-1:]) or bool(
                _QUIET.search(prefix)
            )
            self._alone = any(_UNRETRIEVED in text for text in self._told)
            self._group = "Exception Group" in prefix
        if not self._group:
            self._prefix = _shape(prefix)
        self._inside, self._frames, self._candidate = "block", [], None
        self.code.add(at)

    def _headless(self, at: int, body: str) -> None:
        if not (self._links and self._links[-1].name.startswith("RayTask")):
            self._close()
            self._first = at
        else:
            self._how = "cause"
        self._inside, self._frames, self._candidate = "headless", [], None
        self._within(at, body, "")

    def _within(self, at: int, body: str, after: str) -> None:
        if frame := _FRAME.match(body):
            self._frames.append(f"{frame[1]} in {frame[2] or ''}")
            self.code.add(at)
        elif body[:1].isspace() or body[:1] in _BOX or body.startswith(("raise ", "^", "~")):
            if raised(body):
                self._candidate = (at, body)
            self.code.add(at)
        elif (found := _exception(body)) and (
            self._inside == "block" or "." in body.partition(":")[0] or raised(body)
        ):
            self._raise(at, *found)
        elif _FRAME.match(after) or after[:4] == "    " or after[:1] in ("^", "~") or self._is_source(after):
            self.code.add(at)
        else:
            self._give_up(at, body)

    def _is_source(self, after: str) -> bool:
        """Source of a frame that lost its indent: right after the frame, right before an exception line."""
        follows = bool(self._told) and _FRAME.match(self._body(self._told[-1])) is not None
        return follows and raised(after) is not None

    def _give_up(self, at: int, body: str) -> None:
        """An unindented line that is no exception line: the last look-alike, or a message that lost its class."""
        if self._candidate is not None and (found := raised(self._candidate[1])):
            self.code.discard(self._candidate[0])
            self._raise(self._candidate[0], *found)
        elif self._inside == "block" and self._frames:
            self._raise(at, "", body)
        self._inside = ""

    def _raise(self, at: int, name: str, message: str) -> None:
        if self._links and not self._inside:
            self._frames = []
        self._links.append(Raised(at, name, message, tuple(self._frames), self._how))
        self._last, self._inside, self._how, self._since = at, "", "", 0

    def _between(self, at: int, body: str) -> None:
        """After an exception line: connectors, further lines of its message, or the end of the chain."""
        if _DURING in body:
            self._how = "context"
        elif _DIRECT in body:
            self._how = "cause"
        elif self._group and _GROUP_FORK.match(body):
            self._how = "group"
        elif self._how and (found := raised(body)):
            self._raise(at, *found)
        elif body[:1].isspace() and self._since < MESSAGE_LINES_MAX and not self._how:
            self._last = at
            self._since += 1
        else:
            self._since += 1 if self._how else _CHAIN_GAP_LINES
            if self._since > _CHAIN_GAP_LINES:
                self._close()

    def _close(self) -> None:
        if self._links:
            members = tuple(at for at in self._seen if self._first <= at <= self._last)
            self._seen = [at for at in self._seen if at > self._last]
            links = tuple(self._links)
            self._done.append(
                Trace(self._first, self._last, self.rank, links, members, self._quiet, self._alone)
            )
        self._links, self._how, self._since = [], "", 0
        self._quiet = self._group = self._alone = False
        self._prefix = None


def _shape(prefix: str) -> re.Pattern[str] | None:
    """What a logger puts before every line, with its digits free; None if there is nothing before the block."""
    if not prefix.strip() or len(prefix) > 200:
        return re.compile(re.escape(prefix)) if prefix and len(prefix) < 80 else None
    return re.compile(re.sub(r"\d+", r"\\d{1,20}", re.escape(prefix)))


def _exception(body: str) -> tuple[str, str] | None:
    """(class, message) of the line that ends a block. Here any dotted name will do, capitals or a telling end."""
    found = _RAISED.match(body.rstrip())
    if found is None or found[1][0].isdigit():
        return None
    name = found[2] or found[1].rpartition(".")[2]
    if name.startswith("RayTaskError"):
        name = "RayTaskError"
    if "RayTaskError" in found[1]:
        name = "RayTaskError"
    known = name[0].isupper() or name.endswith(("error", "timeout")) or "." in found[1]
    return (name, found[3] or "") if known else None
