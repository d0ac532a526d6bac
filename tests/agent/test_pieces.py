"""Parts of large logs: bounded, in order, each line once and under its own number."""

from __future__ import annotations

import builtins
import re
import types
from collections.abc import Iterator

import pytest

from agent.pieces import (
    BLOCK_BYTES,
    HEAD_BYTES,
    SHAPES_MAX,
    TAIL_BYTES,
    TROUBLE,
    WHOLE_BYTES_MAX,
    WINDOW_BYTES_AFTER,
    WINDOW_BYTES_BEFORE,
    pieces,
    searcher,
)

LINE = "2031-04-05 06:07:08 INFO trainer: step {} of 9000000 | figure {:.4f}\n"


def plain(count: int) -> list[str]:
    return [LINE.format(at, at * 0.5) for at in range(count)]


def cut(data: bytes, size: int) -> Iterator[bytes]:
    for at in range(0, len(data), size):
        yield data[at : at + size]


def test_a_small_file_is_kept_whole() -> None:
    text = "".join(plain(500))
    kept = pieces([text.encode()])
    assert kept.whole
    assert [line.text for line in kept.lines] == text.splitlines()
    assert (kept.lines_read, kept.bytes_read) == (500, len(text))


def test_of_a_large_file_head_tail_and_trouble_are_kept_with_their_numbers() -> None:
    written = plain(60_000)
    written[30_000] = "RuntimeError: the middle of a long night\n"
    data = "".join(written).encode()
    assert len(data) > 3 * WHOLE_BYTES_MAX
    kept = pieces(cut(data, 70_001))
    assert not kept.whole
    assert all(line.text + "\n" == written[line.number - 1] for line in kept.lines)
    numbers = [line.number for line in kept.lines]
    assert numbers == sorted(set(numbers))
    assert {1, 30_001, 60_000} <= set(numbers)
    assert (kept.lines_read, kept.bytes_read) == (60_000, len(data))


def test_what_is_kept_is_bounded_whatever_the_file() -> None:
    data = "".join(
        f"{chr(97 + at % 26) * (at % 50)} error {'z' * (at % 97)}\n" for at in range(150_000)
    ).encode()
    kept = pieces([data])
    size = sum(len(line.text) + 1 for line in kept.lines)
    assert size <= HEAD_BYTES + TAIL_BYTES + SHAPES_MAX * (WINDOW_BYTES_BEFORE + WINDOW_BYTES_AFTER + 200)


def test_the_size_of_the_chunks_changes_nothing() -> None:
    data = "".join([*plain(30_000), "worker failed: no answer\n", *plain(30_000)]).encode()
    assert pieces([data]) == pieces(cut(data, BLOCK_BYTES)) == pieces(cut(data, 999_983))


def test_one_endless_line_of_refreshes_keeps_its_head_and_its_end() -> None:
    data = "\r".join(f"bar {at}/400000" for at in range(400_000)).encode()
    kept = pieces([data])
    assert kept.lines_read == 1
    assert {line.number for line in kept.lines} == {1}
    assert kept.lines[0].text == "bar 0/400000"
    assert kept.lines[-1].text == "bar 399999/400000"


def test_noise_of_one_shape_does_not_hide_a_new_trouble_after_it() -> None:
    noise = [f"WARNING: figure {at} is unusual\n" for at in range(80_000)]
    noise[40_000] = "ValueError: something else\n"
    kept = pieces(["".join(noise).encode()])
    assert any(line.number == 40_001 for line in kept.lines)


def test_redaction_sees_the_text_before_anything_is_stripped() -> None:
    seen: list[str] = []

    def redact(text: str) -> str:
        seen.append(text)
        return text.replace("\x1b[1mhidden", "[redacted]")

    kept = pieces([b"a \x1b[1mhidden word\n"], redact=redact)
    assert seen == ["a \x1b[1mhidden word\n"]
    assert [line.text for line in kept.lines] == ["a [redacted] word"]


def test_the_fingerprint_tells_new_output() -> None:
    text = "".join(plain(50_000)).encode()
    assert pieces([text]).fingerprint == pieces([text]).fingerprint
    assert pieces([text]).fingerprint != pieces([text + b"more\n"]).fingerprint
    assert pieces([b"\n \n"]).fingerprint == ""


def test_without_the_fast_engine_the_standard_library_finds_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    block = b"all well\nthen it failed\n"
    fast = searcher(TROUBLE)(block, 0)
    real = builtins.__import__

    def without(name: str, *rest: object, **known: object) -> types.ModuleType:
        if name == "re2":
            raise ImportError(name)
        return real(name, *rest, **known)  # type: ignore[arg-type]

    monkeypatch.setattr(builtins, "__import__", without)
    slow = searcher(TROUBLE)(block, 0)
    assert isinstance(slow, re.Match)
    assert fast is not None
    assert slow.start() == fast.start()


def test_bad_bytes_and_an_empty_file_are_read() -> None:
    assert pieces([]).lines == []
    assert pieces([b"\xff\xfe broken \x00 bytes\n"]).lines_read == 1
