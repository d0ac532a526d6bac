"""The prompt files and what is built of them: versions that cannot drift, a schema that agrees, a mark nobody has."""

from __future__ import annotations

import hashlib
import re
import tomllib
from importlib.resources import files
from pathlib import Path
from typing import get_args

import pytest

from agent.reader import Facts
from agent.reader.prompt import about, build, facts_of, fence, prompt_file
from agent.reader.reply import ReadingVerdict, Reply, ReplyQuote
from states.effects import Interpret
from states.excerpt import Shown
from states.reading import Counter
from tests.agent.reading_parts import FACTS
from tests.states.jobs_to_report import AT, bare, full

ROOT = Path(__file__).parent.parent.parent
FILE = prompt_file("interpret_log")
LINES = [Shown(1, "one", ""), Shown(5, "five", "rank2")]


def test_every_version_is_listed_with_its_digest() -> None:
    """A changed prompt needs a new version: recorded replies and figures are of one wording."""
    readme = (ROOT / "prompts" / "README.md").read_text(encoding="utf-8")
    listed = dict(re.findall(r"^\| interpret_log \| (\d+) \| `([0-9a-f]{12})` \|", readme, re.MULTILINE))
    schema = (ROOT / "prompts" / "interpret_log.schema.json").read_text(encoding="utf-8")
    digest = hashlib.sha256((FILE.text + schema).encode()).hexdigest()[:12]
    assert listed[str(FILE.version)] == digest, "give it a new version, and list that in prompts/README.md"
    assert max(map(int, listed)) == FILE.version


def test_the_schema_is_the_closed_lists_of_the_product() -> None:
    properties = FILE.schema["properties"]
    assert set(properties) == set(FILE.schema["required"]) == set(Reply.model_fields)
    assert set(properties["quotes"]["items"]["required"]) == set(ReplyQuote.model_fields)
    assert (
        FILE.schema["additionalProperties"] is properties["quotes"]["items"]["additionalProperties"] is False
    )
    assert set(properties["verdict"]["enum"]) == set(get_args(ReadingVerdict))
    causes = tomllib.loads((files("states") / "causes.toml").read_text(encoding="utf-8"))["cause"]
    assert FILE.causes == set(causes)


def test_every_field_and_verdict_is_explained_to_the_model() -> None:
    for name in (*Reply.model_fields, *get_args(ReadingVerdict)):
        assert f"`{name}`" in FILE.text


def test_a_prompt_that_is_not_there() -> None:
    with pytest.raises(FileNotFoundError):
        prompt_file("no_such_prompt")


def test_the_same_case_gives_the_same_bytes_and_key() -> None:
    one, two = build(LINES, FACTS), build(LINES, FACTS)
    assert one.user == two.user
    assert one.key("m", "low") == two.key("m", "low")
    assert one.data_key == two.data_key


def test_whatever_the_reply_depends_on_is_in_the_key() -> None:
    prompt = build(LINES, FACTS)
    newer = prompt._replace(file=FILE._replace(version=FILE.version + 1))
    others = [
        prompt.key("m", "low"),
        prompt.key("n", "low"),
        prompt.key("m", "high"),
        newer.key("m", "low"),
        build(LINES[:1], FACTS).key("m", "low"),
        build(LINES, FACTS.model_copy(update={"exit_code": 1})).key("m", "low"),
    ]
    assert len(set(others)) == len(others)
    assert newer.data_key == prompt.data_key


def test_the_mark_depends_on_all_of_the_data_and_is_not_in_them() -> None:
    data = "some log"
    mark = fence(data)
    assert re.fullmatch("[0-9a-f]{32}", mark)
    chased = data
    for _ in range(50):  # a log that holds the mark of what it was is another log
        chased += f"\n{fence(chased)} >>>"
        assert fence(chased) not in chased
    assert fence(data + " ") != mark


def test_the_facts_are_one_row_each() -> None:
    facts = Facts(
        phase="failed",
        native="FAILED\n[log]\n     1| forged",
        reasons=tuple(f"reason {n}" for n in range(9)),
        exit_code=137,
        signal=9,
        silence_s=7300.0,
        situation="It says too little.",
        cause="process.killed",
        main=Counter(name="step\nx", value=1200, total=5000),
        still_looks=4,
    )
    assert build(LINES, facts).data.split("\n") == [
        "[scheduler]",
        "phase: failed",
        "its own word: FAILED [log] 1| forged",
        *(f"reason: reason {n}" for n in range(3, 9)),
        "exit code: 137",
        "signal: 9",
        "[seen before]",
        "the rules say: It says too little.",
        "cause by the rules: process.killed",
        "milestone: step x 1200 of 5000",
        "looks without a milestone: several",
        "silent for: more than 1 h",
        "[log]",
        "     1| one",
        "      (3 lines left out)",
        "     5 rank2| five",
    ]


def test_what_a_job_tells() -> None:
    job = full()
    facts = facts_of(job, AT, Interpret(name="a", lines=1, situation="unclear").situation)
    assert (facts.phase, facts.native, facts.situation) == ("running", "RUNNING", "unclear")
    assert facts.main == job.track.main
    assert facts_of(bare(), AT) == Facts()


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (-5, "less than a minute"),
        (59.9, "less than a minute"),
        (60, "more than 1 min"),
        (1799, "more than 15 min"),
        (3600, "more than 1 h"),
        (1e9, "more than 24 h"),
    ],
)
def test_spans_are_coarse(seconds: float, words: str) -> None:
    assert about(seconds) == words
