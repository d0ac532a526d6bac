"""Known values in every spelling, names and shapes, nested data, log records (RULES B4, WISHES 18).

Never: a real credential.
"""

from __future__ import annotations

import base64
import html
import io
import json
import logging
import re
import shlex
import time
from collections.abc import Callable
from typing import NamedTuple
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from agent.redaction import RedactingFilter, Redactor, bare
from states.credentials import find_credentials

CANARY = "c4n'ry/+ \"qu\\é&<7"
PLAIN = "plainwordwithoutanyshape"
HEX_A = "0f1e2d3c4b5a6978" + "8796a5b4c3d2e1f0"
HEX_B = "a1b2c3d4e5f60718" + "293a4b5c6d7e8f90"


@pytest.fixture
def redactor() -> Redactor:
    return Redactor({"CANARY": CANARY, "PLAIN": PLAIN})


SPELLINGS: dict[str, Callable[[str], str]] = {
    "as it is": str,
    "url": lambda v: quote(v, safe=""),
    "url with slashes": quote,
    "form": quote_plus,
    "lower-case url": lambda v: re.sub("%..", lambda m: m[0].lower(), quote(v, safe="")),
    "json": json.dumps,
    "json, unicode kept": lambda v: json.dumps(v, ensure_ascii=False),
    "repr": repr,
    "shell": shlex.quote,
    "html": html.escape,
    "hex": lambda v: v.encode().hex(),
    "base64": lambda v: base64.b64encode(v.encode()).decode(),
    "url-safe base64": lambda v: base64.urlsafe_b64encode(v.encode()).decode(),
    "base64 of more": lambda v: base64.b64encode(f"user:{v}@x".encode()).decode(),
    "base64 of still more": lambda v: base64.b64encode(f"users:{v}".encode()).decode(),
}


@pytest.mark.parametrize("value", [CANARY, PLAIN])
@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_known_value_is_taken_out_in_every_spelling(redactor: Redactor, spelling: str, value: str) -> None:
    spelt = SPELLINGS[spelling](value)
    clean = redactor.text(f"before {spelt} after")
    assert clean.startswith("before ")
    assert clean.endswith(" after")
    assert "[redacted:" in clean
    # Two characters at either end of base64 may stay: they hold bits of what stands beside the value.
    assert spelt.strip("'\"=")[3:-3] not in clean


def test_the_mark_carries_the_name_of_a_known_value(redactor: Redactor) -> None:
    assert redactor.text(f"--x {PLAIN}/y") == "--x [redacted:PLAIN]/y"
    assert Redactor([PLAIN]).text(PLAIN) == "[redacted:secret]"


def test_what_is_not_known_goes_by_name_and_shape() -> None:
    assert Redactor([]).text("HF_TOKEN=abc123 go") == "HF_TOKEN=[redacted:HF_TOKEN] go"
    assert Redactor([]).text(f"{HEX_A} {HEX_B}") == "[redacted:hex-pair]"


def test_a_short_value_is_not_searched_for() -> None:
    assert Redactor(["abc", "     a     "]).text("abc a abcdef") == "abc a abcdef"


def test_the_longer_of_two_overlapping_values_is_one_mark() -> None:
    assert (
        Redactor({"A": "secretive", "B": "secretive-long"}).text("x secretive-long y") == "x [redacted:B] y"
    )


def test_clean_text_comes_back_as_the_same_object(redactor: Redactor) -> None:
    text = "step 12 | tokens/s 10432.1 | loss 2.31"
    assert redactor.text(text) is text


def test_a_value_hidden_in_a_mark_is_taken_out_too(redactor: Redactor) -> None:
    assert redactor.text(f"[redacted:{PLAIN}]") == "[redacted:PLAIN]"
    assert redactor.text(f"[redacted:ab{PLAIN}cd]") == "[redacted:PLAIN]"


def test_neither_repr_nor_label_shows_a_value() -> None:
    redactor = Redactor({"NAME_HIDDENVALUE": "HIDDENVALUE"})
    assert "HIDDENVALUE" not in repr(redactor)
    assert "HIDDENVALUE" not in redactor.text("x HIDDENVALUE HIDDENVALUE_TOKEN=abcdef")


# --- nested data -------------------------------------------------------------------------------------------


class Point(NamedTuple):
    x: str
    y: int


class Launch(BaseModel):
    env: dict[str, str]
    gpu: int = 2


def test_nested_data_keeps_its_shape(redactor: Redactor) -> None:
    given_value = {
        "a": [PLAIN, 1, None, 2.5, True],
        "b": (PLAIN,),
        "c": Point(PLAIN, 3),
        PLAIN: {"d": {PLAIN}},
    }
    mark = "[redacted:PLAIN]"
    assert redactor.value(given_value) == {
        "a": [mark, 1, None, 2.5, True],
        "b": (mark,),
        "c": Point(mark, 3),
        mark: {"d": {mark}},
    }
    assert isinstance(redactor.value(Point("a", 1)), Point)
    assert redactor.value(b"x " + PLAIN.encode()) == b"x [redacted:PLAIN]"


def test_a_telling_field_name_hides_its_value() -> None:
    redactor = Redactor([])
    assert redactor.value({"password": 123456, "max_tokens": 4096, "HF_TOKEN": "$HF_TOKEN"}) == {
        "password": "[redacted:password]",
        "max_tokens": 4096,
        "HF_TOKEN": "$HF_TOKEN",
    }
    assert redactor.value({"name": "HF_TOKEN", "value": "abc"}) == {
        "name": "HF_TOKEN",
        "value": "[redacted:HF_TOKEN]",
    }
    assert redactor.value(["run", "--token", "abc", "--lr", "1"]) == [
        "run",
        "--token",
        "[redacted:token]",
        "--lr",
        "1",
    ]
    assert redactor.value(("--max-tokens", "4096")) == ("--max-tokens", "4096")


def test_a_model_comes_back_as_its_redacted_dump() -> None:
    assert Redactor([]).value(Launch(env={"API_KEY": "abc123"})) == {
        "env": {"API_KEY": "[redacted:API_KEY]"},
        "gpu": 2,
    }


def test_bottomless_data_is_cut() -> None:
    deep: list[object] = []
    deep.append(deep)
    assert "too-deep" in str(Redactor([]).value(deep))


# --- log records -------------------------------------------------------------------------------------------


@pytest.fixture
def logged(redactor: Redactor) -> tuple[logging.Logger, io.StringIO]:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(logging.Formatter("%(levelname)s %(message)s %(extra)s", defaults={"extra": "-"}))
    handler.addFilter(RedactingFilter(redactor))
    logger = logging.Logger("a.logger.of.its.own")
    logger.addHandler(handler)
    return logger, stream


def test_message_and_arguments_are_redacted_together(logged: tuple[logging.Logger, io.StringIO]) -> None:
    logger, stream = logged
    logger.warning("a %s b %s%s", PLAIN, PLAIN[:9], PLAIN[9:])
    assert stream.getvalue() == "WARNING a [redacted:PLAIN] b [redacted:PLAIN] -\n"


def test_exceptions_stacks_and_extras_are_redacted(logged: tuple[logging.Logger, io.StringIO]) -> None:
    logger, stream = logged
    try:
        raise RuntimeError(f"refused {PLAIN}") from ValueError(PLAIN)
    except RuntimeError:
        logger.exception("failed", extra={"extra": {"env": [PLAIN]}}, stack_info=True)
    out = stream.getvalue()
    assert PLAIN not in out
    assert "RuntimeError: refused [redacted:PLAIN]" in out
    assert "ValueError: [redacted:PLAIN]" in out
    assert "{'env': ['[redacted:PLAIN]']}" in out


def test_a_record_that_cannot_be_formatted_neither_crashes_nor_leaks(
    logged: tuple[logging.Logger, io.StringIO],
) -> None:
    logger, stream = logged
    logger.warning("%d", PLAIN)
    assert PLAIN not in stream.getvalue()
    assert "arguments do not fit" in stream.getvalue()


# --- any text ----------------------------------------------------------------------------------------------

PIECES = [
    "token", "KEY", "=", ": ", '"', "'", "\\", " ", "\n", "://", "@", ":", "$", "{", "}", "--",
    "Bearer ", "is ", "Zq7KdvT2mLp9xRw4K", "eyJ", ".", "sk-", "hf_", "-----BEGIN " + "PRIVATE KEY-----",
    HEX_A, "a", "/", "<", ">", "密码", "AK", ",", "value", "name", "[redacted:", "[redacted:token]", "]",
    "password", "redacted", PLAIN, "curl -u ", "&", "\x1b", "\x1b[", "\x1b[3", "\x9b", "\x1b[0m", "m", "\0", "\ufffd",
]  # fmt: skip
TEXTS = st.one_of(st.text(max_size=200), st.lists(st.sampled_from(PIECES), max_size=30).map("".join))
VALUES = st.lists(
    st.one_of(st.text(min_size=4, max_size=20), st.lists(st.sampled_from(PIECES), max_size=3).map("".join)),
    max_size=3,
)


@given(text=TEXTS)
def test_findings_are_in_order_apart_and_inside_the_text(text: str) -> None:
    done = 0
    for finding in find_credentials(text):
        assert done <= finding.start < finding.end <= len(text)
        done = finding.end


@given(text=TEXTS)
def test_redacting_twice_changes_nothing(text: str) -> None:
    redactor = Redactor([PLAIN, "redacted", "password"])
    once = redactor.text(text)
    assert redactor.text(once) == once


@pytest.mark.parametrize(
    "begun", ["\x1b", "\x1b[", "\x1b[3", "\x1b[1;", "\x9b", "\x1b \x1b[", "\x1b" * 80, "\x1b[3\0\0"]
)
def test_a_terminal_does_not_take_a_mark_for_the_end_of_a_sequence(redactor: Redactor, begun: str) -> None:
    """What took the value out took the sequence's end as well, when the value stood in it."""
    once = redactor.text(f"HF_TOKEN={begun}\ufffd3m{PLAIN}\n")
    assert PLAIN not in once
    assert "[redacted:" in bare(once)
    assert redactor.text(once) == once


@given(text=TEXTS, values=VALUES)
def test_no_known_value_stays_outside_a_mark(text: str, values: list[str]) -> None:
    out = Redactor(values).text(text)
    marks = out.replace("[redacted:", "\0")
    assert not [v for v in values if len(v.strip()) >= 6 and v in marks and v in text and "\0" not in v]


HOSTILE = [
    "token=", "token=/", 'token="', 'token:\\"', "eyJ-", "eyJ.", "eyJaaaaaaa.", "sk-", "hf_", "://a:",
    "://", "a:b@", "Bearer ", "curl -u ", "docker login -p", "wandb login --a ",
    "-----BEGIN " + "PRIVATE KEY-----", "A", "a/", "k_", "key ", "name: TOKEN\n ", "${", "$(", "<", "{{",
    "密码", "token,", "token = ", "secret" + " ", "0f", "\\\\", "_", "[redacted:", "[redacted:a]",
    "token=[redacted:a]x ", "token=)))", "'token',", '"token","value"', "%3D", "\x1b", "\x1b[", "\x1b ", "\x9b0",
    "token=\x1b", "\x1b[3[redacted:a]", "\ufffd",
]  # fmt: skip


@pytest.mark.parametrize("piece", HOSTILE)
def test_the_work_grows_with_the_length_and_not_with_its_square(piece: str) -> None:
    """Processor time of this thread, the best of three: 16 times the text is far from 256 times the work."""
    redactor = Redactor([PLAIN])

    def cost_s(length: int) -> float:
        text = (piece * (length // len(piece) + 1))[:length]
        runs = []
        for _ in range(3):
            start = time.thread_time()
            redactor.text(text)
            runs.append(time.thread_time() - start)
        return min(runs)

    assert cost_s(64_000) < 50 * cost_s(4_000) + 0.02
