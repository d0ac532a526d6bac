"""The browser of these tests, one for each file, and a reader who notices what the console complains about."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx2
import pytest

from agent.store import Store
from tests.agent.fakes import Desk
from tests.web.bench import CHROMIUM, FLAGS, Page, need_a_browser, page_of

Reader = Callable[..., Any]

PATIENCE_MS = 30_000
"""What a busy machine may take; nothing waits for that long that comes sooner."""


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Callable[..., Desk]]:
    """`desk(*scripts, ...)`: a desk over a SQLite file, since a server has threads."""
    made: list[Store] = []

    def build(*scripts: Any, **options: Any) -> Desk:
        made.append(Store(f"sqlite:///{tmp_path / f'watchkeeper-{len(made)}.db'}"))
        made[-1].create_schema()
        return Desk(made[-1], tmp_path, *scripts, **options)

    yield build
    for store in made:
        store.close()


class Open(NamedTuple):
    """A desk with its page."""

    desk: Desk
    page: Page

    def ask(self, method: str, path: str, **options: Any) -> httpx2.Response:
        return self.page.ask(method, path, **options)


@pytest.fixture
def opened(desk: Callable[..., Desk], tmp_path: Path) -> Iterator[Callable[..., Open]]:
    """`opened(*scripts)`: a desk and its page."""
    pages: list[Any] = []

    def build(*scripts: Any, **options: Any) -> Open:
        made = desk(*scripts, **options)
        pages.append(page_of(made, tmp_path))
        return Open(made, pages[-1].__enter__())

    yield build
    for page in pages:
        page.__exit__(None, None, None)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A real Chromium without a window."""
    need_a_browser()
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=PATIENCE_MS)
    with sync_playwright() as player:
        launched = player.chromium.launch(executable_path=str(CHROMIUM), args=FLAGS)
        yield launched
        launched.close()


@pytest.fixture
def reader(browser: Any) -> Iterator[Reader]:
    """`reader(page, "answer", ...)`: somebody of that role who has come in; options are the browser context's.

    At the end, nothing may have been complained about on the console (a script or a style that was refused, a file
    that is missing), but for what a test expects.
    """
    contexts: list[Any] = []
    complaints: list[str] = []

    def come_in(page: Any, role: str = "operate", *, expects: tuple[str, ...] = (), **options: Any) -> Any:
        options = {"viewport": {"width": 1200, "height": 900}, "locale": "en-US"} | options
        contexts.append(browser.new_context(**options))
        tab = contexts[-1].new_page()
        tab.set_default_timeout(PATIENCE_MS)

        def complained(message: Any) -> None:
            expected = any(words in message.text for words in expects)
            if message.type in ("error", "warning") and not expected:
                complaints.append(message.text)

        tab.on("console", complained)
        tab.on("pageerror", lambda error: complaints.append(str(error)))
        if role:
            tab.goto(f"{page.url}/login#{page.tokens[role]}")
            tab.wait_for_url(f"{page.url}/")
        return tab

    yield come_in
    for context in contexts:
        context.close()
    assert complaints == []
