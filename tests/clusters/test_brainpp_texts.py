"""The texts of Brain++'s tools: what is read out of them, and what hostile names, jobs and logs cannot put in."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from agent.clusters import brainpp_capacity, brainpp_logs
from agent.clusters.brainpp import normalise
from agent.clusters.brainpp_logs import Had
from agent.clusters.brainpp_parse import SAFE_NAME, created, names_it, predicted, quotas, shown, was_cut
from agent.clusters.brainpp_words import PHASES, refusal
from states.credentials import Pair
from states.observation import ENDED, Phase, Waiting

STAMP = "06-07 22:34:30 [INFO] "
NAMES = some.from_regex(r"[a-z][a-z0-9.-]{0,39}", fullmatch=True)
WORDS = some.sampled_from(
    [*map(str.capitalize, PHASES), "Unknown", "Deleting", "Suspended", "Timeout", "Odd"]
)


def header(name: str, word: str, show: str = "demo") -> str:
    return f"{STAMP}rjob {name} (showname={show}): {word}"


def task(replicas: int, **counts: int) -> str:
    kinds = ("active", "succeeded", "failed", "created_failed", "pending", "stopped")
    return f"{STAMP}  |- task t0: {replicas} replicas { {kind: counts.get(kind, 0) for kind in kinds} }"


# --- jobs --------------------------------------------------------------------------------------------------


def test_a_waiting_job_is_not_taken_for_a_succeeded_one() -> None:
    text = "\n".join([header("demo-12345678", "Inqueue"), task(2, pending=2)])
    (job,) = shown(text)
    assert (job.name, job.showname, job.word, job.replicas, job.active) == (
        "demo-12345678",
        "demo",
        "Inqueue",
        2,
        0,
    )
    assert normalise(job._asdict())["phase"] is Phase.pending


def test_a_replica_names_its_node_whatever_stands_behind_it() -> None:
    text = "\n".join(
        [header("a", "Running"), task(1, active=1), f"{STAMP}  |- replica a-x1: RUNNING, node-a1, 2 h"]
    )
    assert shown(text)[0].node == "node-a1"


@given(some.lists(some.tuples(NAMES, WORDS), max_size=8, unique_by=lambda pair: pair[0]), some.booleans())
def test_every_header_is_read_and_nothing_else(jobs: list[tuple[str, str]], coloured: bool) -> None:
    lines = [line for name, word in jobs for line in (header(name, word), task(3, failed=1, active=2))]
    text = "\n".join(f"\x1b[32m{line}\x1b[0m" if coloured else line for line in lines)
    assert [(job.name, job.word) for job in shown(text)] == jobs


@given(NAMES, some.text(max_size=200))
def test_no_text_around_a_header_changes_it(name: str, noise: str) -> None:
    noise = "".join(noise.splitlines()).replace("rjob", "")
    found = shown(f"{noise}\n{header(name, 'Running')}\n{noise}")
    assert [(job.name, job.word) for job in found] == [(name, "Running")]


@pytest.mark.parametrize(
    "name", ["succeeded", "failed-running", "train-token-a0", "stopped-a0-0", "rjob", "not-found", "password"]
)
def test_a_name_that_reads_like_a_word_is_a_name(name: str) -> None:
    (job,) = shown(header(name, "Starting", show=name))
    assert (job.name, job.word) == (name, "Starting")


@pytest.mark.parametrize(
    "line", ["demo: Running", "status: Succeeded", "{'succeeded': 1}", "rjob demo", "rjob a b: X"]
)
def test_what_is_no_header_is_no_job(line: str) -> None:
    assert shown(line) == []


def test_a_line_that_speaks_of_a_job_and_cannot_be_read_is_found() -> None:
    assert names_it(f"{STAMP}rjob demo-1 is odd", "demo-1") == f"{STAMP}rjob demo-1 is odd"
    assert names_it(f"{STAMP}rjob demo-12 is odd", "demo-1") == ""


@given(some.text(max_size=400))
def test_no_text_fails(text: str) -> None:
    shown(text), predicted(text), quotas(text), created(text, "demo"), was_cut(text, 1)
    assert normalise({"line": text})["phase"] in Phase


@pytest.mark.parametrize("text", [" " * 20_000, "rjob " * 5_000, "(" * 20_000, "[" * 20_000, "1/" * 10_000])
def test_no_text_is_slow(text: str) -> None:
    shown(text), predicted(text), quotas("insufficient group quota" + text), created(text, "demo")


# --- what a submit says ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (f"{STAMP}created rjob_name: demo", "demo"),
        (f"WARNING: old\n{STAMP}created rjob_name: demo-12345678\n", "demo-12345678"),
        ("created rjob_name: other", ""),
        ("created rjob_name: other\ncreated rjob_name: demo", "demo"),
        ("created rjob_name: demo2", ""),
        ("echo created rjob_name: demo && rm", ""),
        ("", ""),
    ],
)
def test_the_created_name_is_ours_or_none(text: str, name: str) -> None:
    assert created(text, "demo") == name


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        ("任务数量统计\n- 总副本数量：4\n- 可调度数量：1\n- 不可调度数量：3", (1, 4)),
        ("总副本数量: 4 不可调度数量: 3 可调度数量: 1", (1, 4)),
        ("schedulable: 0/2", (0, 2)),
        ("12/31/2026", None),
        ("fine", None),
    ],
)
def test_counts_of_a_prediction(text: str, counts: tuple[int, int] | None) -> None:
    assert predicted(text) == counts


@pytest.mark.parametrize(
    ("text", "rc", "told"),
    [
        ("insufficient group quota: cpu : 3073/3072 memory : 10.5Gi/11.0Gi", 1, ("scheduling.quota", True)),
        ("insufficient group quota: nvidia.com/gpu : 20/5", 1, ("scheduling.unsatisfiable", False)),
        ("insufficient group quota: memory : 40.0Gi/3.5Gi", 1, ("scheduling.unsatisfiable", False)),
        ("does not pass quotaCheck: denied the request", 1, ("scheduling.quota", True)),
        ("无可用机器, 资源不足", 1, ("scheduling.capacity", True)),
        ("user has no right to operate[use] it", 1, ("auth.denied", False)),
        ("mongo: no documents in result", 1, ("scheduling.unsatisfiable", False)),
        ("rjob submit: error: unrecognized arguments: --timed-out", 2, ("command.bad_argument", False)),
        ("HTTP 407, forbidden by the proxy", 1, None),
        ("forbidden? connection reset by peer", 1, None),
        ('rjobs "demo" already exists', 1, None),
        ("boom", 1, None),
    ],
)
def test_refused_is_said_only_where_the_words_leave_no_doubt(
    text: str, rc: int, told: tuple[str, bool] | None
) -> None:
    found = refusal(text, rc, asked={"cpu": 16, "memory": 4 * 2.0**30, "gpu": 8})
    assert (tuple(found) if found else None) == told


# --- words -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("native", "fields"),
    [
        ({"line": ""}, {"phase": Phase.gone}),
        ({}, {"phase": Phase.gone}),
        ({"word": "Created"}, {"phase": Phase.pending, "held": False}),
        ({"line": header("a", "Inqueue")}, {"phase": Phase.pending, "waiting": Waiting.wait}),
        ({"word": "Inqueue", "events": ["x is workspace type"]}, {"waiting": Waiting.never}),
        ({"word": "Inqueue", "events": ["has no right"]}, {"waiting": Waiting.held, "held": True}),
        ({"word": "Inqueue", "events": ["Waiting for resources to be preempted"]}, {"phase": Phase.pending}),
        ({"word": "Starting"}, {"phase": Phase.starting}),
        ({"word": "Restarting"}, {"phase": Phase.starting}),
        ({"word": "Running", "replicas": 4, "active": 4}, {"phase": Phase.running, "replicas_ready": 4}),
        ({"word": "Running", "replicas": 4, "active": 3}, {"phase": Phase.starting}),
        ({"word": "Running", "exit_code": 0}, {"phase": Phase.running, "finishing": True}),
        ({"word": "Killing"}, {"phase": Phase.running, "finishing": True}),
        ({"word": "Succeeded", "exit_code": 0}, {"phase": Phase.succeeded, "confirmed": True}),
        ({"word": "Succeeded"}, {"phase": Phase.succeeded, "exit_code": None, "confirmed": False}),
        (
            {"word": "Failed", "exit_code": 137, "signal": 9},
            {"phase": Phase.failed, "cause": "process.killed"},
        ),
        ({"word": "Failed", "exit_code": 2}, {"phase": Phase.failed, "cause": "", "exit_code": 2}),
        ({"word": "Failed", "exit_code": 2, "events": ["replica is preempted"]}, {"phase": Phase.failed}),
        ({"word": "Failed", "events": ["replica is preempted by a normal job"]}, {"phase": Phase.preempted}),
        ({"word": "Stopped", "events": ["pod evicted"]}, {"phase": Phase.preempted, "reason": "pod evicted"}),
        ({"word": "Stopped", "events": ["Waiting for resources to be preempted"]}, {"phase": Phase.stopped}),
        ({"word": "Killed"}, {"phase": Phase.stopped}),
        ({"word": "CreatedFailed"}, {"phase": Phase.failed}),
        ({"word": "Unknown"}, {"phase": Phase.unknown, "native": "Unknown"}),
        ({"word": "Deleting"}, {"phase": Phase.unknown}),
        ({"word": "Timeout", "rest": "after 3 h"}, {"phase": Phase.unknown, "native": "Timeout after 3 h"}),
    ],
)
def test_native_words(native: dict[str, Any], fields: dict[str, Any]) -> None:
    found = normalise(native)
    assert {name: found[name] for name in fields} == fields


@given(some.text(min_size=1, max_size=30), some.lists(some.text(max_size=60), max_size=3))
def test_a_word_that_is_not_in_the_table_ends_nothing(word: str, events: list[str]) -> None:
    if word.lower() not in PHASES:
        assert normalise({"word": word, "events": events})["phase"] not in ENDED | {
            Phase.preempted,
            Phase.gone,
        }


# --- queues ------------------------------------------------------------------------------------------------


def queue(name: str, capability: dict[str, Any], allocated: dict[str, Any], **status: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "labels": {"filler": "x" * 200}},
        "spec": {"capability": capability},
        "status": {"allocated": allocated, **status},
    }


QUEUES = [
    queue("lab-a-team-gpu-2", {"nvidia.com/gpu": 64}, {}),
    queue("lab-a-team-gpu", {"nvidia.com/gpu": "16", "cpu": "96500m", "memory": "1Ti"},
          {"nvidia.com/gpu": "9", "cpu": "1500m", "memory": f"{2**39}"}, pending=2, inqueue=1),
    queue("lab-a-team-cpu", {"nvidia.com/gpu": "8", "cpu": 4}, {"cpu": 7}),
]  # fmt: skip


def test_a_group_is_matched_exactly_and_in_our_units() -> None:
    queues = brainpp_capacity.parse(json.dumps({"items": QUEUES}))
    assert queues is not None
    room = brainpp_capacity.capacity_of(queues, Pair("lab-a", "team_gpu"))
    assert room is not None
    assert (room.free_gpu, room.total_gpu, room.free_cpu, room.total_cpu, room.queued) == (
        7,
        16,
        95.0,
        96.5,
        3,
    )
    assert (room.free_memory_mib, room.total_memory_mib, room.block_gpu) == (2**19, 2**20, None)
    assert brainpp_capacity.capacity_of(queues, Pair("lab-a", "team")) is None


def test_a_cpu_group_tells_no_gpus_and_never_less_than_nothing() -> None:
    room = brainpp_capacity.capacity_of(QUEUES, Pair("lab-a", "team-cpu"))
    assert room is not None
    assert (room.free_gpu, room.total_gpu, room.free_cpu, room.free_memory_mib) == (None, None, 0.0, None)


@pytest.mark.parametrize("cut", [0, 100, 300, -1, -20])
def test_an_answer_that_is_cut_short_is_none(cut: int) -> None:
    assert brainpp_capacity.parse(json.dumps({"items": QUEUES})[:cut]) is None


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1500m", 1.5),
        ("2Ki", 2048.0),
        ("3G", 3e9),
        (7, 7.0),
        ("1e3", 1000.0),
        ("x", None),
        ("", None),
        (None, None),
    ],
)
def test_quantities(text: object, number: float | None) -> None:
    assert brainpp_capacity.quantity(text) == number


# --- logs --------------------------------------------------------------------------------------------------


def told(writes: Sequence[str], asked: int, lines: int = 10_000) -> tuple[str, bool]:
    """What a follower is told who reads after each write, and whether anything was said to be left out."""
    log, cursor, texts, gaps = "", "", [], False
    for written in [*writes, "", ""]:
        log += written
        tail = "".join(log.splitlines(keepends=True)[-asked:])
        piece = brainpp_logs.piece(brainpp_logs.had(tail, asked), lines=lines, cursor=cursor)
        cursor, gaps = piece.cursor, gaps or piece.truncated
        texts.append(piece.text)
    return "".join(texts), gaps


@given(some.lists(some.text("ab\n\rü", max_size=12), max_size=12))
def test_a_follower_is_told_every_byte_once(writes: list[str]) -> None:
    assert told(writes, asked=1_000) == ("".join(writes), False)


@given(some.lists(some.integers(1, 9), min_size=1, max_size=40))
def test_a_follower_of_a_long_log_is_told_every_line_once(sizes: list[int]) -> None:
    numbers = iter(range(10_000))
    writes = ["".join(f"line {next(numbers)}\n" for _ in range(size)) for size in sizes]
    text, _ = told(writes, asked=50)
    assert text == "".join(writes)


def test_what_scrolled_away_between_two_reads_is_said_to_be_missing() -> None:
    first = brainpp_logs.piece(Had(b"one\ntwo\n", whole=False), lines=10)
    later = brainpp_logs.piece(Had(b"eight\nnine\n", whole=False), lines=10, cursor=first.cursor)
    assert (later.text, later.truncated) == ("eight\nnine\n", True)


def test_a_repeated_line_is_no_news_of_a_silent_job() -> None:
    same = Had(b"retrying\n" * 50, whole=False)
    first = brainpp_logs.piece(same, lines=10)
    assert brainpp_logs.piece(same, lines=10, cursor=first.cursor).text == ""


def test_a_log_that_was_begun_anew_is_told_from_its_start() -> None:
    first = brainpp_logs.piece(Had(b"one\ntwo\nthree\n", whole=True), lines=10)
    again = brainpp_logs.piece(Had(b"new\n", whole=True), lines=10, cursor=first.cursor)
    assert (again.text, again.truncated) == ("new\n", False)


@pytest.mark.parametrize("cursor", ["junk", "b1.2", "b-.999.0.0.0", "b5.3.zz.0.0", "b99999999.0.0.1.0"])
def test_a_cursor_that_is_not_ours_fails_nothing(cursor: str) -> None:
    piece = brainpp_logs.piece(Had(b"one\n", whole=True), lines=10, cursor=cursor)
    assert piece.text == "one\n"


def test_a_cursor_holds_no_words_of_the_log() -> None:
    piece = brainpp_logs.piece(Had(b"a password in the log\n", whole=True), lines=10)
    assert re.fullmatch(r"b\d+(\.[0-9a-f]+){4}", piece.cursor)


def test_the_head_of_a_log_that_is_too_long_is_said_to_be_no_head() -> None:
    assert brainpp_logs.piece(Had(b"1\n2\n3\n", whole=True), lines=2, head=True).text == "1\n2\n"
    assert brainpp_logs.piece(Had(b"1\n2\n3\n", whole=False), lines=2, head=True).truncated


@given(some.text(max_size=60))
def test_a_safe_name_is_never_a_flag(text: str) -> None:
    if SAFE_NAME.fullmatch(text):
        assert not text.startswith("-")
        assert not re.search(r"[\s/=:]", text)
