"""Tracebacks as they stand in logs: chained, grouped, boxed, prefixed, woven, cut off."""

from __future__ import annotations

import pytest

from states import text
from states.logs import tracebacks
from states.logs.tracebacks import Tracebacks


def found(log: str) -> Tracebacks:
    return tracebacks.find(text.lines(log))


def names(log: str) -> list[list[str]]:
    return [[link.name for link in chain.links] for chain in found(log).chains]


PLAIN = """Traceback (most recent call last):
  File "/w/a.py", line 3, in main
    go(1)
    ^^^^^
  File "/w/b.py", line 9, in go
    raise ValueError("out of memory")
ValueError: seven is odd
after
"""


def test_a_block_ends_at_its_exception_line() -> None:
    (chain,) = found(PLAIN).chains
    (link,) = chain.links
    assert (link.at, link.name, link.message) == (6, "ValueError", "seven is odd")
    assert link.frames == ("/w/a.py in main", "/w/b.py in go")
    assert (chain.first, chain.last) == (0, 6)


def test_source_lines_are_known_as_code() -> None:
    assert found(PLAIN).code == {0, 1, 2, 3, 4, 5}


def test_during_handling_and_direct_cause_make_one_chain() -> None:
    log = (
        PLAIN.replace("after\n", "\nDuring handling of the above exception, another exception occurred:\n\n")
        + PLAIN.replace("ValueError: seven", "KeyError: seven").replace(
            "after\n", "\nThe above exception was the direct cause of the following exception:\n\n"
        )
        + PLAIN.replace("ValueError: seven", "demo.run.StageError: seven")
    )
    (chain,) = found(log).chains
    assert [(link.name, link.how) for link in chain.links] == [
        ("ValueError", ""),
        ("KeyError", "context"),
        ("StageError", "cause"),
    ]


def test_two_blocks_without_a_connector_are_two_chains() -> None:
    assert names(PLAIN + PLAIN) == [["ValueError"], ["ValueError"]]


def test_ranks_are_read_apart() -> None:
    woven = []
    for one, other in zip(
        PLAIN.split("\n"), PLAIN.replace("ValueError: seven", "KeyError: 7").split("\n"), strict=True
    ):
        woven += [f"[rank0]: {one}", f"[rank1]: {other}"]
    chains = found("\n".join(woven)).chains
    assert sorted((chain.rank, chain.links[0].name) for chain in chains) == [
        ("rank0", "ValueError"),
        ("rank1", "KeyError"),
    ]
    assert all(at % 2 == chains[0].first % 2 for at in chains[0].members)


@pytest.mark.parametrize(
    "prefix",
    [
        "ERROR 01-02 03:04:05 [core.py:{n}] ",
        "2024-05-06 07:08:0{n},123 - demo - ERROR - ",
        "    ",
        "[{n}7.5s] ",
    ],
)
def test_a_prefix_before_every_line_is_seen_through(prefix: str) -> None:
    log = "".join(prefix.format(n=n) + line + "\n" for n, line in enumerate(PLAIN.split("\n")[:7]))
    (chain,) = found(log).chains
    assert [(link.name, link.message) for link in chain.links] == [("ValueError", "seven is odd")]
    assert len(chain.links[0].frames) == 2


def test_a_block_glued_to_a_bar_is_seen() -> None:
    assert names(" 52%|#####  | 26/50 [01:10<01:05]" + PLAIN) == [["ValueError"]]


def test_a_block_that_lost_its_indents_and_quotes_on_the_way_is_seen() -> None:
    flat = "".join(f"ERROR [core.py:7] {line.strip()}\n" for line in PLAIN.replace('"', "”").split("\n")[:7])
    assert names(flat.replace("File ”", "File “")) == [["ValueError"]]


def test_a_block_without_its_head_is_seen() -> None:
    assert names(PLAIN.split("\n", 3)[3]) == [["ValueError"]]


def test_a_block_without_its_end_tells_nothing() -> None:
    cut = "\n".join(PLAIN.split("\n")[:5])
    assert found(cut).chains == ()
    assert found(cut).code == {0, 1, 2, 3, 4}


def test_a_crash_dump_of_frames_is_no_exception() -> None:
    dump = (
        "Fatal Python error: Segmentation fault\n\nCurrent thread 0x7 (most recent call first):\n"
        '  File "/w/a.py", line 3 in go\nNext thing\n'
    )
    assert found(dump).chains == ()


def test_further_lines_of_a_message_belong_to_its_chain() -> None:
    (chain,) = found(PLAIN.replace("after", "\tsize of w is wrong\n  size of b is wrong\nafter")).chains
    assert chain.last == 8


def test_a_message_that_lost_its_class_is_kept() -> None:
    (chain,) = found(PLAIN.replace("ValueError: seven is odd", "seven is odd, she said")).chains
    assert (chain.links[0].name, chain.links[0].message) == ("", "seven is odd, she said")


def test_what_is_printed_as_ignored_is_quiet() -> None:
    assert found("Exception ignored in: <function D.__del__ at 0x1>\n" + PLAIN).chains[0].quiet
    assert found("".join(f"WARNING x: {line}\n" for line in PLAIN.split("\n")[:7])).chains[0].quiet
    assert not found(PLAIN).chains[0].quiet


def test_a_task_that_nobody_waited_for_is_survived() -> None:
    log = "Task exception was never retrieved\nfuture: <Task finished name='T-3'>\n" + PLAIN
    assert found(log).chains[0].survived


def test_a_worker_s_original_follows_what_caught_it() -> None:
    log = PLAIN.replace(
        "seven is odd\nafter\n", "Caught ValueError in DataLoader worker process 0.\n"
    ) + PLAIN.replace("Traceback", "Original Traceback")
    assert names(log) == [["ValueError", "ValueError"]]


def test_a_remote_task_s_own_frames_follow_its_wrapper() -> None:
    log = PLAIN.replace(
        "ValueError: seven is odd\nafter\n",
        "ray.exceptions.RayTaskError(ValueError): ray::f() (pid=7)\n"
        '  File "/w/c.py", line 2, in f\nValueError: eight\n',
    )
    (chain,) = found(log).chains
    assert [(link.name, link.message) for link in chain.links][1] == ("ValueError", "eight")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("ValueError: odd", ("ValueError", "odd")),
        ("demo.errors.StageError", ("StageError", "")),
        ("socket.gaierror: [Errno -2] no", ("gaierror", "[Errno -2] no")),
        ("Note: odd", None),
        ("12: error", None),
        ("an Error occurred: odd", None),
    ],
)
def test_an_exception_line_is_known_by_its_look(line: str, expected: tuple[str, str] | None) -> None:
    assert tracebacks.raised(line) == expected
