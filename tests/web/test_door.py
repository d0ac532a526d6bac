"""The door: tokens, sessions, foreign pages, many tries, headers, prefixes; and what pages never show."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from agent.people import People, PeopleError, Role
from agent.redaction import Redactor
from agent.web.app import create_app
from agent.web.door import SESSION_S, WRONG_MAX
from tests.agent.fakes import BROKEN, ENDLESS, Desk
from tests.web.bench import asks, people_of

Desks = Callable[..., Desk]
OURS = {"Origin": "http://testserver"}


class Visitor:
    """A browser without a window: cookies and our own origin."""

    def __init__(self, desk: Desk, folder: Path, *, prefix: str = "", behind: str = "") -> None:
        self.people, self.tokens = people_of(folder)
        self.app = create_app(desk.service, self.people, workspace=desk.workspace, prefix=prefix)
        self.prefix = behind
        self.web = TestClient(self.app, headers=OURS, follow_redirects=False, raise_server_exceptions=False)

    def get(self, path: str, **options: Any) -> Any:
        return self.web.get(self.prefix + path, **options)

    def post(self, path: str, data: Any = None, **options: Any) -> Any:
        return self.web.post(self.prefix + path, data=data, **options)

    def come_in(self, role: str = "operate") -> Any:
        return self.post("/login", {"token": self.tokens[role]})


@pytest.fixture
def visitor(desk: Desks, tmp_path: Path) -> Callable[..., Visitor]:
    return lambda *scripts, **options: Visitor(desk(*scripts), tmp_path, **options)


def test_a_session_ends_with_its_time_by_our_clock(desk: Desks, tmp_path: Path) -> None:
    made = desk()
    visitor = Visitor(made, tmp_path)
    came_in = visitor.come_in()
    cookie = came_in.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert f"max-age={SESSION_S:.0f}" in cookie
    assert visitor.get("/").status_code == 200
    made.clock.step(SESSION_S - 1)
    assert visitor.get("/").status_code == 200
    made.clock.step(2)
    assert visitor.get("/").headers["location"] == "/login"
    part = visitor.get("/part/board", headers={"HX-Request": "true"})
    assert (part.status_code, part.headers["hx-redirect"]) == (401, "/login")


def test_who_is_removed_or_given_a_new_token_is_out_at_once(visitor: Callable[..., Visitor]) -> None:
    one = visitor()
    one.come_in("answer")
    assert one.get("/inbox").status_code == 200
    new = one.people.add("ann", Role.answer)
    assert one.get("/inbox").status_code == 303
    assert one.post("/login", {"token": one.tokens["answer"]}).status_code == 401
    assert one.post("/login", {"token": new}).status_code == 303
    assert one.people.remove("ann")
    assert one.get("/inbox").status_code == 303


@pytest.mark.parametrize("change", ["name", "stamp", "until", "signature"])
def test_a_session_that_was_changed_is_none(visitor: Callable[..., Visitor], change: str) -> None:
    from itsdangerous import URLSafeSerializer

    one = visitor()
    one.come_in("read")
    value = one.web.cookies["wk_session"]
    name, stamp, until = URLSafeSerializer("not the key", salt="session").loads_unsafe(value)[1]
    forged = {
        "name": ["olga", stamp, until],
        "stamp": [name, "0" * 16, until],
        "until": [name, stamp, until + 1e6],
    }
    one.web.cookies.clear()
    if change == "signature":
        one.web.cookies.set("wk_session", value[:-2] + ("AA" if value[-2:] != "AA" else "BB"))
    else:
        one.web.cookies.set("wk_session", URLSafeSerializer("guessed", salt="session").dumps(forged[change]))
    assert one.get("/").status_code == 303


@pytest.mark.parametrize(
    ("headers", "let_in"),
    [
        ({"Sec-Fetch-Site": "same-origin"}, True),
        ({"Sec-Fetch-Site": "none"}, True),
        ({"Sec-Fetch-Site": "cross-site"}, False),
        ({"Sec-Fetch-Site": "same-site"}, False),
        ({"Sec-Fetch-Site": "cross-site", "Origin": "http://testserver"}, False),
        ({"Origin": "http://testserver"}, True),
        ({"Origin": "http://testserver.evil"}, False),
        ({"Origin": "http://evil"}, False),
        ({"Origin": "null"}, False),
        ({"Origin": ""}, False),
    ],
)
def test_a_change_comes_from_our_own_pages(
    visitor: Callable[..., Visitor], headers: dict[str, str], let_in: bool
) -> None:
    one = visitor()
    one.come_in()
    sent = one.web.post("/delegate", data={"command": "echo 1"}, headers={"Origin": "", **headers})
    assert (sent.status_code == 200) is let_in
    assert let_in or sent.status_code == 403
    bearer = {"Authorization": f"Bearer {one.tokens['operate']}", "Sec-Fetch-Site": "cross-site"}
    assert one.web.post("/api/v1/lint", json={"command": "echo 1"}, headers=bearer).status_code == 200


def test_login_from_a_foreign_page_is_refused(visitor: Callable[..., Visitor]) -> None:
    one = visitor()
    token = {"token": one.tokens["read"]}
    assert one.web.post("/login", data=token, headers={"Origin": "http://evil"}).status_code == 403


def test_wrong_tokens_are_counted_and_then_not_looked_at(desk: Desks, tmp_path: Path) -> None:
    made = desk()
    one = Visitor(made, tmp_path)
    wrong = [one.post("/login", {"token": f"wk_{n}"}).status_code for n in range(WRONG_MAX)]
    assert set(wrong) == {401}
    refused = one.come_in()
    assert (refused.status_code, refused.headers["retry-after"]) == (429, "60")
    bearer = {"Authorization": f"Bearer {one.tokens['read']}"}
    assert one.get("/api/v1/runs", headers=bearer).status_code == 429
    made.clock.step(61)
    assert one.come_in().status_code == 303
    for _ in range(WRONG_MAX):
        one.get("/api/v1/runs", headers={"Authorization": "Bearer wk_x"})
    assert one.get("/").status_code == 200, "who is in stays in"


def test_every_answer_carries_the_headers(visitor: Callable[..., Visitor]) -> None:
    one = visitor()
    one.come_in()
    for path in ("/", "/login", "/static/page.css", "/api/v1/runs", "/nowhere", "/healthz"):
        headers = one.get(path).headers
        assert headers["content-security-policy"].startswith("default-src 'self'")
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
    assert one.get("/").headers["cache-control"] == "no-store"


def test_no_page_has_a_script_or_a_style_of_its_own(desk: Desks, tmp_path: Path) -> None:
    made = desk(BROKEN)
    run = made.delegate(command=("bash", "-c", "echo '<script>alert(1)</script>'"), purpose="<b style=x>")
    made.run()
    one = Visitor(made, tmp_path)
    one.come_in()
    for path in (
        "/",
        "/inbox",
        f"/runs/{run}",
        f"/part/runs/{run}/log",
        "/capacity",
        "/library",
        "/api",
        "/delegate",
    ):
        page = one.get(path).text
        assert re.findall(r"<script(?! src=)", page) == []
        assert re.findall(r"<[^>]*\s(?:style|on\w+)=", page) == []
    assert "&lt;script&gt;alert(1)" in one.get(f"/runs/{run}").text


@pytest.mark.parametrize("behind", ["/wk", ""], ids=["passed on", "taken off"])
def test_it_works_behind_a_prefix(desk: Desks, tmp_path: Path, behind: str) -> None:
    made = desk()
    run = made.delegate()
    one = Visitor(made, tmp_path, prefix="/wk/", behind=behind)
    came_in = one.come_in()
    assert came_in.headers["location"] == "/wk/"
    assert "Path=/wk/" in came_in.headers["set-cookie"]
    one.web.cookies.clear()
    one.web.cookies.set("wk_session", came_in.cookies["wk_session"])
    page = one.get(f"/runs/{run}")
    assert page.status_code == 200
    links = re.findall(r'(?:href|src|action|hx-get|hx-post|hx-sse:connect)="(/[^"]*)"', page.text)
    assert len(links) > 10
    assert [link for link in links if not link.startswith("/wk/")] == []
    for link in {link for link in links if "/static/" in link}:
        assert one.get(link.removeprefix("/wk")).status_code == 200
    assert one.get("/api/v1/nothing").json()["error"]["code"] == "not_found"


def test_no_secret_stands_in_any_page(desk: Desks, tmp_path: Path) -> None:
    leaky = ENDLESS._replace(log=((1.0, "step 1/9 loss 1 swordfish-7788"),))
    made = desk(leaky)
    run = made.delegate(purpose="with swordfish-7788", outputs=("swordfish-7788.pt",))
    made.run_to(run, "running")
    made.clock.step(5)
    # It became a key after it had been written into a request.
    made.service.ports = replace(made.ports, redact=Redactor({"LAB_KEY": "swordfish-7788"}).text)
    one = Visitor(made, tmp_path)
    one.come_in()
    pages = [f"/runs/{run}", f"/part/runs/{run}/log", "/", f"/api/v1/runs/{run}", "/?find=swordfish-7788"]
    shown = [one.get(path).text for path in pages]
    assert [path for path, text in zip(pages, shown, strict=True) if "swordfish" in text] == []
    assert "step 1/9" in shown[1]


def test_an_internal_error_tells_nothing_of_itself(visitor: Callable[..., Visitor]) -> None:
    one = visitor()
    one.come_in()
    one.app.state.here.service.ports.store.close()
    one.app.state.here.service.library = None
    said = one.get("/api/v1/library")
    assert (said.status_code, said.json()["error"]["code"]) == (500, "internal")
    assert "NoneType" not in said.text
    assert "NoneType" not in one.get("/library").text


def test_the_language_is_the_readers(visitor: Callable[..., Visitor]) -> None:
    one = visitor()
    assert 'lang="zh"' in one.get("/login", headers={"Accept-Language": "zh-CN,en;q=0.5"}).text
    assert 'lang="en"' in one.get("/login", headers={"Accept-Language": "de,fr"}).text
    back = one.post("/language", {"to": "zh"}, headers={"Referer": "http://testserver/inbox"})
    assert back.headers["location"] == "/inbox"
    assert 'lang="zh"' in one.get("/login").text
    away = one.post("/language", {"to": "en"}, headers={"Referer": "http://evil//evil/x"})
    assert away.headers["location"] == "/"


def test_a_click_that_was_sent_twice_is_one_answer(desk: Desks, tmp_path: Path) -> None:
    made = desk(checks={"image": asks})
    run = made.delegate()
    made.run_to(run, "blocked")
    one = Visitor(made, tmp_path)
    one.come_in("answer")
    unfit = one.post(f"/questions/{run}/1", {"option": "image", "text": ""})
    assert unfit.status_code == 409
    said = [one.post(f"/questions/{run}/1", {"option": "image", "text": "team/base:3"}) for _ in range(2)]
    assert [each.status_code for each in said] == [200, 200]
    assert "use this image: team/base:3" in said[1].text
    other = one.post(f"/questions/{run}/1", {"option": "dont-submit"})
    assert other.status_code == 409
    assert "ann was first" in other.text
    assert made.job(run).spec.image == "team/base:3"


def test_a_form_that_was_sent_twice_is_one_run(desk: Desks, tmp_path: Path) -> None:
    made = desk()
    one = Visitor(made, tmp_path)
    one.come_in()
    form = {"command": "echo step 1/1", "name": "digits", "key": "k1"}
    looked = one.post("/delegate", form)
    (mark,) = re.findall(r'name="mark" value="(\w+)"', looked.text)
    assert made.store.boards() == []
    first, again = (one.post("/delegate", form | {"mark": mark}) for _ in range(2))
    assert first.status_code == again.status_code == 303
    assert first.headers["location"] == again.headers["location"]
    changed = one.post("/delegate", form | {"mark": mark, "command": "echo step 2/2"})
    assert changed.status_code == 200, "what was changed is looked over again"
    assert len(made.store.boards()) == 1


# --- the people's file ---------------------------------------------------------------------------------------


def test_tokens_are_kept_hashed_in_a_file_of_the_owner(tmp_path: Path) -> None:
    people = People(tmp_path / "config" / "people.json")
    assert people.list() == []
    token = people.add("ann", Role.answer)
    file = tmp_path / "config" / "people.json"
    assert file.stat().st_mode & 0o777 == 0o600
    assert token not in file.read_text(encoding="utf-8")
    found = People(file).of_token(token)
    assert found is not None
    assert (found.name, found.role) == ("ann", Role.answer)
    assert people.of_token(token[:-1]) is None
    assert people.of_token("\udcff") is None


def test_a_file_that_others_can_read_lets_nobody_in(tmp_path: Path) -> None:
    people = People(tmp_path / "people.json")
    token = people.add("ann", Role.answer)
    (tmp_path / "people.json").chmod(0o644)
    with pytest.raises(PeopleError, match="chmod 600"):
        people.of_token(token)


def test_a_damaged_file_is_said_and_not_replaced(tmp_path: Path) -> None:
    people = People(tmp_path / "people.json")
    people.add("ann", Role.answer)
    (tmp_path / "people.json").write_text("{", encoding="utf-8")
    with pytest.raises(PeopleError, match="damaged"):
        people.add("bo", Role.read)
    assert (tmp_path / "people.json").read_text(encoding="utf-8") == "{"


@pytest.mark.parametrize("name", ["", "a b", "../x", "a" * 65, "-x"])
def test_a_name_that_is_none_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(PeopleError, match="no name"):
        People(tmp_path / "people.json").add(name, Role.read)
