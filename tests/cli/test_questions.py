"""Questions and answers from the command line: asked with options, refused when it does not fit, answered once."""

from __future__ import annotations

from tests.cli.program import Wk


def test_a_question_is_listed_answered_once_and_settles_the_run(wk: Wk) -> None:
    gone = str(wk.workspace / "not-there")
    run = wk("run", "--detach", "--json", "--workspace", gone, "--", "true").data["run"]
    shown = wk("follow", "--json", run) if False else None
    assert shown is None
    (question,) = asked(wk)
    assert question["run"] == run
    assert gone in question["asks"]
    assert question["default"] == "dont-submit"
    assert {option["key"] for option in question["options"]} >= {"again", "dont-submit"}

    words = wk("questions")
    assert f"wk answer {question['id']}" in words.out

    nonsense = wk("answer", question["id"], "perhaps")
    assert nonsense.code == 5
    assert "dont-submit" in nonsense.err
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    leaking = wk("answer", question["id"], secret, "--json")
    assert leaking.code == 5
    assert secret not in leaking.out + leaking.err
    assert len(asked(wk)) == 1

    answered = wk("answer", question["id"], "dont-submit", "--json")
    assert answered.code == 0, answered.err
    assert answered.data["state"] == "not_submitted"
    late = wk("answer", question["id"], "again")
    assert late.code == 5
    assert wk("questions").out.strip() == "No open questions."

    followed = wk("follow", run)
    assert followed.code == 4
    assert run in followed.out
    assert wk.cluster_jobs() == []


def asked(wk: Wk) -> list[dict[str, str]]:
    found: list[dict[str, str]] = wk("questions", "--json").data
    return found


def test_an_answer_with_nobody_watching_takes_effect_at_once(wk: Wk) -> None:
    """The agent that asked was killed; the answer carries the run on and leaves somebody to watch it."""
