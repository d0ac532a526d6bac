"""Values that must not be seen again, the texts in which they come, and a look for them under every spelling.

Some are known to the key store and look like nothing; the others are known to nobody and told by name or shape. Each
value stands in one text alone, so that a find names what leaked. All are made up here.

Never: a real credential; a value that the look could take for another.
"""

from __future__ import annotations

import base64
import binascii
import html
import json
import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple
from urllib.parse import quote_plus, unquote_plus

import yaml

HEX = [f"{n:x}{'0f1e2d3c4b5a6978' * 2}"[:32] for n in range(10, 16)]
"""Bare strings of 32 hex digits, in pairs."""


def _value(number: int) -> str:
    return f"Qz{number}rkT7vWx{number}m4"


class Canary(NamedTuple):
    """name: how it comes. text: what a job, a cluster or a person wrote. values: what must not be seen again."""

    name: str
    text: str
    values: tuple[str, ...]


KNOWN: Mapping[str, str] = {
    "LAB_WORD": "swordfish-on-tuesday",
    "LAB_ODD": "p'ike/+ \"eel\\é&<9",
    "LAB_TINTED": "mackerel-4471-herring",
    "LAB_SPLIT": "anchovy-and-carp",
}
"""In the key store; no pattern could tell them."""

_TINTED = "mackerel-\x1b[1;36m4471\x1b[0m-herring"
_SPLIT = "anchovy\u200b-and\u200d-carp"

OF_THE_STORE = (
    Canary("known", f"the word is {KNOWN['LAB_WORD']} today", (KNOWN["LAB_WORD"],)),
    Canary("known in a url", f"GET /x?q={quote_plus(KNOWN['LAB_ODD'])}", (KNOWN["LAB_ODD"],)),
    Canary("known in json", json.dumps({"q": KNOWN["LAB_ODD"]}), (KNOWN["LAB_ODD"],)),
    Canary("known in html", f"<p>{html.escape(KNOWN['LAB_ODD'])}</p>", (KNOWN["LAB_ODD"],)),
    Canary("known in base64", base64.b64encode(KNOWN["LAB_WORD"].encode()).decode(), (KNOWN["LAB_WORD"],)),
    Canary("known in hex", KNOWN["LAB_WORD"].encode().hex(), (KNOWN["LAB_WORD"],)),
    Canary("known in colours", f"the word is {_TINTED} today", (KNOWN["LAB_TINTED"],)),
    Canary("known with invisible signs", f"the word is {_SPLIT} today", (KNOWN["LAB_SPLIT"],)),
)


def _told(name: str, number: int, text: str) -> Canary:
    """A canary with the one value `V` in its text."""
    value = _value(number)
    return Canary(name, text.replace("V", value), (value,))


def _base64(number: int) -> Canary:
    plain = f"DB_PASSWORD={_value(number)}"
    return Canary("name and value in base64", base64.b64encode(plain.encode()).decode(), (_value(number),))


OF_NOBODY = (
    Canary("two bare hex strings", f"logged in with {HEX[0]} {HEX[1]}", tuple(HEX[:2])),
    Canary("two bare hex strings in yaml", yaml.safe_dump({"keys": HEX[2:4]}), tuple(HEX[2:4])),
    Canary("two bare hex strings in json", json.dumps(json.dumps(HEX[4:6])), tuple(HEX[4:6])),
    _told("key=value in a command", 11, "+ env HF_TOKEN=V WANDB_MODE=offline python train.py"),
    _told("a flag and its value", 12, "+ python push.py --password V --epochs 3"),
    _told("words of an argv", 13, '["push.py", "--api-key", "V", "--epochs", "3"]'),
    _told("a url with a password", 14, "connecting to postgresql://me:V@db.example/runs"),
    _told("a url with a token", 15, "cloning https://VV@git.example/lab/code.git"),
    _told("a header", 16, "> Authorization: Bearer V.V"),
    _told("yaml", 17, "storage:\n  secret_key: V\n  region: north"),
    _told("a block of yaml", 18, "storage:\n  password: |-\n    V\n  region: north"),
    _told("json", 19, '{"user": "me", "password": "V", "port": 5432}'),
    _told("json in json", 20, json.dumps('{"password": "V"}')),
    _told("a variable of a manifest", 21, "env:\n- name: DB_PASSWORD\n  value: V"),
    _told("coloured", 22, "\x1b[1mAPI_KEY\x1b[0m=\x1b[33mV\x1b[0m"),
    _told("an exception", 23, "PermissionError: api_key='V' was refused"),
    _told("a chinese sentence", 24, "密码是V，请勿外传"),
    _told("an element", 25, "<config><password>V</password></config>"),
    _base64(26),
)

CANARIES = (*OF_THE_STORE, *OF_NOBODY)
BEGIN = "loading 40 shards\nstep 1/40 loss 2.5 lr 0.1\nstep 2/40 loss 2.4 lr 0.1\n"
ERROR = 'Traceback (most recent call last):\n  File "push.py", line 7, in <module>\nRuntimeError: it broke: '
LEAKY_LOG = BEGIN + "\n".join(canary.text for canary in CANARIES)
"""The log of a job that prints everything it should not."""

_ESCAPES = re.compile(
    r"\x1b\[[0-9;]*[A-Za-z]|[\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff\x00-\x08\x0e-\x1f]"
)
_RUNS = re.compile(r"[A-Za-z0-9+/_-]{16,}={0,2}")


def leaks(shown: str | bytes) -> list[str]:
    """Names of the canaries whose values can be had from what was shown: as they are, or decoded."""
    text = shown.decode("utf-8", "replace") if isinstance(shown, bytes) else shown
    views = "\0".join(_views(text))
    return [canary.name for canary in CANARIES if any(value in views for value in canary.values)]


def _views(text: str) -> Iterator[str]:
    """The text as each reader of it would have it."""
    yield text
    bare = _ESCAPES.sub("", text)
    for view in (
        bare,
        html.unescape(bare),
        unquote_plus(bare),
        _unescaped(bare),
        _unescaped(_unescaped(bare)),
    ):
        if view != text:
            yield view
    for run in _RUNS.findall(bare):
        yield from _decoded(run)


def _unescaped(text: str) -> str:
    """JSON's own escapes undone, wherever they stand."""
    known = {"n": "\n", "t": "\t", "r": "\r"}
    return re.sub(
        r"\\(?:u([0-9a-fA-F]{4})|(.))",
        lambda m: chr(int(m[1], 16)) if m[1] else known.get(m[2], m[2]),
        text,
    )


def _decoded(run: str) -> Iterator[str]:
    plain = run.rstrip("=").replace("-", "+").replace("_", "/")
    for skip in range(4):
        cut = plain[skip:]
        try:
            yield binascii.a2b_base64(cut + "=" * (-len(cut) % 4)).decode("latin-1")
        except binascii.Error:
            continue
    if len(run) % 2 == 0 and re.fullmatch(r"[0-9a-fA-F]+", run):
        yield bytes.fromhex(run).decode("latin-1")
