"""A pod's log in bounded pieces: the cursor that the API does not have, rotation, lines that are not whole."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.clusters.base import LogPiece
from agent.clusters.kubernetes_api import Api
from agent.clusters.kubernetes_kept import Kept, without_credentials
from agent.clusters.kubernetes_logs import BYTES_MAX, cursor_of, keep, kept, read
from agent.clusters.kubernetes_options import Options
from agent.clusters.kubernetes_places import Place
from agent.redaction import Redactor
from tests.clusters.kubernetes.objects import ended, pod, waits
from tests.clusters.kubernetes.server import Emulator

pytest.importorskip("kubernetes", reason="the extra `kubernetes` is not installed")

PATH = "/api/v1/namespaces/lab/pods/run-x-abcde"
PLACE = Place("lab", "run")
KEY = " ".join(("PRIVATE", "KEY"))


class Lines:
    """A node agent with a log that the test writes."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, bytes]] = []
        self.dead_nodes: set[str] = set()

    def log(self, _: object) -> list[tuple[str, bytes]]:
        return self.lines

    def close(self) -> None:
        """Nothing runs here."""

    def say(self, *texts: str, second: int = 0, nano: int = 0) -> None:
        """Whole lines at a time; each a thousandth of a second later."""
        for place, text in enumerate(texts):
            self.add(f"{text}\n".encode(), second, nano + place * 1_000_000)

    def add(self, data: bytes, second: int, nano: int) -> None:
        self.lines.append((f"2031-02-03T04:{second // 60:02}:{second % 60:02}.{nano:09}Z", data))


@pytest.fixture
def log() -> Lines:
    return Lines()


@pytest.fixture
def emulator(log: Lines) -> Iterator[Emulator]:
    made = Emulator(control_plane=False)
    made.kubelet = log  # type: ignore[assignment]
    made.store.create("pods", pod(name="run-x-abcde"), "lab")
    yield made
    made.close()


@pytest.fixture
def api(emulator: Emulator, tmp_path: Path) -> Api:
    return Api(Options(kubeconfig=emulator.write_kubeconfig(tmp_path / "kubeconfig")), "kubernetes")


def piece(api: Api, lines: int = 200, cursor: str = "", *, head: bool = False, **about: Any) -> LogPiece:
    one = pod(name="run-x-abcde", **about)
    one["metadata"]["namespace"] = "lab"
    return read(api, PATH, one, lines=lines, cursor=cursor, head=head)


def test_lines_of_the_very_same_time_are_told_once(api: Api, log: Lines) -> None:
    for text in (b"a\n", b"b\n", b"c\n"):
        log.add(text, 1, 5)
    first = piece(api)
    log.add(b"d\n", 1, 5)
    log.add(b"e\n", 1, 6)
    then = piece(api, cursor=first.cursor)
    assert (first.text, then.text, then.truncated) == ("a\nb\nc\n", "d\ne\n", False)
    assert piece(api, cursor=then.cursor).text == ""


def test_a_line_that_was_taken_earlier_but_written_later_is_not_lost(api: Api, log: Lines) -> None:
    """Two streams of one container: times need not rise from line to line, across a second's end neither."""
    log.say("out", second=2, nano=100)
    first = piece(api)
    log.say("err", second=1, nano=999_999_000)
    assert piece(api, cursor=first.cursor).text == "err\n"


def test_a_log_that_was_rotated_is_told_from_where_it_begins_now(api: Api, log: Lines) -> None:
    log.say("a", "b", second=1)
    cursor = piece(api).cursor
    log.lines.clear()
    log.say("y", "z", second=9)
    then = piece(api, cursor=cursor)
    assert (then.text, then.truncated) == ("y\nz\n", True)


def test_too_much_since_the_cursor_is_the_newest_of_it(api: Api, log: Lines) -> None:
    log.say("first")
    cursor = piece(api).cursor
    for second in range(1, 60):
        log.say(*(f"{second}-{place}" for place in range(200)), second=second)
    then = piece(api, lines=3, cursor=cursor)
    assert (then.text, then.truncated) == ("59-197\n59-198\n59-199\n", True)
    assert piece(api, cursor=then.cursor).text == ""


def test_a_bar_that_never_ends_its_line_is_shown_but_not_passed(api: Api, log: Lines) -> None:
    log.say("start")
    log.add(b"10%\r20%\r", 1, 0)
    tail = piece(api)
    assert tail.text == "start\n10%\r20%\r"
    log.lines[-1] = (log.lines[-1][0], b"10%\r20%\r30%\n")
    assert piece(api, cursor=tail.cursor).text == "10%\r20%\r30%\n"
    log.add(b"last words", 2, 0)
    ends = piece(api, cursor=tail.cursor, state=ended(0), phase="Succeeded")
    assert ends.text == "10%\r20%\r30%\nlast words"


def test_one_endless_line_is_bounded(api: Api, log: Lines) -> None:
    log.say("begin")
    log.add(b"x" * (9 << 20) + b"end\n", 1, 0)
    log.say("after", second=2)
    tail = piece(api)
    assert len(tail.text.encode()) <= BYTES_MAX
    assert tail.text.endswith("after\n")
    assert tail.truncated
    head = piece(api, head=True)
    assert head.text == "begin\n"


def test_when_it_was_last_written_is_told(api: Api, log: Lines) -> None:
    log.say("a", second=7)
    assert str(piece(api).wrote_at) == "2031-02-03 04:00:07+00:00"


@pytest.mark.parametrize(
    "cursor", ["x", "[]", '["run-x-abcde"]', '["run-x-abcde", "never", 1]', '["other", "", 0]', "12"]
)
def test_a_cursor_that_is_not_ours_is_none(api: Api, log: Lines, cursor: str) -> None:
    log.say("a")
    assert piece(api, cursor=cursor).text == "a\n"


def test_a_new_pod_is_told_from_its_start(api: Api, log: Lines) -> None:
    log.say("a")
    cursor = piece(api).cursor
    assert piece(api, cursor=cursor.replace("abcde", "zzzzz")).text == "a\n"


def test_of_a_crash_loop_the_run_before_is_read(api: Api, log: Lines, emulator: Emulator) -> None:
    log.say("a")
    assert piece(api, state=waits("CrashLoopBackOff"), restarts=2).text == "a\n"
    assert emulator.calls[-1].query["previous"] == "true"


def test_without_a_node_nothing_is_asked(api: Api, emulator: Emulator) -> None:
    assert piece(api, phase="Pending", node="").ready is False
    assert emulator.calls == []


def test_what_is_kept_reads_like_the_log(api: Api, log: Lines) -> None:
    log.say(*map(str, range(9)))
    one = pod(name="run-x-abcde")
    data = keep(api, PATH, one)
    cursor = piece(api, lines=2).cursor
    log.say("9", second=1)
    later = keep(api, PATH, one)
    assert kept(data, where="w", lines=2).text == "7\n8\n"
    assert kept(data, where="w", lines=2, head=True).text == "0\n1\n"
    assert kept(data, where="w", lines=9, cursor=cursor).text == ""
    assert kept(later, where="w", lines=9, cursor=cursor).text == "9\n"


def test_what_is_kept_on_this_machine_holds_no_credentials(api: Api, log: Lines, tmp_path: Path) -> None:
    """By a value that is known, by a shape, and one that goes over several lines; cursors of before still hold."""
    key = [
        f"-----BEGIN {KEY}-----",
        *("MIIEvQIBADANBgkqh" + letter * 40 for letter in "abc"),
        f"-----END {KEY}-----",
    ]
    log.say("begun", *key, "pass known-value on", "token hf_" + "a1B2" * 8, "over")
    cursor = piece(api, lines=9).cursor
    log.say("after", second=1)
    keeps = Kept(tmp_path / "kept", "here", Redactor({"MY_KEY": "known-value"}).text)
    keeps.write(PLACE, keep(api, PATH, pod(name="run-x-abcde")))

    (file,) = (tmp_path / "kept").iterdir()
    assert not [word for word in ("MIIE", "known-value", "a1B2") if word in file.read_text()]
    data = keeps.read(PLACE)
    assert data is not None
    lines = kept(data, where="w", lines=99).text.splitlines()
    assert (lines[0], lines[-2:], lines[-4]) == ("begun", ["over", "after"], "pass [redacted:MY_KEY] on")
    assert len(lines) == 6
    assert kept(data, where="w", lines=99, cursor=cursor).text == "after\n"


@given(
    st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=12), max_size=8), st.integers(0, 3)
)
def test_lines_that_are_left_keep_their_times(texts: list[str], several: int) -> None:
    """Whatever a redaction does to lines: none is told at a later time than its own, those behind it at theirs."""
    lines = [line for text in texts for line in text.split("\n")] + ["x" for _ in range(several)] + ["last"]
    raw = "\n".join(f"2031-02-03T04:05:06.{place:09}Z {line}" for place, line in enumerate(lines))
    told = without_credentials(raw.encode(), lambda text: re.sub(r"x(\nx)*", "[redacted:x]", text)).decode()
    *_, end = told.split("\n")
    assert end == f"2031-02-03T04:05:06.{len(lines) - 1:09}Z last"
    assert "x" not in told.replace("[redacted:x]", "")


def test_the_head_of_what_is_kept_is_bounded(api: Api, log: Lines) -> None:
    log.say(*(letter * (BYTES_MAX // 2 - 1) for letter in "abc"))
    data = keep(api, PATH, pod(name="run-x-abcde"))
    assert len(kept(data, where="w", lines=3, head=True).text) == BYTES_MAX


TEXTS = st.lists(st.binary(max_size=12).filter(lambda data: b"\n" not in data), max_size=6)


@given(st.binary(max_size=200), st.text(max_size=40))
def test_no_bytes_and_no_cursor_break_it(data: bytes, cursor: str) -> None:
    kept(data, where="w", lines=5, cursor=cursor)
    cursor_of(cursor)


@given(st.lists(TEXTS, min_size=1, max_size=5), st.integers(1, 9))
def test_cursors_tell_every_line_once_whatever_is_in_it(batches: list[list[bytes]], step: int) -> None:
    raw, told, cursor, number = b"run\n", "", "", 0
    for batch in batches:
        for line in batch:
            number += step
            raw += f"2031-02-03T04:05:{number // 7 % 60:02}.{number:09}Z ".encode() + line + b"\n"
        found = kept(raw, where="w", lines=100, cursor=cursor)
        told, cursor = told + found.text, found.cursor or cursor
    assert told == b"".join(line + b"\n" for batch in batches for line in batch).decode(errors="replace")
