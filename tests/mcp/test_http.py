"""The door of the HTTP server: bearer tokens, roles, hosts."""

from __future__ import annotations

import anyio
import httpx2
import pytest

from agent.people import Role
from tests.mcp.chat import ERAS, Era, call, refused
from tests.mcp.conftest import Served

HELLO = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}


@pytest.mark.parametrize("authorization", ["", "Bearer wk_nobodys", "Basic YTpi"])
def test_nobody_comes_in_without_a_token(served: Served, authorization: str) -> None:
    headers = {"Authorization": authorization} if authorization else {}
    answer = httpx2.post(served.url, json=HELLO, headers=headers)
    assert answer.status_code == 401
    assert "tools" not in answer.text


def test_a_foreign_host_is_refused(served: Served) -> None:
    headers = {"Authorization": f"Bearer {served.tokens['ann']}", "Host": "evil.example.org"}
    assert httpx2.post(served.url, json=HELLO, headers=headers).status_code == 421


@pytest.mark.parametrize("era", ERAS)
def test_a_role_says_what_somebody_may(served: Served, era: Era) -> None:
    async def chat() -> None:
        async with served.client(era, who="cat") as client:
            assert (await call(client, "questions")) is not None
            assert "role operate" in await refused(client, "delegate", command="true")
            assert "role answer" in await refused(client, "answer", question="x/1", reply="y")
        async with served.client(era, who="ben") as client:
            assert "no run" in await refused(client, "answer", question="nobody-aaaaaa/1", reply="y")
            assert "role operate" in await refused(client, "stop", job="nobody-aaaaaa")

    before = len(served.app.store.boards())
    anyio.run(chat)
    assert len(served.app.store.boards()) == before


def test_who_is_let_in_no_longer_is_out_at_once(served: Served) -> None:
    headers = {"Authorization": f"Bearer {served.people.add('dan', Role.read)}"}
    assert httpx2.post(served.url, json=HELLO, headers=headers).status_code != 401
    served.people.remove("dan")
    assert httpx2.post(served.url, json=HELLO, headers=headers).status_code == 401
