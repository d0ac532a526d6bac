"""What a followed run looks like: rows that fit the terminal, hostile text made harmless, news and no repetition."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from agent.cli.output import broken, safe, width_of
from agent.cli.views import JsonLines, Lines, bar_of, closing_words, flowed, region, words_of
from agent.follow import News
from states.job import Job, State
from states.reading import Counter, Point, Track
from tests.states import jobs_to_report as jobs

WIDTHS = (30, 40, 80, 200)


def news(job: Job, *messages: dict[str, Any], later_s: float = 0) -> News:
    return News(job, messages, jobs.AT + timedelta(seconds=later_s), True)


def message(stage: str, text: str, **changes: Any) -> dict[str, Any]:
    made = {
        "id": "x:1:0",
        "at": jobs.AT,
        "kind": "report",
        "stage": stage,
        "text": text,
        "must_not_miss": False,
    }
    return made | changes


def at_step(step: float, **changes: Any) -> Job:
    track = jobs.full().track.model_copy(
        update={
            "main": Counter(name="step", value=step, total=100),
            "milestone_at": jobs.AT,
            "losses": tuple(Point(step=n, value=1 / (n + 1)) for n in range(10)),
        }
    )
    return jobs.full(track=track, **changes)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize(
    "job",
    [jobs.bare(), jobs.full(), jobs.blocked(State.running), jobs.hostile(State.blocked)],
    ids=["bare", "full", "blocked", "hostile"],
)
def test_rows_fit_the_terminal_and_hold_no_control_characters(job: Job, width: int) -> None:
    last = message("routine", jobs.HOSTILE)
    rows = [text for _, text in region(news(job), last, "Ctrl-C leaves it", width)]
    assert rows[0].startswith("digits-k3f9: ")
    for row in rows:
        shown = safe(row)
        assert "\n" not in shown
        assert shown.isprintable()
        longest = max(map(width_of, shown.split()))
        assert width_of(shown) <= max(width, longest + len(row) - len(row.lstrip()) + 2)


def test_the_bar_shows_the_share_and_nothing_without_a_total() -> None:
    drawn = bar_of(at_step(50), 40)
    assert width_of(drawn) == 40
    assert drawn.endswith(" 50 %")
    assert drawn.count(drawn[0]) == 17
    assert bar_of(at_step(500), 40).endswith("100 %")
    assert bar_of(jobs.full(track=Track()), 40) == ""
    assert bar_of(at_step(float("nan")), 40) == ""


def test_parts_flow_into_rows() -> None:
    assert flowed(["aaa", "bbb", "ccc"], 11) == ["aaa  ·  bbb", "ccc"]
    assert not flowed([], 10)


def test_a_line_is_broken_by_its_columns_and_not_by_its_characters() -> None:
    assert broken("ab cd", 5) == ["ab cd"]
    assert broken("    ab cd ef", 9) == ["    ab cd", "      ef"]
    assert broken("任务 类型 normal", 9) == ["任务 类型", "  normal"]


def test_what_must_not_be_missed_is_shown_in_full_and_the_rest_by_its_first_line() -> None:
    assert words_of(message("started", "one\ntwo")) == "one"
    assert words_of(message("started", "one\ntwo", must_not_miss=True)) == "one\ntwo"
    assert words_of(message("question", "one\ntwo", kind="question")) == "one\ntwo"


def test_without_a_terminal_each_piece_of_news_is_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    view = Lines()
    for step, later_s in ((1, 0), (2, 1), (3, 2), (11, 3), (12, 4), (100, 5)):
        view.show(news(at_step(step), later_s=later_s))
    lines = capsys.readouterr().out.splitlines()
    assert [word for line in lines for word in _steps(line)] == ["step 1/", "step 11/", "step 100/"]


def test_json_tells_a_change_once(capsys: pytest.CaptureFixture[str]) -> None:
    view = JsonLines()
    for _ in range(3):
        view.show(news(at_step(5)))
    view.show(news(at_step(6), message("routine", "hello")))
    view.end(news(jobs.ended(State.succeeded)))
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["event"] for line in told] == ["status", "message", "status", "status", "end"]
    assert told[0]["step"] == 5
    assert told[-1]["state"] == "succeeded"


def test_the_curve_is_drawn_only_where_there_is_one() -> None:
    assert closing_words(jobs.bare(state=State.failed), 80) == []
    assert len(closing_words(at_step(5), 80)) == 8


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07x", "x"),
        ("a\rb\x08c\x00", "abc"),
        ("a\u202eb\u200b", "ab"),
        ("tab\tand\nline, 任务 é", "tab\tand\nline, 任务 é"),
    ],
)
def test_text_is_made_safe_for_a_terminal(text: str, shown: str) -> None:
    assert safe(text) == shown


def _steps(line: str) -> list[str]:
    return [f"{part.partition('/')[0]}/" for part in line.split(", ") if part.startswith("step ")]
