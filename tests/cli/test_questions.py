"""Questions and answers from the command line: asked with options, refused when it does not fit, answered once."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from typing import Any

from tests.cli.program import Wk, finish


def test_a_question_is_listed_answered_once_and_settles_the_run(
    wk: Wk, eventually: Callable[..., Any]
) -> None:
    gone = str(wk.workspace / "not-there")
    run = wk("run", "--detach", "--json", "--workspace", gone, "--", "true").data["run"]
    eventually(lambda: wk.board()[0]["state"] == "blocked")
    (question,) = asked(wk)
    assert question["run"] == run
    assert gone in question["asks"]
    assert question["default"] == "dont-submit"
    assert {option["key"] for option in question["options"]} >= {"again", "dont-submit"}

    nonsense = wk("answer", question["id"], "perhaps")
    assert nonsense.code == 5
    assert "dont-submit" in nonsense.err
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    leaking = wk("answer", question["id"], secret, "--json")
    assert leaking.code == 5
    assert secret not in leaking.out + leaking.err
    assert wk.board()[0]["questions"] == [question["id"]]

    answered = wk("answer", question["id"], "dont-submit", "--json")
    assert answered.code == 0, answered.err
    assert answered.data["state"] == "not_submitted"
    late = wk("answer", question["id"], "again")
    assert late.code == 5
    assert asked(wk) == []
    followed = wk("follow", run)
    assert followed.code == 4
    assert run in followed.out
    assert wk.cluster_jobs() == []


def test_an_answer_with_nobody_watching_takes_effect_and_leaves_somebody(
    wk: Wk, eventually: Callable[..., Any]
) -> None:
    folder = wk.workspace / "later"
    process = wk.start("run", "--workspace", str(folder), "--", "pwd > where.txt")
    try:
        eventually(lambda: wk.board() and wk.board()[0]["state"] == "blocked")
    finally:
        os.killpg(process.pid, signal.SIGKILL)
    finish(process)
    (run,) = wk.board()
    folder.mkdir()
    answered = wk("answer", run["id"], "again")
    assert answered.code == 0, answered.err
    assert "Nobody was watching" in answered.err
    assert wk("follow", run["id"]).code == 0
    assert (folder / "where.txt").exists()
    assert len(wk.cluster_jobs()) == 1


def asked(wk: Wk) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = wk("questions", "--json").data
    return found
