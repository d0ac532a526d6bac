"""Takes credentials out of every string that leaves the process or enters the database (RULES B4, WISHES 18).

Two nets, one inside the other: the VALUES that are known to be secret, in every spelling that a URL, JSON,
a shell, HTML or base64 gives them, and whatever `states/credentials.py` marks by name or shape. What is taken
out is replaced by `[redacted:<name or kind>]`; doing it twice changes nothing.

Colours and invisible characters do not hide a value: who cleans the text later would put it together again.

Never: keep, log or return a value; let a broken log record through unredacted.
"""

from __future__ import annotations

import base64
import html
import json
import logging
import re
import shlex
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote, quote_plus

from states.credentials import Finding, find_credentials, is_secret, joined

VALUE_LENGTH_MIN = 6
"""Characters; a shorter value would blank out ordinary words and gives nothing away that could be used."""

SHORT = 64
"""Characters; longer texts are looked at each time and not kept."""
KNOWN_MAX = 4096
"""Short texts whose redacted form is kept: every event repeats states, rules and units."""

ROUNDS_MAX = 8
"""How often a text is gone over in which something was found; one in which nothing was is gone over once."""

DEPTH_MAX = 64
"""Levels of nesting that `value` follows; deeper ones are replaced as a whole."""

_MARK = re.compile(r"\[redacted:([^\]\s]{1,64})\]")

_SIGNS = (
    "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\xad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u180e"
    "\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff\U000110bd\U000110cd"
    "\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0001-\U000e007f"
)
"""Control, format and surrogate characters (Unicode Cc, Cf, Cs, Zl, Zp) but tab, line feed and carriage return."""
_SPELT = r"(?:\^\[|#033|\\033|\\u001[bB]|\\x1[bB]|\\e|[\u241b\ufffd])\[[0-9;]{0,24}[mK]"
_UNSEEN = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]{0,64}[ -/]{0,8}[@-~]?"
    r"|\x1b[\]PX^_][^\x07\x1b\x9c\n]{0,4096}(?:\x07|\x1b\\|\x9c)"
    rf"|\x1b[ -/]{{0,3}}[0-~]?|{_SPELT}|[{_SIGNS}]"
)
"""What a terminal does not show, and whoever reads a log takes out: escape sequences (also spelt out), such signs."""
_SIGN = re.compile(f"[{_SIGNS}]")
_CUT_OFF = re.compile(r"(?:\x1b(?:\[[0-?]{0,64})?[ -/]{0,8}|\x9b[0-?]{0,64}[ -/]{0,8}){1,64}(?=\[redacted:)")
"""An escape sequence whose end was taken out with a value: a terminal would take the mark's beginning for its end."""
_NOWHERE_HELD = re.compile("[\x00\ud800-\udfff]")


class Redactor:
    """Redacts strings and nested data. Immutable: after `key set` the owner makes a new one.

    `values` are the secrets, or a mapping of their names to them; the names are shown in the marks.
    """

    def __init__(self, values: Iterable[str] | Mapping[str, str]) -> None:
        named = values.items() if isinstance(values, Mapping) else (("secret", value) for value in values)
        forms = {form: name for name, value in named for form in _forms(value)}
        # The longest first: where one secret holds another, the whole of it is one mark.
        self._forms = sorted(forms.items(), key=lambda item: -len(item[0]))
        self._known: dict[str, str] = {}

    def __repr__(self) -> str:
        return f"Redactor({len(self._forms)} spellings)"

    def text(self, text: str) -> str:
        """The text with a mark in place of each credential; an equal text when there is none.

        A NUL or half a character (a lone surrogate), which neither PostgreSQL nor UTF-8 can hold, is a `?` in it.
        """
        if len(text) > SHORT:
            return self._redacted(text)
        known = self._known.get(text)
        if known is None:
            if len(self._known) >= KNOWN_MAX:
                self._known.clear()
            known = self._known[text] = self._redacted(text)
        return known

    def _redacted(self, text: str) -> str:
        for _ in range(ROUNDS_MAX):  # what stood apart may stand together once something is out
            before, text = text, self._once(text)
            if text == before:
                break
        return text

    def _once(self, text: str) -> str:
        text = self._marked(text, self._found(text))
        for unseen in (_UNSEEN, _SIGN):  # one reader takes a whole sequence out, another only its first sign
            if unseen.search(text) is not None:
                seen, places = _seen(text, unseen)
                text = self._marked(text, [_at(one, places) for one in self._found(seen)])
        return _NOWHERE_HELD.sub("?", _CUT_OFF.sub("", text) if "[redacted:" in text else text)

    def _found(self, text: str) -> list[Finding]:
        """What is to be replaced, in order and apart."""
        known = [f for form, name in self._forms if form in text for f in _places(text, form, name)]
        found = joined([*known, *find_credentials(text)])
        return list(_clear_of_marks(found, text)) if found else []

    def _marked(self, text: str, found: Sequence[Finding]) -> str:
        pieces, done = [], 0
        for finding in found:
            pieces += [text[done : finding.start], f"[redacted:{self._label(finding.kind)}]"]
            done = finding.end
        return "".join([*pieces, text[done:]]) if found else text

    def _label(self, kind: str) -> str:
        """The kind, unless a secret value stands in it: no mark holds a value, and marks stay as they are."""
        return "value" if any(form in kind for form, _ in self._forms) else kind

    def value(self, value: Any) -> Any:
        """Nested data (what YAML, JSON or `model_dump` give) with every string in it redacted.

        Beyond the strings themselves, a field, variable or flag whose name tells of a secret loses its value:
        `{"password": 1234}`, `{"name": "HF_TOKEN", "value": ...}`, `["--token", ...]`. A pydantic model comes
        back as its dump; tuples and sets keep their type.
        """
        return self._nested(value, 0)

    def _nested(self, value: Any, depth: int) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if value is None or isinstance(value, (bool, int, float)):
            return value
        if depth >= DEPTH_MAX:
            return "[redacted:too-deep]"
        if isinstance(value, bytes):
            return self.text(value.decode("utf-8", "replace")).encode()
        if hasattr(value, "model_dump"):
            return self._nested(value.model_dump(mode="json"), depth + 1)
        if isinstance(value, Mapping):
            return self._mapping(value, depth + 1)
        if isinstance(value, (list, tuple)):
            items = self._items(value, depth + 1)
            return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
        if isinstance(value, (set, frozenset)):
            return type(value)(self._nested(item, depth + 1) for item in value)
        return value

    def _mapping(self, value: Mapping[Any, Any], depth: int) -> dict[Any, Any]:
        out = {}
        for key, item in value.items():
            name = value.get("name") if key == "value" else key
            out[self._nested(key, depth)] = self._field(name, item, depth)
        return out

    def _items(self, items: Sequence[Any], depth: int) -> list[Any]:
        """A list, where a flag names the item behind it. Figures alone (a loss's series) hide nothing."""
        if all(type(item) in (int, float) for item in items):
            return list(items)
        flags = [item if isinstance(item, str) and item.startswith("-") else None for item in items]
        return [self._field(flag, item, depth) for flag, item in zip([None, *flags], items, strict=False)]

    def _field(self, name: Any, item: Any, depth: int) -> Any:
        plain = isinstance(item, (str, int, float)) and not isinstance(item, bool)
        if plain and isinstance(name, str) and "=" not in name and is_secret(name, str(item)):
            label = re.sub(r"[^\w.-]", "", name.strip("-"))[:48]
            return f"[redacted:{self._label(label)}]"
        return self._nested(item, depth)


def _forms(value: str) -> set[str]:
    """Every spelling under which the value may turn up; none for a value too short to look for."""
    if len(value.strip()) < VALUE_LENGTH_MIN:
        return set()
    raw = value.encode("utf-8", "surrogatepass")
    escaped = {json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1], repr(value)[1:-1]}
    quoted = {quote(raw, safe=""), quote(raw), quote_plus(raw)}
    shell = {shlex.quote(value), value.replace("'", "'\\''"), value.replace('"', '\\"')}
    hexed = {raw.hex(), raw.hex().upper()}
    forms = {value, value.strip(), html.escape(value), *escaped, *quoted, *shell, *hexed, *_base64_cores(raw)}
    forms |= {re.sub("%[0-9A-F]{2}", lambda m: m[0].lower(), form) for form in quoted}
    return {form for form in forms if len(form) >= VALUE_LENGTH_MIN}


def _base64_cores(raw: bytes) -> set[str]:
    """What base64 of any text around the value has in common, for each of the 3 places it may start at."""
    cores = set()
    for before in range(3):
        encoded = base64.b64encode(b"\0" * before + raw).decode().rstrip("=")
        # Characters that also hold bits of what stands before or behind depend on it, and are left off.
        core = encoded[(0, 2, 3)[before] : (before + len(raw)) * 8 // 6]
        cores |= {core, core.replace("+", "-").replace("/", "_")}
    return {core for core in cores if len(core) >= 8}


def _places(text: str, form: str, name: str) -> list[Finding]:
    places, start = [], text.find(form)
    while start >= 0:
        places.append(Finding(name, start, start + len(form)))
        start = text.find(form, start + len(form))
    return places


def bare(text: str) -> str:
    """The text without escape sequences, control, direction and invisible characters; lines and tabs stay (I2)."""
    return _UNSEEN.sub("", text)


def _seen(text: str, unseen: re.Pattern[str]) -> tuple[str, list[tuple[int, int]]]:
    """The text without what is not shown, and where each piece of it begins: (there, in the text)."""
    pieces, places, done, length = [], [], 0, 0
    for start, end in [*(match.span() for match in unseen.finditer(text)), (len(text), len(text))]:
        if start > done:
            places.append((length, done))
            pieces.append(text[done:start])
            length += start - done
        done = end
    return "".join(pieces), places


def _at(finding: Finding, places: Sequence[tuple[int, int]]) -> Finding:
    """The finding where it stands in the text that `_seen` was made of."""

    def place(of: int) -> int:
        there, here = places[bisect_right(places, (of, len(places) and places[-1][1])) - 1]
        return here + of - there

    return finding._replace(start=place(finding.start), end=place(finding.end - 1) + 1)


def _clear_of_marks(found: Iterable[Finding], text: str) -> Iterator[Finding]:
    """The findings to replace, where the text holds marks already.

    A finding in a mark's own word (`redacted:`) falls away; one in its label, where a hostile text hid
    something, takes the whole mark. Both are in order, so one pass over each is enough.
    """
    marks = [(match.start(), match.start(1), match.end()) for match in _MARK.finditer(text)]
    place = done = 0
    for finding in found:
        while place < len(marks) and marks[place][2] < finding.end:
            place += 1
        start, label, end = marks[place] if place < len(marks) else (len(text), 0, 0)
        if start > finding.start:
            done = finding.end
            yield finding
        elif finding.start >= max(label, done) and finding.end < end:
            done = end
            yield finding._replace(start=start, end=end)


class RedactingFilter(logging.Filter):
    """Redacts a log record in place: message, arguments, traceback, stack and extra fields.

    What came from a job cannot act there either: escape sequences are spelt out, and what follows a line break stands
    deeper, so that it is not taken for a record of its own.

    Add it to HANDLERS (a logger's filter does not see what its children log). `redactor` may be replaced.
    """

    def __init__(self, redactor: Redactor) -> None:
        super().__init__()
        self.redactor = redactor

    def filter(self, record: logging.LogRecord) -> bool:
        """Always True. The message is formatted first: a secret split over arguments is seen whole."""
        try:
            message = record.getMessage()
        except Exception:  # it must neither crash nor slip through
            message = f"(a log call whose arguments do not fit) {record.msg!r} {record.args!r}"
        record.msg, record.args = self._harmless(message), None
        if record.exc_info and record.exc_info[0] is not None:
            record.exc_text = logging.Formatter().formatException(record.exc_info)
            record.exc_info = None  # the exception object holds the values; its redacted text stays
        if record.exc_text:
            record.exc_text = self._harmless(record.exc_text)
        if record.stack_info:
            record.stack_info = self._harmless(record.stack_info)
        for name in record.__dict__.keys() - _STANDARD:
            record.__dict__[name] = self.redactor._field(name, record.__dict__[name], 0)
        return True

    def _harmless(self, text: str) -> str:
        shown = _UNSEEN.sub(lambda sign: ascii(sign[0])[1:-1], self.redactor.text(text))
        return "\n    ".join(shown.splitlines()) if "\n" in shown or "\r" in shown else shown


_STANDARD = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime"}
