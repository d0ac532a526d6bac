"""The streams: a bell that misses nothing from the mark on, and a log that goes on where it was left."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx2
import pytest

from agent.web.door import SESSION_S
from agent.web.live import mark_of
from tests.agent.fakes import ENDLESS, GOOD, Desk
from tests.cli.program import WAIT_S
from tests.web.bench import Page, asks, page_of
from tests.web.conftest import Open

Opened = Callable[..., Open]


class Sent(NamedTuple):
    """One event of a stream."""

    event: str
    data: str
    id: str


@contextmanager
def stream(page: Page, path: str, *, last: str = "", **params: str) -> Iterator[Iterator[Sent]]:
    """The events of a stream, as they come."""
    headers = {"Authorization": f"Bearer {page.tokens['read']}", **({"Last-Event-ID": last} if last else {})}
    with (
        httpx2.Client(trust_env=False, timeout=WAIT_S) as client,
        client.stream("GET", page.url + path, headers=headers, params=params) as answer,
    ):
        assert answer.headers["content-type"].startswith("text/event-stream")
        yield parsed(answer.iter_lines())


def parsed(lines: Iterator[str]) -> Iterator[Sent]:
    fields: dict[str, list[str]] = {}
    for line in lines:
        name, _, value = line.partition(":")
        if line and name:
            fields.setdefault(name, []).append(value.removeprefix(" "))
        elif not line and fields:
            yield Sent(*("\n".join(fields.get(name, [])) for name in ("event", "data", "id")))
            fields = {}


def test_the_bell_rings_for_what_came_between_the_page_and_the_stream(opened: Opened) -> None:
    desk, page = opened(checks={"image": asks})
    run = desk.delegate()
    mark = mark_of(desk.store, run)
    desk.run_to(run, "blocked")
    with stream(page, f"/live/runs/{run}", mark=mark) as events:
        first, second = next(events), next(events)
    assert (first.event, second.event) == ("changed", "asked")
    assert first.id == second.id == mark_of(desk.store, run)
    with stream(page, f"/live/runs/{run}", mark=mark, last=first.id) as events:
        desk.service.answer(f"{run}/1", "dont-submit")
        again = next(events)
        assert again.event == "changed"
        assert again.id != first.id, "what was seen is not told again"


def test_the_bell_of_the_board_rings_for_any_run_and_for_questions_only_when_they_are_others(
    opened: Opened,
) -> None:
    desk, page = opened(ENDLESS)
    with stream(page, "/live/all", mark=mark_of(desk.store, "")) as events:
        run = desk.delegate()
        assert next(events).event == "changed"
        desk.run_to(run, "running")
        assert next(events).event == "changed"


def test_a_mark_changes_with_what_is_told_too(opened: Opened) -> None:
    desk, _ = opened(GOOD)
    run = desk.delegate()
    before = mark_of(desk.store, run)
    told = len(desk.store.messages(run))
    desk.settle()
    assert len(desk.store.messages(run)) > told
    assert mark_of(desk.store, run) != before
    assert mark_of(desk.store, run, mark_of(desk.store, run)) == mark_of(desk.store, run)


def test_a_log_goes_on_where_it_was_left_and_ends_with_its_run(opened: Opened) -> None:
    desk, page = opened(GOOD)
    run = desk.delegate()
    desk.run_to(run, "running")
    desk.clock.step(100)
    with stream(page, f"/live/log/{run}") as events:
        piece = next(events)
    assert piece.data.count("step ") >= 4
    desk.run()
    with stream(page, f"/live/log/{run}", last=piece.id) as events:
        rest: list[Any] = list(events)
    assert [sent.event for sent in rest] == ["", "ended"]
    assert "step 300/500" in rest[0].data
    with stream(page, f"/live/log/{run}", last=rest[0].id) as events:
        assert [sent.event for sent in events] == ["ended"], "what was shown is not shown again"


@pytest.mark.parametrize("path", ["/live/runs/nobody-1", "/live/log/nobody-1"])
def test_a_stream_of_no_run_is_an_answer_not_a_broken_connection(opened: Opened, path: str) -> None:
    _, page = opened(ENDLESS)
    headers = {"Authorization": f"Bearer {page.tokens['read']}"}
    with httpx2.Client(trust_env=False, timeout=WAIT_S, headers=headers) as client:
        answer = client.get(page.url + path)
        assert answer.status_code == 404
        assert "nobody-1" in answer.text


def test_a_stream_ends_with_its_session(opened: Opened) -> None:
    desk, page = opened(ENDLESS)
    run = desk.delegate()
    with httpx2.Client(trust_env=False, timeout=WAIT_S, headers={"Origin": page.url}) as client:
        client.post(f"{page.url}/login", data={"token": page.tokens["read"]})
        with client.stream(
            "GET", f"{page.url}/live/runs/{run}", params={"mark": mark_of(desk.store, run)}
        ) as told:
            lines = told.iter_lines()
            assert next(lines).startswith(":")
            desk.clock.step(SESSION_S + 1)
            assert [line for line in lines if line and not line.startswith(":")] == []


def test_a_stream_ends_with_the_process(desk: Callable[..., Desk], tmp_path: Path) -> None:
    made = desk(ENDLESS)
    run = made.delegate()
    served = page_of(made, tmp_path)
    page = served.__enter__()
    with stream(page, f"/live/runs/{run}") as events:
        assert [next(events).event, next(events).event] == ["changed", "asked"]
        served.__exit__(None, None, None)
        assert list(events) == [], "it ended, and was not cut off"
