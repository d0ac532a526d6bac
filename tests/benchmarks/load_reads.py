"""What a look costs where a hundred thousand runs are watched and a million are over: the store, the page, the API.

Never: a query that the product does not make.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import httpx2

from agent.census import census
from agent.peek import Peek
from agent.store import Store, Unknown
from agent.web.board import ROWS_MAX
from tests.agent.fakes import Desk
from tests.benchmarks.load_rows import Filled, url_of
from tests.benchmarks.measuring import seconds
from tests.web.bench import page_of


class Read(NamedTuple):
    """A way to look, and milliseconds of one look at a quiet moment."""

    what: str
    ms: float


def reads(filled: Filled, *, for_s: float) -> Iterator[Read]:
    """Each as it is taken. for_s: seconds of one round."""
    store = Store(url_of(filled.folder))
    desk = Desk(store, filled.folder)
    calls = _of_the_store(filled, desk) | _of_the_file(filled)
    for what, call in calls.items():
        yield Read(what, 1000 * seconds(call, for_s=for_s))
    with page_of(desk, filled.folder) as page, httpx2.Client(trust_env=False, timeout=60) as client:
        headers = {"Authorization": f"Bearer {page.tokens['read']}"}
        for what, path in _paths(filled).items():
            ask = partial(_get, client, page.url + path, headers)
            yield Read(what, 1000 * seconds(ask, for_s=for_s))
    store.close()


def _of_the_store(filled: Filled, desk: Desk) -> dict[str, Callable[[], Any]]:
    store, service = desk.store, desk.service
    name = store.load(filled.one_past).attempts[-1].name
    return {
        "run by its id": lambda: service.job(filled.one_watched),
        "run by the name of its attempt": lambda: store.find(name),
        "run that is not there": lambda: _nothing(store, "digits-zzzzzz"),
        "`why` of a past run, all decisions": lambda: service.why(filled.one_past),
        "what a sweep asks: effects to perform": lambda: store.jobs_with_effects(desk.clock.now()),
        "what a sweep asks: the next timer": lambda: (store.next_wake(), store.next_effect_at()),
        "metrics: runs by state": lambda: census(store),
    }


def _of_the_file(filled: Filled) -> dict[str, Callable[[], Any]]:
    peek = Peek(filled.file)
    return {
        "rows of `wk jobs`": lambda: peek.rows(live=False),
        "rows of `wk jobs --live`": lambda: peek.rows(live=True),
        "ids for a TAB": peek.run_ids,
    }


def _paths(filled: Filled) -> dict[str, str]:
    return {
        f"page: the board ({ROWS_MAX:,} rows)": "/part/board",
        "page: one run": f"/runs/{filled.one_watched}",
        "API: list, the first 200": "/api/v1/runs",
        "API: list, 200 in the middle, by cursor": f"/api/v1/runs?before={filled.one_past}",
        "API: list of those that live": "/api/v1/runs?live=true",
        "API: one run": f"/api/v1/runs/{filled.one_watched}",
        "API: `why` of a past run": f"/api/v1/runs/{filled.one_past}/why",
        "API: open questions": "/api/v1/questions",
    }


def _get(client: httpx2.Client, at: str, headers: dict[str, str]) -> None:
    answer = client.get(at, headers=headers)
    assert answer.status_code == 200, answer.text


def _nothing(store: Store, text: str) -> None:
    try:
        store.find(text)
    except Unknown:
        return
    raise AssertionError(f"{text} is there")
