"""What the pages are made of: pictures, the timeline, the board's rows, the words, the form's request."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime
from pathlib import Path
from xml.etree import ElementTree

import pytest

from agent.web import words
from agent.web.board import ORDER, groups
from agent.web.drawing import ARROWS, PLACES, Curve, curve, diagram
from agent.web.pages_acting import FIELDS, request_of
from agent.web.preview import mark_of
from agent.web.story import beats, been
from agent.web.words import WORDS, language_of, word
from agent.yamlfile import UserFileError
from states.job import State
from states.reading import Point
from states.table import TABLE

AT = datetime(2026, 3, 1, 8, 0, tzinfo=UTC)
TEMPLATES = Path(words.__file__).parent / "templates"


def series(*values: float) -> Curve:
    return Curve("loss", [Point(step=step, value=value) for step, value in enumerate(values)])


# --- pictures ------------------------------------------------------------------------------------------------


def test_the_diagram_has_every_state_and_arrow_of_the_table_and_lights_one() -> None:
    names = {state: str(state) for state in State}
    taken = {(State.preflight, State.submitting)}
    drawn = ElementTree.fromstring(diagram(State.submitting, {State.preflight}, taken, names))
    boxes = {g.get("data-state"): g for g in drawn.iter("g")}
    assert set(boxes) == set(map(str, State)) == set(map(str, PLACES))
    assert [name for name, box in boxes.items() if box.get("aria-current")] == ["submitting"]
    assert "been" in (boxes["preflight"].get("class") or "")
    moves = {(source, row.to) for row in TABLE for source in row.source if row.to and row.to is not source}
    assert set(ARROWS) == moves
    arrows = [path for path in drawn.iter("path") if "arrow" in (path.get("class") or "")]
    assert len(arrows) == len(moves)
    assert sum("taken" in (path.get("class") or "") for path in arrows) == 1


@pytest.mark.parametrize(
    ("values", "lines", "dots"),
    [
        ((3.0, 2.0, 1.0), 1, 0),
        ((3.0, 2.0, math.nan, 1.0, 0.5), 2, 0),
        ((3.0, math.inf, 1.0, 0.5), 1, 1),
        ((1.0, 1.0), 1, 0),
        ((1.7e308, -1.7e308), 1, 0),
    ],
)
def test_a_curve_leaves_gaps_where_nothing_is_finite(
    values: tuple[float, ...], lines: int, dots: int
) -> None:
    drawn = ElementTree.fromstring(curve(series(*values)))
    assert len(list(drawn.iter("polyline"))) == lines
    assert len(list(drawn.iter("circle"))) == dots
    numbers = re.findall(r"-?[\d.]+", " ".join(line.get("points", "") for line in drawn.iter("polyline")))
    assert all(0 <= float(number) <= 640 for number in numbers)


def test_a_curve_of_nothing_is_no_picture_and_a_name_is_no_markup() -> None:
    assert curve(series(1.0)) == ""
    assert curve(series(math.nan, math.nan)) == ""
    hostile = Curve('"><script>', [Point(step=1, value=1), Point(step=2, value=2)])
    assert "<script" not in curve(hostile)


# --- the timeline --------------------------------------------------------------------------------------------


def row(kind: str, source: str, to: str, **look: str) -> dict[str, object]:
    body = {"observation": look} if look else {}
    return {"kind": kind, "source": source, "to": to, "at": AT, "said": "", "body": body}


def test_the_timeline_has_moves_and_new_words_of_the_cluster_and_nothing_twice() -> None:
    rows = [
        row("delegated", "preflight", "preflight"),
        row("submitted", "submitting", "queued"),
        row("observed", "queued", "queued", phase="pending", native="PENDING", reason="Priority"),
        row("observed", "queued", "queued", phase="pending", native="PENDING", reason="Priority"),
        row("observed", "queued", "running", phase="running", native="RUNNING"),
    ]
    shown = [(beat.state, beat.phase, beat.native) for beat in beats(rows)]
    assert shown == [
        ("preflight", "", ""),
        ("queued", "", ""),
        ("", "pending", "PENDING, Priority"),
        ("running", "running", "RUNNING"),
    ]
    states, taken = been(rows)
    assert (State.queued, State.running) in taken
    assert State.blocked not in states


# --- the board -----------------------------------------------------------------------------------------------


def record(run: str, state: str, **board: object) -> dict[str, object]:
    ended = AT if state == "failed" else None
    times = {"created_at": AT, "ended_at": ended, "wake_at": None}
    return {"id": run, "state": state, "cluster": "lab", "board": board, **times}


def test_the_board_shows_first_what_needs_somebody_and_no_children() -> None:
    rows = [
        record("a", "running", step=3.0, total=4.0, eta_s=60.0, lane="idle", milestone_at=AT.isoformat()),
        record("b", "failed", outcome="exit code 2", eta_s=9.0, phase="failed"),
        record("c", "blocked", questions=["c/1"]),
        record("d", "running", parent="a"),
    ]
    shown = groups(rows, "en")
    assert [group.state for group in shown] == ["blocked", "running", "failed"]
    (running,) = shown[1].rows
    assert (running.step, running.share, running.left, running.lane) == ("3/4", 0.75, "1 min", "idle")
    (failed,) = shown[2].rows
    assert (failed.left, failed.phase, failed.told) == ("", "", "exit code 2")
    assert [group.state for group in groups(rows, "en", find="IDLE lab")] == ["running"]
    assert groups(rows, "zh", find="运行中")[0].rows[0].id == "a"
    assert set(ORDER) == set(State)


# --- words ---------------------------------------------------------------------------------------------------


def test_every_word_is_there_in_both_languages_and_is_used() -> None:
    used = "".join(file.read_text(encoding="utf-8") for file in TEMPLATES.glob("*.html"))
    code = "".join(
        file.read_text(encoding="utf-8") for file in TEMPLATES.parent.glob("*.py") if "words" not in file.name
    )
    for key, (english, chinese) in WORDS.items():
        assert english, key
        assert chinese, key
        assert set(re.findall(r"{\w+}", english)) == set(re.findall(r"{\w+}", chinese)), key
        quoted = f'"{key}"' in used + code or f"'{key}'" in used
        assert quoted or key.startswith(("level.", "state.")), f"{key} is used nowhere"
    for key in re.findall(r"\bt\(['\"]([\w.]+)['\"](?=[),])", used):
        assert key in WORDS


@pytest.mark.parametrize(
    ("chosen", "accepted", "wanted"),
    [
        ("zh", "en", "zh"),
        ("", "zh-Hans,en", "zh"),
        ("", "fr,en;q=0.3", "en"),
        ("", "", "zh"),
        ("xx", "fr", "zh"),
    ],
)
def test_the_language_is_chosen_then_the_browsers_then_the_default(
    chosen: str, accepted: str, wanted: str
) -> None:
    assert language_of(chosen, accepted, "zh") == wanted
    assert word("zh", "board") == "任务"


# --- the form ------------------------------------------------------------------------------------------------


def form(**given: str) -> dict[str, str]:
    return dict.fromkeys(FIELDS, "") | given


def test_a_form_is_a_request_and_a_change_of_it_is_another_mark() -> None:
    asked = request_of(
        form(command="python a.py\npython b.py", gpu="auto", outputs="a\n\nb", more="max_restarts: 0")
    )
    assert asked.command == ("bash", "-c", "python a.py\npython b.py")
    assert (asked.gpu_free, asked.outputs, asked.max_restarts) == (True, ("a", "b"), 0)
    assert mark_of(asked) == mark_of(asked.model_copy())
    assert mark_of(asked) != mark_of(asked.model_copy(update={"gpu_free": False, "gpu": 1}))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"command": "x", "gpu": "two"}, "gpu"),
        ({"command": "x", "more": "gpus: 1"}, "did you mean 'gpu'"),
        ({"command": "x", "more": "a: [1"}, "more:"),
        ({}, "command"),
    ],
)
def test_a_form_that_cannot_be_says_which_field(given: dict[str, str], words: str) -> None:
    with pytest.raises(UserFileError, match=re.escape(words)):
        request_of(form(**given))
