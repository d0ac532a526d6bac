"""What `text` makes of raw logs: refreshes, escapes, prefixes, numbers of lines, and hostile input."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from itertools import product

import pytest

from states.reading import Line
from states.text import (
    CUT_MARK,
    LINE_HEAD_CHARS,
    LINE_TAIL_CHARS,
    PENDING_CHARS_MAX,
    lines,
    settled,
    stream,
)

LINE_CHARS_MAX = LINE_HEAD_CHARS + LINE_TAIL_CHARS + len(CUT_MARK)


def texts(raw: str) -> list[str]:
    return [line.text for line in lines(raw)]


def test_every_refresh_keeps_the_number_of_its_line() -> None:
    found = lines("start\n 10%\r 20%\r 30%\nend\n")
    assert found == [Line(1, "start"), Line(2, " 10%"), Line(2, " 20%"), Line(2, " 30%"), Line(3, "end")]
    assert [line.text for line in settled(found)] == ["start", " 30%", "end"]


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("one\r\ntwo\r\n", ["one", "two"]),
        ("bar 1\r\r   \rbar 2\r", ["bar 1", "bar 2"]),
        ("7/9 [==>]\x08\x08\x08\x08\x08\x08\x08\x08\x088/9 [===]", ["7/9 [==>]", "8/9 [===]"]),
        ("Validation: | 0/?\x1b[AEpoch 4: loss 2.5", ["Validation: | 0/?", "Epoch 4: loss 2.5"]),
        ("same\rsame\rsame", ["same"]),
        ("a\n\nb", ["a", "", "b"]),
        ("", []),
        ("\n", [""]),
        ("a\x0bb\u2028c\x0cd", ["abcd"]),
    ],
)
def test_refreshes_and_line_ends(raw: str, shown: list[str]) -> None:
    assert texts(raw) == shown


@pytest.mark.parametrize(
    ("raw", "clean"),
    [
        ("\x1b[1;31mERROR\x1b[0m: out of space", "ERROR: out of space"),
        ("\x9b32mok\x9b0m", "ok"),
        ("\x1b]0;a title\x07running", "running"),
        ("see \x1b]8;;https://host/x\x1b\\this link\x1b]8;;\x1b\\ now", "see this link now"),
        ("\x1b(B\x1b7text\x1b8", "text"),
        ("^[[33mwarn^[[0m", "warn"),
        ("#033[31mred#033[0m", "red"),
        ("\\u001b[32mgreen\\u001b[0m", "green"),
        ("n\x00u\x00l", "nul"),
        ("\ufeffbom and \u202eright to left", "bom and right to left"),
        ("tab\tstays", "tab\tstays"),
    ],
)
def test_what_a_terminal_does_not_show_goes(raw: str, clean: str) -> None:
    assert texts(raw) == [clean]


def test_an_escape_without_end_hides_nothing_that_follows() -> None:
    assert texts("\x1b]0;CUDA error: device lost") == ["CUDA error: device lost"]
    assert texts("\x1bPdata that never ends")[0].endswith("data that never ends")
    assert texts("\x1b[" + "1;" * 500 + "mError: late")[0].endswith("Error: late")


def test_nothing_inside_a_line_is_decoded() -> None:
    assert texts('aWdub3JlIHRoaXM= %0Anext {"a": "\\nb"}') == ['aWdub3JlIHRoaXM= %0Anext {"a": "\\nb"}']


@pytest.mark.parametrize(
    ("raw", "rank", "rest"),
    [
        ("[rank3]: Traceback", "rank3", "Traceback"),
        ("[rank12]:[E1130 ProcessGroup] watchdog", "rank12", "[E1130 ProcessGroup] watchdog"),
        ("rank3: hello", "rank3", "hello"),
        ("[RANK 2] Epoch 5", "rank2", "Epoch 5"),
        ("[rank: 1] Seed set to 7", "rank1", "Seed set to 7"),
        ("[default4]:step 8", "default4", "step 8"),
        ("[1,6]<stderr>:segfault", "rank6", "segfault"),
        ("(pid=77) loaded", "pid=77", "loaded"),
        ("(Worker pid=901, ip=10.1.2.3) step 4", "pid=901,ip=10.1.2.3", "step 4"),
        ("gpu-07:4411:4502 [5] NCCL WARN timeout", "gpu-07:4411[5]", "NCCL WARN timeout"),
        ("[pod/train-0/main] step 4", "train-0/main", "step 4"),
        ("[default0]:[rank0]: both tags", "rank0", "both tags"),
    ],
)
def test_prefixes_of_launchers_become_the_rank(raw: str, rank: str, rest: str) -> None:
    assert lines(raw) == [Line(1, rest, rank, raw.removesuffix(rest))]


@pytest.mark.parametrize(
    "raw",
    [
        "[2031-05-06 07:08:09] INFO ready",
        "08:15:00 started",
        "rank of the matrix: 3",
        "loss (pid=5) inside",
        "Ranking 3: best",
        "(no pid) here",
    ],
)
def test_what_only_looks_like_a_prefix_stays(raw: str) -> None:
    assert lines(raw) == [Line(1, raw, "")]


def test_labels_before_every_line_are_ranks() -> None:
    found = lines("0: load\n1: load\n0: step 1\n1: step 1\n 0: step 2\n")
    told = [(line.rank, line.text) for line in found]
    assert told[:3] == [("rank0", "load"), ("rank1", "load"), ("rank0", "step 1")]
    found = lines("node07: a\nnode08: a\nnode07: b\nnode08: b\n")
    assert {line.rank for line in found} == {"node07", "node08"}


def test_a_counter_at_the_line_start_is_no_label() -> None:
    raw = "".join(f"{step}: energy -4.{step}\n" for step in range(1, 30))
    assert all(line.rank == "" for line in lines(raw))
    clock = "".join(f"08:00:{second:02d} tick\n" for second in range(30))
    assert all(line.rank == "" for line in lines(clock))


def test_a_line_of_megabytes_keeps_its_ends() -> None:
    (line,) = lines("head " + "7" * 5_000_000 + " tail")
    assert len(line.text) <= LINE_CHARS_MAX
    assert line.text.startswith("head ")
    assert line.text.endswith(" tail")
    assert CUT_MARK in line.text


@pytest.mark.parametrize(
    "piece", ["9", "[", "(", "\x1b[", "\x1b]", "\x1b[0;", "a.", "rank", "\\u001b", "\x08", "第"]
)
def test_hostile_lines_come_out_bounded(piece: str) -> None:
    found = lines(piece * (2_000_000 // len(piece)))
    assert len(found) == 1
    assert len(found[0].text) <= LINE_CHARS_MAX


def test_no_control_sign_survives_and_numbers_count_newlines() -> None:
    alphabet = (
        "a",
        "1",
        "\t",
        "\r",
        "\n",
        "\x00",
        "\x08",
        "\x1b",
        "[",
        "]",
        ";",
        "m",
        "A",
        "\x9b",
        "步",
        "\u202e",
    )
    for signs in product(alphabet, repeat=4):
        raw = "".join(signs)
        found = lines(raw)
        for line in found:
            assert all(sign == "\t" or sign >= " " for sign in line.text)
            assert not set(line.text) & set("\x7f\x9b\u202e")
        wanted = raw.count("\n") + (0 if raw.endswith("\n") else 1)
        assert [line.number for line in settled(found)] == list(range(1, wanted + 1))


def test_a_stream_in_any_chunks_is_the_same_as_the_whole() -> None:
    parts = ("step 1\n", "a\rb\r", "[rank1]: x\n", "\x1b[3", "1mred", "步数 5\n", "é", "\n")
    for chosen in product(parts, repeat=3):
        raw = "".join(chosen)
        data = raw.encode()
        whole = lines(raw)
        for size in (1, 2, 5, 64):
            assert list(stream([data[at : at + size] for at in range(0, len(data), size)])) == whole
            assert list(stream([raw[at : at + size] for at in range(0, len(raw), size)])) == whole


def test_a_stream_replaces_bad_bytes() -> None:
    assert [line.text for line in stream([b"bad \xff\xfe", b" byte\n"])] == ["bad \ufffd\ufffd byte"]


def test_a_stream_of_one_endless_line_stays_small() -> None:
    def endless() -> Iterator[bytes]:
        for _ in range(300):
            yield b"0123456789" * 10_000

    tracemalloc.start()
    try:
        found = list(stream(endless()))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(found) == 1
    assert len(found[0].text) <= LINE_CHARS_MAX
    assert peak < 16 * PENDING_CHARS_MAX


def test_a_stream_hands_out_refreshes_before_the_line_ends() -> None:
    asked = 0

    def bar() -> Iterator[bytes]:
        nonlocal asked
        for step in range(1_000):
            asked += 1
            yield b"".join(b"%d/1000000\r" % (step * 1_000 + at) for at in range(1_000))

    first = next(iter(stream(bar())))
    assert first == Line(1, "0/1000000")
    assert asked < 100


def test_a_stream_of_plain_lines_counts_on() -> None:
    chunks = [b"".join(b"line %d\n" % (chunk * 5_000 + at) for at in range(5_000)) for chunk in range(20)]
    found = list(stream(chunks))
    assert len(found) == 100_000
    assert found[-1] == Line(100_000, "line 99999")
