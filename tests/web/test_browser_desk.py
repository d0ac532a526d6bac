"""The page over a desk whose clock jumps, in a real Chromium: a session that ends, a connection that is lost, and a
thousand runs on the board."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlalchemy import event

from agent.store import Store
from agent.web.door import SESSION_S
from states.job import State
from tests.agent.fakes import ENDLESS
from tests.web.bench import asks, fill
from tests.web.conftest import Open, Reader

Opened = Callable[..., Open]


def test_a_session_that_ends_leads_to_the_door(opened: Opened, reader: Reader) -> None:
    from playwright.sync_api import expect

    made, page = opened(ENDLESS)
    run = made.delegate()
    watching = reader(page, "read", expects=("401",))
    watching.goto(f"{page.url}/runs/{run}")
    expect(watching.locator("#now .chip")).to_be_visible()
    made.clock.step(SESSION_S + 1)
    # Nobody touches it: the stream ends, and so does the page.
    expect(watching).to_have_url(f"{page.url}/login")
    watching.goto(f"{page.url}/login#{page.tokens['read']}")
    expect(watching).to_have_url(f"{page.url}/")


def test_an_answer_with_a_session_that_ended_is_not_taken(opened: Opened, reader: Reader) -> None:
    from playwright.sync_api import expect

    made, page = opened(checks={"image": asks})
    run = made.delegate()
    made.run_to(run, "blocked")
    tab = reader(page, "answer", expects=("401",))
    tab.route("**/live/**", lambda route: route.fulfill(status=204))
    tab.goto(f"{page.url}/inbox")
    made.clock.step(SESSION_S + 1)
    tab.get_by_role("button", name="don't submit").click()
    expect(tab).to_have_url(f"{page.url}/login")
    assert made.job(run).state == State.blocked


def test_an_answer_without_a_script_is_a_page_of_its_own(opened: Opened, reader: Reader) -> None:
    from playwright.sync_api import expect

    made, page = opened(checks={"image": asks})
    run = made.delegate()
    made.run_to(run, "blocked")
    tab = reader(page, "", java_script_enabled=False)
    tab.goto(f"{page.url}/login")
    tab.get_by_label("Your token").fill(page.tokens["answer"])
    tab.get_by_role("button", name="Log in").click()
    tab.get_by_role("link", name="Questions").click()
    form = tab.locator("form", has=tab.get_by_role("button", name="use this image"))
    form.get_by_placeholder("image").fill("team/base:3")
    form.get_by_role("button").click()
    expect(tab.locator("main")).to_contain_text("use this image: team/base:3")
    assert made.job(run).spec.image == "team/base:3"


def test_a_connection_that_is_lost_is_said_and_taken_up_again(opened: Opened, reader: Reader) -> None:
    from playwright.sync_api import expect

    made, page = opened(ENDLESS)
    made.delegate()
    tab = reader(page, "read", expects=("ERR_INTERNET_DISCONNECTED", "htmx:sse:error"))
    expect(tab.locator("#board")).to_contain_text("preflight")
    tab.wait_for_timeout(100)
    tab.context.set_offline(True)
    tab.evaluate("document.getElementById('live')._htmx.sse.reader.cancel()")
    expect(tab.locator("#behind")).to_be_visible()
    made.settle()
    tab.context.set_offline(False)
    expect(tab.locator("#behind")).to_be_hidden()
    expect(tab.locator("#state-queued")).to_be_visible()


def test_a_thousand_runs_are_one_query_and_one_page(opened: Opened, reader: Reader) -> None:
    from playwright.sync_api import expect

    made, page = opened(ENDLESS)
    fill(made.store, made.job(made.delegate()), 1000)
    tab = reader(page, "read")
    with statements(made.store) as asked:
        tab.goto(f"{page.url}/part/board")
    expect(tab.locator("tbody tr")).to_have_count(1000)
    selects = [text for text in asked if text.startswith("SELECT job.id")]
    assert len(selects) == 1
    assert "snapshot" not in selects[0], "a list loads no snapshot"
    tab.goto(f"{page.url}/?find=nothing-like-it")
    expect(tab.get_by_text("Nothing here fits.")).to_be_visible()


class statements:  # noqa: N801
    """Every statement that a store runs meanwhile."""

    def __init__(self, store: Store) -> None:
        self._engine, self._seen = store.engine, list[str]()

    def _note(self, connection: Any, cursor: Any, statement: str, *_: Any) -> None:
        self._seen.append(statement)

    def __enter__(self) -> list[str]:
        event.listen(self._engine, "before_cursor_execute", self._note)
        return self._seen

    def __exit__(self, *_: object) -> None:
        event.remove(self._engine, "before_cursor_execute", self._note)
