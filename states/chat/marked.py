"""A message with everything that is no word of the sentence masked: names, commands, quotes, values, secrets.

Each masked piece becomes one private-use character of its kind's range, so that a `stop` inside a name, a command or
a quotation can never be read as a verb, and patterns can say where a name stands. `Marked.text` is folded: NFKC,
lower case, plain quotes, one blank.

Never: keep a credential's value; let a masked piece change what stands around it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple

from states.chat import commands
from states.chat.context import Context
from states.credentials import find_credentials

KINDS = 0xE100
PER_KIND = 0x100
JOB, PART, UNKNOWN, COMMAND, QUOTE, VALUE, GROUP, ASKED, SECRET, WILD, FILE = (
    f"{chr(start)}-{chr(start + PER_KIND - 1)}" for start in range(KINDS, KINDS + 11 * PER_KIND, PER_KIND)
)
"""Ranges for a character class: a known run, a piece of known names, a name nobody knows, a command, a quotation, an
address or path, a group, a question's id, a credential, a name with `*`, a request file."""
NAMES = JOB + PART + UNKNOWN
MESSAGE_CHARS_MAX = 8000
CHARS_MAX = 2000
"""Of a masked message (a command is one character); what is longer was pasted and is not read."""


class Piece(NamedTuple):
    """One masked piece. kind: its range; text as written; names: the runs it may mean; loose: spelled otherwise."""

    kind: str
    text: str
    names: tuple[str, ...] = ()
    loose: bool = False


class Marked(NamedTuple):
    """The folded, masked text and its pieces by their marks. crowded: pasted text, too much of it to be a message."""

    text: str
    pieces: Mapping[str, Piece]
    raw: str
    secret: bool
    crowded: bool

    def of(self, kinds: str, within: str | None = None) -> tuple[Piece, ...]:
        """The pieces of these kinds that stand in the text, or in a part of it, in order."""
        text = self.text if within is None else within
        return tuple(self.pieces[mark] for mark in re.findall(f"[{kinds}]", text))

    @property
    def chinese(self) -> bool:
        return bool(re.search(r"[\u3400-\u9fff]", self.raw))


ORDINARY = frozenset(
    "re non pre to of up in out off on the by end day time self well long short high low multi single cross half e "
    "auto fine early early-stop all good step idle normal".split()
)
"""Beginnings of hyphenated words that are no names."""
VERBS = frozenset(
    "stop kill delete del remove run train test job jobs log logs tail status list help start submit gpu gpus cpu "
    "node nodes group last new old the and for not all any one two how why what who show get check now yes wait keep "
    "image data time is it me my can may let end cancel again best good bad free idle normal queue queued running "
    "failed done slow fast small large big first second third both next prep hub dev lab main base exp hang oom "
    "loss step epoch ok out err error default".split()
)
"""Words that never stand for a name, even where a name holds them."""
_REDACTED = re.compile(r"\[redacted:[^\]\s]*\]")

_URL = r"[a-z][a-z0-9+]{1,9}://[^\s,;，。；\"'<>]+"
_IMAGE = (
    r"[A-Za-z0-9][\w.-]*(?::\d+)?(?:/[\w.-]+)+(?::[\w][\w.-]*)?(?:@sha256:[0-9a-f]+)?"
    r"|[a-z][\w.-]*:(?=[\w.-]*\d)[\w][\w.-]*"
)
_PATH = r"(?<![\w/])(?:~|\.{1,2})?/[\w.$@+~-][^\s,;，。；、\"'<>()（）\u3400-\u9fff]*"
_VALUE = re.compile(rf"{_URL}|{_PATH}|(?<![\w./-]){_IMAGE}", re.ASCII | re.IGNORECASE)
_GROUP = re.compile(
    r"(?<![\w-])(?:[A-Za-z][\w-]*:)?[A-Za-z][A-Za-z0-9]*-(?:gpu|cpu|group|quota|pool)s?(?![\w-])"
    r"|(?<=group )[A-Za-z][\w-]+(?::[\w-]+)?",
    re.ASCII,
)
_FILE = re.compile(r"(?<![\w])[\w./~-]*[\w-]\.(?:ya?ml|sbatch|slurm)(?![\w/])", re.ASCII)
_QUOTE = re.compile(
    r"\"([^\"\n]{1,400})\"|(?:(?<=\s)|(?<=^)|(?<=[\u3400-\u9fff:(,]))'([^'\n]{1,400})'(?![A-Za-z])|「([^」]{1,400})」"
    r"|`([^`\n]{1,400})`|^\s*>(.{1,400})$",
    re.MULTILINE,
)
_ID = re.compile(r"(?<![\w-])q\s?-?\s?#?(\d{1,6})(?![\w-]|\.\d)", re.ASCII | re.IGNORECASE)
_NAME = re.compile(r"(?<![\w./-])[A-Za-z][A-Za-z0-9]*(?:[-_.][A-Za-z0-9]+)+(?![\w/-])", re.ASCII)
_WILD = re.compile(r"(?<![\w-])[\w-]*[\w-]\*[\w-]*|(?<=\s)\*(?=\s|$)", re.ASCII)
_CALLED = re.compile(
    r"(?<=\bjob )(?=\w*\d)\w{2,40}|(?<=\brun )(?=\w*\d)[A-Za-z]\w{2,40}", re.ASCII | re.IGNORECASE
)
_FOLD = str.maketrans(
    {"“": '"', "”": '"', "‘": "'", "’": "'", "`": "`", "´": "'", "、": ",", "。": ".", "…": "..."}
)


_SPELLED_OUT = {
    "u": "you", "r": "are", "cant": "can't", "wont": "won't", "im": "i'm", "ive": "i've", "youre": "you're",
    "dont": "don't", "doesnt": "doesn't", "didnt": "didn't", "isnt": "isn't", "wasnt": "wasn't", "hasnt": "hasn't",
    "havent": "haven't", "shouldnt": "shouldn't", "couldnt": "couldn't", "wouldnt": "wouldn't",
}  # fmt: skip
"""What is typed in haste, as the patterns have it."""
_CLIPPED = re.compile(
    rf"(?<![\w'-])({'|'.join(_SPELLED_OUT)}|(?:what|how|where|when|who|that|there)s)(?![\w'-])", re.ASCII
)


def marked(message: str, context: Context) -> Marked:
    """Mask a message. What is longer than MESSAGE_CHARS_MAX is cut."""
    raw = message[:MESSAGE_CHARS_MAX]
    work = _Work(_without_secrets(raw))
    secret = work.text != raw
    for found in reversed(commands.find(work.text)):
        work.put(found.start, found.end, Piece(COMMAND, found.command))
    if len(work.text) > CHARS_MAX:
        return Marked("", {}, raw, secret, True)
    work.each(_REDACTED, lambda m: Piece(SECRET, ""))
    work.text = unicodedata.normalize("NFKC", work.text).translate(_FOLD)
    work.each(_QUOTE, lambda m: _quoted(m, context))
    ids = {question.id.lower(): question.id for question in context.questions}
    for known in sorted(ids.values(), key=len, reverse=True):
        work.each(_word(known), partial(_piece, ASKED, (), False, known))
    for name in sorted((job.name for job in context.jobs), key=len, reverse=True):
        work.each(_word(name), partial(_piece, JOB, (name,), False, ""))
    work.each(_ID, lambda m: Piece(ASKED, f"Q-{m[1]}"))
    work.each(_WILD, lambda m: Piece(WILD, m[0], _beginning(m[0].partition("*")[0], context)))
    work.each(_FILE, lambda m: Piece(FILE, m[0]))
    work.each(_GROUP, lambda m: Piece(GROUP, m[0]))
    for name in sorted((job.name for job in context.jobs), key=len, reverse=True):
        work.each(_loosely(name), partial(_piece, JOB, (name,), True, ""))
    work.each(_VALUE, lambda m: Piece(VALUE, m[0].rstrip(".:?!")) if _is_value(m[0]) else None)
    keys = {option.key.lower() for question in context.questions for option in question.options}
    work.each(_NAME, lambda m: None if m[0].lower() in keys else _named(m[0], context))
    work.each(_CALLED, lambda m: Piece(UNKNOWN, m[0]))
    for part, names in _parts(context).items():
        work.each(_word(part), partial(_piece, PART, names, False, ""))
    return work.done(raw, secret)


def _piece(kind: str, names: tuple[str, ...], loose: bool, text: str, match: re.Match[str]) -> Piece:
    return Piece(kind, text or match[0], names, loose)


class _Work:
    """The text while it is being masked."""

    def __init__(self, text: str) -> None:
        self.text = re.sub(r"[\ue000-\uf8ff]", "", text)
        self.pieces: dict[str, Piece] = {}
        self.crowded = False

    def put(self, start: int, end: int, piece: Piece) -> None:
        """Put a mark in the place of `text[start:end]`."""
        number = sum(one.kind == piece.kind for one in self.pieces.values())
        self.crowded = self.crowded or number >= PER_KIND - 1
        mark = chr(ord(piece.kind[0]) + min(number, PER_KIND - 1))
        self.pieces[mark] = piece
        self.text = f"{self.text[:start]} {mark} {self.text[end:]}"

    def each(self, pattern: re.Pattern[str], piece_of: Callable[[re.Match[str]], Piece | None]) -> None:
        """Mask every match for which `piece_of` gives a piece, from the end so that places stay true."""
        for match in reversed(list(pattern.finditer(self.text))):
            piece = piece_of(match) if match.end() > match.start() and not self.crowded else None
            if piece is not None:
                self.put(match.start(), match.end(), piece)

    def done(self, raw: str, secret: bool) -> Marked:
        """Folded: lower case, no emoji, one blank."""
        text = "".join(
            " " if unicodedata.category(sign) in ("So", "Sk", "Cf", "Mn") else sign
            for sign in self.text.lower()
        )
        text = _CLIPPED.sub(lambda m: _SPELLED_OUT.get(m[1]) or f"{m[1][:-1]}'{m[1][-1]}", text)
        text = re.sub(r"[^\S\n]+", " ", text).strip()
        return Marked(text, self.pieces, raw, secret, self.crowded or len(text) > CHARS_MAX)


def _without_secrets(text: str) -> str:
    """The text with a mark for each credential; nothing of the value is kept (B6)."""
    for found in reversed(find_credentials(text)):
        text = f"{text[: found.start]} [redacted:{found.kind}] {text[found.end :]}"
    return text


def _word(name: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![A-Za-z0-9_-]){re.escape(name)}(?![A-Za-z0-9_*]|-[A-Za-z0-9*])", re.IGNORECASE)


def _loosely(name: str) -> re.Pattern[str]:
    """The name with blanks or underscores where it has dashes."""
    parts = [re.escape(part) for part in re.split(r"[-_]", name) if part]
    return re.compile(rf"(?<![A-Za-z0-9_-]){'[-_ ]?'.join(parts)}(?![A-Za-z0-9_*]|[- ][0-9*])", re.IGNORECASE)


def _quoted(match: re.Match[str], context: Context) -> Piece:
    """A quoted name is that name; anything else that is quoted is a quotation."""
    text = next(group for group in match.groups() if group is not None).strip()
    known = {job.name.lower(): job.name for job in context.jobs}
    if text.lower() in known:
        return Piece(JOB, text, (known[text.lower()],))
    return Piece(COMMAND, text) if commands.is_command(text) else Piece(QUOTE, text)


def _named(text: str, context: Context) -> Piece | None:
    """A hyphenated word: the beginning of known names, a name nobody knows, or an ordinary word."""
    begins = _beginning(text, context)
    if begins:
        return Piece(PART, text, begins)
    lowered = text.lower()
    if lowered.partition("-")[0] in ORDINARY or not re.search(r"[-_]", text) or "end" in lowered.split("-"):
        return None
    return Piece(UNKNOWN, text)


def _beginning(text: str, context: Context) -> tuple[str, ...]:
    """The runs whose names begin with this, up to a dash."""
    head = text.lower().rstrip("-_")
    return tuple(
        job.name for job in context.jobs if head and re.match(rf"{re.escape(head)}[-_]", job.name.lower())
    )


def _parts(context: Context) -> dict[str, tuple[str, ...]]:
    """{a word of names: the runs that have it}; letters only, and no word of the language."""
    found: dict[str, list[str]] = {}
    for job in context.jobs:
        for part in set(re.split(r"[-_]", job.name.lower())):
            if len(part) >= 3 and part.isalpha() and part not in VERBS:
                found.setdefault(part, []).append(job.name)
    return {part: tuple(names) for part, names in found.items()}


def _is_value(text: str) -> bool:
    """No time of day, no ratio, no `and/or`."""
    return not re.fullmatch(r"[\d:.]+|[a-z]+/[a-z]+|\d[\w.]*/\d[\w.]*", text, re.IGNORECASE) or "://" in text
