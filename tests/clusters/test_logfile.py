"""Pieces of a log that is still being written: bounded, whole lines, each told once."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.clusters import logfile
from agent.clusters.base import LogPiece

WROTE = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
SOON, LATER = WROTE + timedelta(seconds=0.1), WROTE + timedelta(minutes=1)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "log"


def put(log: Path, data: bytes) -> None:
    log.write_bytes(data)
    os.utime(log, (WROTE.timestamp(), WROTE.timestamp()))


def read(log: Path, *, now: datetime = SOON, lines: int = 100, **how: object) -> LogPiece:
    return logfile.read(log, lines=lines, now=now, **how)  # type: ignore[arg-type]


def test_a_file_that_is_not_there_is_not_ready(log: Path) -> None:
    piece = read(log, cursor="7")
    assert (piece.text, piece.ready, piece.cursor, piece.wrote_at) == ("", False, "7", None)


def test_an_empty_file_is_ready(log: Path) -> None:
    put(log, b"")
    piece = read(log)
    assert (piece.text, piece.ready, piece.truncated, piece.wrote_at) == ("", True, False, WROTE)


def test_an_unfinished_line_waits_until_it_is_quiet_or_over(log: Path) -> None:
    put(log, b"one\ntwo\nPassword: ")
    assert read(log).text == "one\ntwo\n"
    assert read(log, now=LATER).text == "one\ntwo\nPassword: "
    assert read(log, ended=True).text == "one\ntwo\nPassword: "
    assert read(log, now=LATER, lines=1).text == "Password: "


def test_a_bar_that_only_goes_back_is_told_up_to_its_last_step(log: Path) -> None:
    put(log, b"start\n 10%\r 20%\r 3")
    piece = read(log)
    assert piece.text == "start\n 10%\r 20%\r"
    put(log, b"start\n 10%\r 20%\r 30%\r")
    assert read(log, cursor=piece.cursor).text == " 30%\r"


def test_a_shorter_file_was_begun_anew(log: Path) -> None:
    put(log, b"a long first life\n")
    cursor = read(log).cursor
    put(log, b"again\n")
    assert read(log, cursor=cursor).text == "again\n"


def test_what_a_cursor_leaves_out_is_said(log: Path) -> None:
    put(log, b"".join(b"line %d\n" % number for number in range(10)))
    piece = read(log, cursor="7", lines=2)
    assert (piece.text, piece.truncated) == ("line 8\nline 9\n", True)
    assert read(log, cursor=piece.cursor).truncated is False


@pytest.mark.parametrize("cursor", ["nonsense", "-3", "9" * 30])
def test_a_foreign_cursor_is_the_start(log: Path, cursor: str) -> None:
    put(log, b"one\n")
    assert read(log, cursor=cursor).text == "one\n"


def test_one_line_without_end_is_told_within_the_bound(log: Path) -> None:
    put(log, "é".encode() * logfile.BYTES_MAX)
    piece = read(log)
    assert piece.truncated
    assert set(piece.text) == {"é"}
    assert len(piece.text.encode()) <= logfile.BYTES_MAX
    head = read(log, head=True)
    assert len(head.text.encode()) <= logfile.BYTES_MAX + 3


@given(st.lists(st.text(st.characters(exclude_characters="\r\n"), max_size=8), max_size=12), st.data())
def test_in_whatever_pieces_it_is_written_it_is_read_once(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str], data: st.DataObject
) -> None:
    log = tmp_path_factory.mktemp("pieces") / "log"
    whole = "".join(f"{line}\n" for line in lines).encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=4)))
    told, cursor = "", ""
    for end in [*cuts, len(whole)]:
        put(log, whole[:end])
        piece = read(log, cursor=cursor)
        told, cursor = told + piece.text, piece.cursor
        assert not piece.truncated
    assert told == whole.decode()
