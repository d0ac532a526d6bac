"""The evaluation command: labelled logs in, accuracy, cost and disagreements out; by key or from recorded replies."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.evaluate import NoCases, evaluate, load_cases, main, summary
from tests.agent.fake_model import REPLY, Asked, FakeModel, Turn, fails, fake_model, says
from tests.agent.reading_parts import KEY, PLENTY, reading

STEPS = "".join(f"step {n}/40 loss {3 - n / 20:.3f}\n" for n in range(1, 21))
CASES = {
    "a-moving": (STEPS, "verdict: progressing\ncause: none\n"),
    "b-broken": (
        'loading\nTraceback (most recent call last):\n  File "t.py", line 3, in <module>\nValueError: wrong shape\n',
        "verdict: failed\ncause: code.exception\nalso: [data.corrupt]\n",
    ),
    "c-unclear": ("hello\nplease wait\n", "truth:\n  verdict: ambiguous\n  silence_s_at_observation: 9000\n"),
}


@pytest.fixture
def cases(tmp_path: Path) -> Path:
    for name, (log, label) in CASES.items():
        folder = tmp_path / "cases" / name
        folder.mkdir(parents=True)
        (folder / "log.txt").write_text(log)
        (folder / "case.yaml").write_text(label)
    return tmp_path / "cases"


def reads_as(asked: Asked) -> Turn:
    """A model that gets the first right, the second half right, and says nonsense of the third."""
    if "wrong shape" in asked.user:
        quotes = [{"line": 4, "text": "ValueError: wrong shape"}]
        return says(REPLY | {"verdict": "failed", "cause": "data.corrupt", "quotes": quotes})
    if "loss" in asked.user:
        return says(REPLY | {"verdict": "progressing", "quotes": [{"line": 20, "text": "step 20/40"}]})
    return says("dunno")


@pytest.fixture
def model() -> Iterator[FakeModel]:
    with fake_model(reads_as) as running:
        yield running


def env(home: Path, model: FakeModel | None = None, *, key: bool = True) -> dict[str, str]:
    found = {"WATCHKEEPER_HOME": str(home)}
    if model is not None:
        found["WATCHKEEPER_MODEL__BASE_URL"] = model.url
    return found | ({"ANTHROPIC_API_KEY": KEY} if key else {})


def test_the_figures(cases: Path) -> None:
    with reading(reads_as, limits=PLENTY) as (reader, served):
        figures = summary(evaluate(load_cases(cases), reader))
    assert (figures["cases"], figures["read"], figures["void"]) == (3, 2, {"invalid": 1})
    assert figures["model"] == {
        "verdict": {"hits": 2, "of": 2},
        "cause": {"hits": 1, "of": 2},
        "cause_with_also": {"hits": 2, "of": 2},
    }
    assert figures["rules"]["cause"] == {"hits": 2, "of": 2}
    assert figures["tokens"] == 3 * 2150
    assert figures["cost_usd"] == pytest.approx(3 * 0.000275)
    assert [one["case"] for one in figures["disagreements"]] == ["b-broken"]
    assert "silent for: more than 1 h" in served.asked[2].user
    sent = json.dumps([asked.body["messages"] for asked in served.asked])
    assert "data.corrupt" not in sent
    assert "ambiguous" not in sent


def test_the_command_spends_no_more_than_it_may(
    cases: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with fake_model(lambda asked: says(tokens=(10_000_000, 0))) as dear:
        assert main([str(cases), "--budget", "0.5", "--json"], env(home, dear)) == 0
    figures = json.loads(capsys.readouterr().out)
    assert len(dear.asked) == 1
    assert figures["void"]["budget"] == 2


def test_record_with_a_key_and_replay_without(
    cases: Path, home: Path, model: FakeModel, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    folder = tmp_path / "replies"
    assert main([str(cases), "--record", str(folder), "--json"], env(home, model)) == 0
    live = json.loads(capsys.readouterr().out)
    assert main([str(cases), "--replay", str(folder), "--json"], env(home, key=False)) == 0
    replayed = json.loads(capsys.readouterr().out)
    assert replayed["model"] == live["model"]
    assert replayed["disagreements"] == live["disagreements"]
    assert len(model.asked) == 3


def test_only_what_the_rules_leave_open(cases: Path, home: Path, model: FakeModel) -> None:
    assert main([str(cases), "--open"], env(home, model)) == 0
    assert len(model.asked) == 1
    assert all("loss" not in asked.user and "wrong shape" not in asked.user for asked in model.asked)


def test_the_table_names_what_matters(
    cases: Path, home: Path, model: FakeModel, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(cases), "--limit", "2"], env(home, model)) == 0
    shown = capsys.readouterr().out
    assert "2 cases, 2 read by the model" in shown
    assert "4300 tokens, $0.0006" in shown
    assert (
        "b-broken: label failed code.exception; rules failed code.exception; model failed data.corrupt"
        in shown
    )


def test_a_model_without_a_price_is_said_so(
    cases: Path, home: Path, model: FakeModel, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(cases)], env(home, model) | {"WATCHKEEPER_MODEL__NAME": "my-own"}) == 0
    assert "and what has no known price" in capsys.readouterr().out


@pytest.mark.parametrize("wrong", ["no-key", "no-cases", "no-mapping", "settings"])
def test_what_is_missing_is_said_with_what_to_do(
    wrong: str, cases: Path, home: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    given, environment = cases, env(home, key=wrong != "no-key")
    if wrong == "no-cases":
        given = tmp_path / "nowhere"
    if wrong == "no-mapping":
        (cases / "a-moving" / "case.yaml").write_text("progressing")
    if wrong == "settings":
        environment["WATCHKEEPER_MODEL__EFFORT"] = "heroic"
    assert main([str(given)], environment) == 2
    said = capsys.readouterr().err
    words = {"no-key": "wk key set", "no-cases": "case.yaml", "no-mapping": "a-moving", "settings": "EFFORT"}
    assert words[wrong] in said


def test_a_server_that_fails_is_in_the_figures(cases: Path) -> None:
    with reading([fails(529, "overloaded_error")]) as (reader, _):
        figures = summary(evaluate(load_cases(cases), reader))
    assert (figures["read"], figures["void"]) == (0, {"busy": 1, "resting": 2})
    assert (figures["cost_usd"], figures["cost_known"]) == (0.0, True)


def test_a_folder_without_cases(tmp_path: Path) -> None:
    with pytest.raises(NoCases, match=r"log\.txt and case\.yaml"):
        load_cases(tmp_path)
