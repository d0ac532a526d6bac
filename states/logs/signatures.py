"""The known signatures: data in `causes.toml` and in files of the user's own, checked and compiled.

An entry says what a line means: its cause out of a closed list, whose fault that usually is, whether the same
job may pass another time, and what a person should do. Defaults per cause stand in the `[cause]` tables, so
that an entry holds only what is particular to it. Expressions are compiled when a line first asks for them.

Never: run an unchecked expression of a user's file; read anything but the packaged `causes.toml`.
"""

from __future__ import annotations

import functools
import importlib.resources
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from pydantic import ValidationError

from states.logs import patterns
from states.logs.shapes import per_shape, shape
from states.reading import Frozen, Owner, Role

Candidates = Callable[[str], Iterable[int]]
"""Text of one line -> positions in `Signatures.entries` that may match it. The seam for a faster matcher."""

BUILT_IN = "causes.toml"
_ENTRY_HEAD = re.compile(r"[ \t]*\[\[entry\]\]")


class SignatureError(ValueError):
    """A bad entry in a signature file. The message is `file:line: what is wrong`."""


class Layer(Frozen):
    """What is usually true of a cause: the defaults of its entries."""

    owner: Owner
    retryable: bool
    advice: str


class Entry(Frozen):
    """One signature, complete.

    fatal: the line itself says that a process ends or cannot start; False for what may be survived (a retry,
    a warning): such a line is a cause only when something else shows an end, or when it is all that still happens.
    also: other causes that the same line can defend. where: `log` lines, the scheduler's `reason`s, or both.
    sample: a neutral line that must match. source: the tool or document the format comes from.
    """

    id: str
    signature: str
    cause: str
    owner: Owner
    retryable: bool
    role: Role = "root"
    fatal: bool = True
    also: tuple[str, ...] = ()
    where: Literal["log", "reason", "any"] = "any"
    advice: str = ""
    sample: str
    source: str


class Hit(NamedTuple):
    """An entry that matches a text, and from which character on."""

    entry: Entry
    start: int


class Signatures:
    """All entries, with a way to ask which of them a line matches without trying them all."""

    def __init__(self, entries: Sequence[Entry], causes: Mapping[str, Layer]) -> None:
        self.entries = tuple(entries)
        self.causes = dict(causes)
        self.by_needle: dict[str, list[int]] = {}
        for position, entry in enumerate(self.entries):
            if entry.where == "reason":
                continue
            for needle in patterns.needles(entry.signature):
                self.by_needle.setdefault(needle, []).append(position)
        self.needles = tuple(sorted(self.by_needle))
        self._shaped: dict[str, set[int]] = {}
        for needle, ats in self.by_needle.items():
            self._shaped.setdefault(shape(needle), set()).update(ats)
        self._gate = (
            re.compile(f"(?=({patterns.trie(self._shaped)}))") if self._shaped else re.compile(r"(?!)")
        )
        self._starting: dict[str, frozenset[int]] = {}
        self._compiled: dict[int, re.Pattern[str]] = {}
        self._candidates = per_shape(self._of_shape)

    def candidates(self, text: str) -> Iterable[int]:
        """Positions of entries whose needle, digits aside, stands in the text; the default for `match`."""
        return self._candidates(shape(text))

    def _of_shape(self, of: str) -> tuple[int, ...]:
        found: set[int] = set()
        for literal in {hit[1] for hit in self._gate.finditer(of)}:
            found |= self._entries_from(literal)
        return tuple(sorted(found))

    def _entries_from(self, literal: str) -> frozenset[int]:
        """Entries of every needle that begins with the literal (the gate stops at the shortest of them)."""
        known = self._starting.get(literal)
        if known is None:
            ats = [at for needle, ats in self._shaped.items() if needle.startswith(literal) for at in ats]
            known = self._starting[literal] = frozenset(ats)
        return known

    def match(
        self, text: str, where: Literal["log", "reason"] = "log", candidates: Candidates | None = None
    ) -> Iterator[Hit]:
        """Entries that match the text, in file order. The scheduler's few words are tried on all of them."""
        positions = range(len(self.entries)) if where == "reason" else (candidates or self.candidates)(text)
        for position in positions:
            entry = self.entries[position]
            if entry.where in ("any", where) and (found := self._expression(position).search(text)):
                yield Hit(entry, found.start())

    def _expression(self, position: int) -> re.Pattern[str]:
        expression = self._compiled.get(position)
        if expression is None:
            expression = self._compiled[position] = re.compile(self.entries[position].signature)
        return expression


def load(text_of_extra_files: Sequence[tuple[str, str]] = ()) -> Signatures:
    """The built-in entries plus those of the user's files, given as (file name, TOML text).

    Compiled once per set of texts. Raises SignatureError (`file:line: what is wrong`) for a bad entry.
    """
    return _load(tuple(text_of_extra_files))


@functools.lru_cache(maxsize=4)
def _load(extra: tuple[tuple[str, str], ...]) -> Signatures:
    text = (importlib.resources.files("states") / BUILT_IN).read_text(encoding="utf-8")
    document = _toml(BUILT_IN, text)
    causes = {name: Layer.model_validate(table) for name, table in document["cause"].items()}
    entries = [_complete(raw, causes) for raw in document["entry"]]
    for name, more in extra:
        entries.extend(read(name, more, causes, {entry.id for entry in entries}))
    return Signatures(entries, causes)


def read(name: str, text: str, causes: Mapping[str, Layer], taken: Iterable[str] = ()) -> list[Entry]:
    """The entries of one file, each checked. name: for messages; taken: ids that exist already.

    Raises SignatureError for the first entry that is wrong.
    """
    document = _toml(name, text)
    raws = document.get("entry", [])
    heads = [number for number, line in enumerate(text.split("\n"), 1) if _ENTRY_HEAD.match(line)]
    unknown = sorted(set(document) - {"entry", "cause"})
    if unknown or not isinstance(raws, list) or len(heads) != len(raws):
        raise SignatureError(
            f"{name}:1: a signature file holds [[entry]] tables only; found {unknown or 'others'}"
        )
    entries: list[Entry] = []
    ids = set(taken)
    for head, raw in zip(heads, raws, strict=True):
        wrong, field = _wrong(raw, causes, ids)
        if wrong:
            raise SignatureError(f"{name}:{_line_of(text, head, field)}: {wrong}")
        entry = _complete(raw, causes)
        ids.add(entry.id)
        entries.append(entry)
    return entries


def _toml(name: str, text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        at = re.search(r"at line (\d+)", str(error))
        line = int(at[1]) if at else text.count("\n") + 1
        raise SignatureError(f"{name}:{line}: not TOML: {error}") from error


def _complete(raw: Mapping[str, Any], causes: Mapping[str, Layer]) -> Entry:
    layer = causes[raw["cause"]]
    return Entry.model_validate(
        {"owner": layer.owner, "retryable": layer.retryable, "advice": layer.advice, **raw}
    )


def _wrong(raw: Mapping[str, Any], causes: Mapping[str, Layer], ids: set[str]) -> tuple[str, str]:
    """(what is wrong with an entry, the field to point at); ("", "") for a good one."""
    for field in ("id", "signature", "cause", "sample", "source"):
        if not isinstance(raw.get(field), str) or not raw[field]:
            return f"the entry needs a text `{field}`", field
    if raw["id"] in ids:
        return f"the id {raw['id']!r} exists already; choose another", "id"
    for cause in (raw["cause"], *(raw.get("also") or ())):
        if cause not in causes:
            return f"unknown cause {cause!r}; one of: {', '.join(sorted(causes))}", "cause"
    if reason := patterns.hazard(raw["signature"]):
        return f"the signature is refused: {reason}", "signature"
    try:
        entry = _complete(raw, causes)
    except ValidationError as error:
        first = error.errors()[0]
        field = str(first["loc"][0]) if first["loc"] else "id"
        return f"`{field}`: {first['msg']}", field
    if re.search(entry.signature, entry.sample) is None:
        return "the sample does not match the signature", "sample"
    return "", ""


def _line_of(text: str, head: int, field: str) -> int:
    """The line of a field within the entry that starts at line `head`; the head's if it isn't there."""
    for number, line in enumerate(text.split("\n")[head:], head + 1):
        if _ENTRY_HEAD.match(line):
            break
        if re.match(rf"\s*{re.escape(field)}\s*=", line):
            return number
    return head
