"""Every way into `wk serve` as it is really put together, and what each takes: a new one without an entry here fails.

Page, API, tools of chat agents, answer links, signed requests, figures: all are asked with nothing, with what is
wrong, and with each role.

Never: a way in that is left to the tests of its own part.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import anyio
import httpx2
import pytest

from agent.app import build
from agent.people import People, Role
from agent.web.server import serve
from tests.cli.program import QUICK
from tests.mcp.chat import ERAS, Era, http
from tests.mcp.test_http import HELLO
from tests.security.doors import routes_of
from tests.web.test_api import ROLES

LINK, SIGNATURE, FILE = "a signed link", "a signature", "nothing: a file of the page"
CHANGES_NOBODY = {("GET", "/login"), ("POST", "/login"), ("POST", "/logout"), ("POST", "/language")}
OPEN = CHANGES_NOBODY | {("GET", "/healthz"), ("GET", "/favicon.ico")}
"""What anybody may ask for: the door itself, a sign of life, a picture."""

DOORS: Mapping[tuple[str, str], Role | str | None] = {
    **ROLES,
    ("GET", "/a/{token}"): LINK,
    ("POST", "/a/{token}"): LINK,
    ("POST", "/hooks/{channel}"): SIGNATURE,
    ("*", "/mcp"): Role.read,
    ("GET", "/metrics"): Role.read,
    ("*", "/static"): FILE,
}
"""Every way in and the least it takes; None: nothing."""


class Page(NamedTuple):
    """A running page of a home with every part. routes: what it serves; tokens: by role."""

    url: str
    routes: Mapping[tuple[str, str], Any]
    tokens: Mapping[str, str]
    people: People
    client: httpx2.Client

    def ask(self, method: str, path: str, **how: Any) -> httpx2.Response:
        url = self.url + path.format(
            run="nobody-1", number=1, job="nobody-1", cluster="nowhere", token="x.y", channel="ci"
        )
        form: dict[str, Any] = {"data": {"token": "none", "to": "en"}} if method == "POST" else {}
        if "/api/" in path and form:
            form = {"json": {}}
        self.client.cookies.clear()
        return self.client.request("POST" if method == "*" else method, url, **{**form, **how})


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    folder = tmp_path_factory.mktemp("doors")
    (folder / "home" / "config").mkdir(mode=0o700, parents=True)
    channels = "channels:\n  ci: {kind: webhook, secret: HOOK_SECRET, role: operate}\n"
    (folder / "home" / "config" / "config.yaml").write_text(
        f"{QUICK}\nmetrics: true\n{channels}", encoding="utf-8"
    )
    env = {"PATH": os.environ["PATH"], "HOME": str(folder), "WATCHKEEPER_HOME": str(folder / "home")}
    env["HOOK_SECRET"] = "whsec_" + "QUJD" * 11
    app = build(env)
    people = People.of(env)
    tokens = {str(role): people.add(f"{role}-person", role) for role in Role}
    server = serve(app, host="127.0.0.1", port=0, prefix="")
    server._app.state.here.leaving.set()  # streams end at once
    try:
        with pytest.MonkeyPatch.context() as patch:
            for bound in ("WRONG_MAX", "WRONG_MAX_ALL"):  # each try is to be answered for itself
                patch.setattr(f"agent.web.door.{bound}", 100_000)
            with httpx2.Client(trust_env=False, timeout=20.0) as client:
                yield Page(server.url, routes_of(server._app), tokens, people, client)
    finally:
        server.close()
        app.store.close()


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


NOT_LET_IN: Mapping[str, dict[str, Any]] = {
    "nothing": {},
    "a token of nobody": {"headers": bearer("wk_" + "A" * 43)},
    "an empty token": {"headers": {"Authorization": "Bearer"}},
    "another scheme": {"headers": {"Authorization": "Basic b2xnYTpvbGdh"}},
    "a cookie that was made up": {"headers": {"Cookie": "wk_session=WyJvbGdhIiwiYSIsOTk5OTk5OTk5OV0.AAAA"}},
    "two schemes": {"headers": {"Authorization": "Bearer Bearer x"}},
}


def test_every_way_in_has_an_entry(page: Page) -> None:
    assert set(page.routes) == set(DOORS)


@pytest.mark.parametrize("how", NOT_LET_IN)
def test_who_is_nobody_gets_nothing(page: Page, how: str) -> None:
    told = {key: page.ask(*key, **NOT_LET_IN[how]) for key, least in DOORS.items() if key not in OPEN}
    for key, answer in told.items():
        least, status = DOORS[key], answer.status_code
        if "cookie" in how and key[0] != "GET":
            assert status == 403, key  # nothing tells that it came from our own page
        elif least == FILE:
            assert status in (307, 404)
        elif status == 303:
            assert answer.headers["location"] == "/login", key
        else:
            assert status == (410 if least == LINK else 401), key
        assert "nobody-1" not in answer.text.replace("/runs/nobody-1", ""), key


def test_the_token_goes_into_no_address(page: Page) -> None:
    """Addresses are kept by proxies and browsers, so none is taken from there."""
    token = page.tokens["operate"]
    for query in (f"token={token}", f"access_token={token}", f"authorization=Bearer%20{token}"):
        assert page.ask("GET", f"/api/v1/runs?{query}").status_code == 401


@pytest.mark.parametrize("role", list(Role))
def test_each_role_gets_what_is_its_own_and_no_more(page: Page, role: Role) -> None:
    headers = bearer(page.tokens[role])
    for key, least in DOORS.items():
        if not isinstance(least, Role) or key == ("*", "/mcp"):
            continue
        status = page.ask(*key, headers=headers).status_code
        if role.covers(least):
            assert status not in (401, 403, 500), key
        else:
            assert status == 403, key


@pytest.mark.parametrize("role", list(Role))
def test_a_change_from_another_site_is_no_change(page: Page, role: Role) -> None:
    """A browser sends its cookie along; who made it do so is told by its headers."""
    with httpx2.Client(trust_env=False, timeout=20.0, base_url=page.url) as browser:
        origin = {"Origin": page.url}
        assert browser.post("/login", data={"token": page.tokens[role]}, headers=origin).status_code == 303
        assert browser.get("/").status_code == 200
        for (method, path), least in DOORS.items():
            if method != "POST" or least == SIGNATURE:
                continue
            url = path.format(run="r-1", number=1, job="r-1", token="x.y")
            for foreign in (
                {"Origin": "http://evil.example"},
                {"Sec-Fetch-Site": "cross-site"},
                {"Origin": "null"},
            ):
                assert browser.post(url, data={"to": "zh"}, headers=foreign).status_code == 403, (
                    path,
                    foreign,
                )


@pytest.mark.parametrize("era", ERAS)
def test_the_tools_take_a_token_and_a_host_that_is_ours(page: Page, era: Era) -> None:
    """A name that was made to point at this machine (DNS rebinding) is none of ours."""

    async def tools(host: str) -> int:
        headers = {**bearer(page.tokens["read"]), "Host": host}
        async with (
            httpx2.AsyncClient(headers=headers, trust_env=False) as carrying,
            http(f"{page.url}/mcp", carrying, era) as client,
        ):
            return len((await client.list_tools()).tools)

    ours = page.url.partition("://")[2]
    assert anyio.run(tools, ours) > 10
    with pytest.raises(BaseException, match=r"421|unhandled errors|Invalid Host"):
        anyio.run(tools, "evil.example")
    for method in ("POST", "GET", "DELETE"):
        assert page.ask(method, "/mcp", json=HELLO).status_code == 401


def test_who_was_removed_is_out_everywhere_at_once(page: Page) -> None:
    token = page.people.add("leaver", Role.operate)
    paths = (("GET", "/api/v1/runs"), ("GET", "/metrics"), ("GET", "/"))
    assert {page.ask(*path, headers=bearer(token)).status_code for path in paths} == {200}
    page.people.remove("leaver")
    assert [page.ask(*path, headers=bearer(token)).status_code for path in paths] == [401, 401, 303]


@pytest.mark.parametrize(
    "path",
    [
        "/static/../../people.py", "/static/%2e%2e/%2e%2e/people.py", "/static/..%2f..%2fpeople.py",
        "/static//etc/passwd", "/static/....//....//people.py", "/static/%00", "/static/page.css%00.js",
        "/static/..\\..\\people.py", "/api/v1/runs/..%2f..%2fetc/logs", "/runs/%2e%2e%2f%2e%2e",
        "/part/runs/..%2F..%2Fx/log", "/a/../../people.json", "/api/v1/jobs/..%2f..%2f..%2fetc%2fpasswd/logs",
        "/api/v1/jobs/%2fetc%2fpasswd/logs", "/api/v1/jobs/1/logs?cluster=..%2f..&cursor=..%2f..%2fetc%2fpasswd",
    ],
)  # fmt: skip
def test_no_path_leads_out(page: Page, path: str) -> None:
    answer = page.ask("GET", path, headers=bearer(page.tokens["operate"]))
    assert answer.status_code in (400, 404, 405, 409, 410)
    assert "root:" not in answer.text
    assert "class People" not in answer.text


def test_a_body_without_a_bottom_is_refused_and_the_page_goes_on(page: Page) -> None:
    headers = bearer(page.tokens["operate"])
    deep = {"Content-Type": "application/json", **headers}
    for path in ("/api/v1/runs", "/api/v1/lint", "/api/v1/questions/r-1/1"):
        assert page.ask("POST", path, content=b"[" * 200_000, headers=deep, json=None).status_code in (
            400,
            409,
            422,
        )
    odd = b'{"command": ["x", "\\ud83d"]}'
    for path in ("/api/v1/runs", "/api/v1/lint"):
        assert page.ask("POST", path, content=odd, headers=deep, json=None).status_code in (409, 422)
    assert page.ask("GET", "/api/v1/runs", headers=headers).status_code == 200
