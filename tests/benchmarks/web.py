"""What the page costs: the board of a thousand runs, one run, a call of the API; and the board in a real browser.

    python -m tests.benchmarks.web

The browser's figure is from the click to the last row that is there, and the same with ten runs, so that the share of
the runs can be told from that of the browser.

Never: a threshold.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from agent.redaction import Redactor
from agent.store import Store
from tests.agent.fakes import ENDLESS, Desk
from tests.benchmarks.measuring import Figure, seconds
from tests.web.bench import CHROMIUM, FLAGS, Page, fill, page_of

RUNS = 1000


def figures() -> Iterator[Figure]:
    """Each as it is taken: the server first, then the browser where there is one."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        store = Store(f"sqlite:///{folder / 'watchkeeper.db'}")
        store.create_schema()
        desk = Desk(store, folder, ENDLESS, redact=Redactor({"LAB_KEY": "swordfish-7788"}).text)
        run = desk.delegate()
        desk.run_to(run, "running")
        for _ in range(12):
            desk.sleep()
            desk.look()
        with page_of(desk, folder) as page:
            fill(store, desk.job(run), 9)
            yield from of_browser(page, 10)
            fill(store, desk.job(run).but(id="more"), RUNS - 10)
            for what, path in (
                ("board of 1,000 runs", "/part/board"),
                (f"run with {desk.job(run).seq} events", f"/runs/{run}"),
            ):
                yield Figure(f"{what}, server", 1000 * seconds(lambda path=path: get(page, path)), "ms")
            yield Figure("API, one run", 1000 * seconds(lambda: page.ask("GET", f"/runs/{run}")), "ms")
            yield from of_browser(page, RUNS)
        store.close()


def get(page: Page, path: str) -> None:
    """One page by a token, to its last byte."""
    import httpx2

    with httpx2.Client(trust_env=False) as client:
        seen = client.get(page.url + path, headers={"Authorization": f"Bearer {page.tokens['read']}"})
        assert seen.status_code == 200


def of_browser(page: Page, count: int) -> Iterator[Figure]:
    """The board in Chromium: from the click to the last row."""
    if not CHROMIUM.exists():
        return
    from playwright.sync_api import sync_playwright

    with sync_playwright() as player:
        browser = player.chromium.launch(executable_path=str(CHROMIUM), args=FLAGS)
        tab = browser.new_page()
        tab.goto(f"{page.url}/login#{page.tokens['read']}")
        tab.wait_for_url(f"{page.url}/")
        best = float("inf")
        for _ in range(3):
            tab.goto(f"{page.url}/library")
            began = time.perf_counter()
            tab.get_by_role("link", name="Runs").click()
            tab.locator("tbody tr").nth(count - 1).wait_for()
            best = min(best, time.perf_counter() - began)
        browser.close()
    yield Figure(f"board of {count:,} runs, in the browser", 1000 * best, "ms")


if __name__ == "__main__":
    for figure in figures():
        print(f"{figure.what:<52} {figure.value:>12,.1f} {figure.unit}", flush=True)
