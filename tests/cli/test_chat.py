"""`wk chat`: what is said is done by the program's own means, asked back where it is not clear, and never guessed."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from tests.cli.program import Wk, steps

SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


def test_a_run_is_delegated_watched_read_and_stopped_in_words(wk: Wk, eventually: Callable[..., Any]) -> None:
    ran = wk("chat", f"run `{steps(200, 0.3)}`")
    assert ran.code == 0, ran.err
    (row,) = wk.board()
    run = row["id"]
    assert run in ran.out
    eventually(lambda: wk.board()[0]["state"] == "running" and wk.board()[0].get("step"))

    reads = wk("chat", stdin="my jobs\n怎么样了\nlast 3 lines\n\nis it healthy?\nany events?\n")
    assert reads.code == 0, reads.err
    assert "step" in reads.out
    assert wk.cluster_jobs() == [name for name in wk.cluster_jobs() if name.startswith(run)]

    kept = wk("chat", stdin="don't stop it\nstop it if it hangs\nshould I stop it?\n")
    assert kept.code == 5
    assert wk.board()[0]["state"] == "running"

    stopped = wk("chat", "please stop it")
    assert stopped.code == 0, stopped.err
    eventually(lambda: wk.board()[0]["state"] == "stopped")
    assert wk("chat", "停掉它").out.strip() == "没有在跑的任务, 不需要停。"

    assert wk("chat", "delete it").code == 5
    assert len(wk.cluster_jobs()) == 1
    assert wk("chat", f"delete {run}").code == 0
    eventually(lambda: wk.cluster_jobs() == [])


def test_a_question_is_answered_in_words(wk: Wk, eventually: Callable[..., Any]) -> None:
    gone = str(wk.workspace / "not-there")
    wk("run", "--detach", "--json", "--workspace", gone, "--", "true")
    eventually(lambda: wk.board()[0]["state"] == "blocked")
    unclear = wk("chat", "yes")
    assert unclear.code == 5
    assert "[" in unclear.out
    assert wk.board()[0]["state"] == "blocked"
    answered = wk("chat", "不提交了")
    assert answered.code == 0, answered.err
    assert wk.board()[0]["state"] == "not_submitted"
    assert wk.cluster_jobs() == []


def test_what_was_asked_back_is_settled_by_the_next_line(wk: Wk) -> None:
    runs = [
        wk("run", "--detach", "--json", "--name", name, "--", steps(200, 0.3)).data["run"]
        for name in ("alpha", "beta")
    ]
    talk = wk("chat", "--json", stdin="stop it\nbeta\n")
    asked, settled, done = talk.lines
    assert asked["understood"]["ask_back"] is True
    assert settled["understood"]["slots"] == {"job": runs[1]}
    assert done["run"] == runs[1]
    states = {row["id"]: row["state"] for row in wk.board()}
    assert states[runs[0]] not in ("stopping", "stopped")
    assert wk("chat", f"stop {runs[0]}").code == 0


def test_a_single_submit_leaves_no_record(wk: Wk) -> None:
    sent = wk("chat", "just submit `echo hello`, no need to watch it", "--json")
    assert sent.code == 0, sent.err
    assert sent.lines[0]["understood"]["intent"] == "submit_only"
    assert sent.lines[1]["cluster"] == "local"
    assert wk.board() == []
    assert len(wk.cluster_jobs()) == 1


def test_a_stop_condition_is_not_dropped_in_silence(wk: Wk) -> None:
    ran = wk("chat", "run `sleep 5` and stop it if the loss is nan")
    assert ran.code == 5
    assert "stop_when" in ran.err
    assert wk.board() == []


def test_a_credential_is_neither_stored_nor_repeated(wk: Wk) -> None:
    ran = wk("chat", f"run `TOKEN={SECRET} python a.py`", "--json")
    assert ran.code == 5
    assert SECRET not in ran.out + ran.err
    assert "wk key set" in ran.out
    assert wk.board() == []
    held = b"".join(path.read_bytes() for path in wk.home.rglob("*") if path.is_file())
    assert SECRET.encode() not in held


def test_the_library_is_told_and_asked(wk: Wk) -> None:
    assert wk("chat", "remember reg.lab/nlp/torch:2.5 for sft").code == 0
    asked = wk("chat", "which image did we use for sft last time?")
    assert "reg.lab/nlp/torch:2.5" in asked.out
    assert wk("chat", "forget the old image").code == 5


def test_understand_reads_json_lines_and_does_nothing(wk: Wk) -> None:
    world = {"jobs": [{"name": "vit-1", "state": "running"}], "questions": []}
    lines = [
        json.dumps({"id": "a", "message": "stop it", "context": world}),
        "not json",
        json.dumps({"id": "b", "context": world}),
        json.dumps({"id": 3, "message": "停了吗", "context": world}),
        json.dumps({"id": "d", "message": "x", "context": {"jobs": 3}}),
        "",
        json.dumps({"id": "e", "message": "help"}),
    ]
    ran = wk("chat", "--understand", stdin="\n".join(lines))
    assert ran.code == 2
    assert [row["id"] for row in ran.lines] == ["a", 3, "e"]
    first, second, third = ran.lines
    assert set(first) == {"id", "intent", "slots", "ask_back", "reply"}
    assert (first["intent"], first["slots"], first["ask_back"]) == ("stop", {"job": "vit-1"}, False)
    assert second["intent"] == "status"
    assert third["intent"] == "help"
    assert [f"line {number}" in ran.err for number in (1, 2, 3, 4, 5, 6)] == [
        False,
        True,
        True,
        False,
        True,
        False,
    ]
    assert "context.jobs" in ran.err
    assert not (wk.home / "state").exists(), "reading opened the database"
    fine = wk("chat", "--understand", stdin=lines[0])
    assert fine.code == 0
    assert fine.err == ""
