"""What comes in at the page: signed requests of programs, and signed links of messages."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest
from fastapi import FastAPI

from agent.app import build
from agent.channels import signing
from agent.channels.inbound import BODY_MAX
from agent.channels.mount import add_channels
from agent.clock import VirtualClock
from agent.people import People, Role
from agent.web.app import create_app
from states.job import Job, State
from tests.agent.fakes import START, Desk
from tests.channels.conftest import Posted, asking

SECRET = "of this test, and of nothing else"
CONFIG = """
channels:
  ci: {kind: webhook, secret: CI_SECRET}
  watcher: {kind: webhook, secret: WATCHER_SECRET, role: read}
public_url: https://wk.example
"""


class Door:
    """The page of a desk with channels, spoken to in this process."""

    def __init__(self, desk: Desk, folder: Path) -> None:
        home = folder / "home"
        (home / "config").mkdir(mode=0o700, parents=True)
        (home / "config" / "config.yaml").write_text(CONFIG, encoding="utf-8")
        self.desk = desk
        env = {
            "WATCHKEEPER_HOME": str(home),
            "HOME": str(folder),
            "CI_SECRET": SECRET,
            "WATCHER_SECRET": SECRET,
        }
        app = build(env, clock=desk.clock)
        app.__dict__["service"] = desk.service  # the desk's runs, on the scripted cluster
        people = People.of(env)
        people.add("kim", Role.operate)
        self.web: FastAPI = create_app(desk.service, people, workspace=desk.workspace)
        add_channels(self.web, app)
        self.links = self.web.state.links

    def send(self, method: str, path: str, **options: Any) -> httpx2.Response:
        import asyncio

        async def ask() -> httpx2.Response:
            transport = httpx2.ASGITransport(app=self.web)
            async with httpx2.AsyncClient(transport=transport, base_url="http://wk.example") as client:
                return await client.request(method, path, **options)

        return asyncio.run(ask())

    def hook(
        self, data: Any, *, channel: str = "ci", key: str = "m1", late_s: float = 0, secret: str = SECRET
    ) -> Any:
        """A signed request: (status, document)."""
        body = data if isinstance(data, bytes) else json.dumps(data).encode()
        sent_at = self.desk.clock.now() + timedelta(seconds=late_s)
        headers = signing.headers(secret, key, sent_at, body)
        answer = self.send("POST", f"/hooks/{channel}", content=body, headers=headers)
        return answer.status_code, answer.json()


@pytest.fixture
def door(posted: Callable[..., Posted], tmp_path: Path) -> tuple[Door, str]:
    """A page, and a run that asks for an image."""
    desk = posted(checks=asking(), shared=True)
    run = desk.delegate()
    desk.settle()
    return Door(desk, tmp_path), run


def job(door: Door, run: str) -> Job:
    return door.desk.job(run)


class TestHooks:
    def test_an_answer_is_taken(self, door: tuple[Door, str]) -> None:
        page, run = door
        status, said = page.hook({"question": f"{run}/1", "reply": "image=reg/a:1", "by": "nightly"})
        assert (status, said["run"]) == (200, run)
        assert job(page, run).questions[0].by == "ci:nightly"
        assert job(page, run).questions[0].value == "reg/a:1"

    def test_the_same_request_again_gives_the_same_and_does_nothing(self, door: tuple[Door, str]) -> None:
        page, run = door
        asked = {"question": f"{run}/1", "reply": "dont-submit"}
        assert page.hook(asked) == page.hook(asked)
        assert [row["kind"] for row in page.desk.store.journal(run)].count("answered") == 1

    def test_another_request_for_what_is_answered_is_refused(self, door: tuple[Door, str]) -> None:
        page, run = door
        page.hook({"question": f"{run}/1", "reply": "dont-submit"})
        status, said = page.hook({"question": f"{run}/1", "reply": "again"}, key="m2")
        assert status == 409
        assert "was answered" in said["error"]

    @pytest.mark.parametrize("how", [{"secret": "another"}, {"late_s": -301}, {"late_s": 301}])
    def test_what_is_forged_or_old_changes_nothing(self, door: tuple[Door, str], how: dict[str, Any]) -> None:
        page, run = door
        status, _ = page.hook({"question": f"{run}/1", "reply": "dont-submit"}, **how)
        assert status == 401
        assert job(page, run).open_questions

    def test_without_a_signature_nobody_is_heard(self, door: tuple[Door, str]) -> None:
        page, run = door
        answer = page.send("POST", "/hooks/ci", json={"question": f"{run}/1", "reply": "dont-submit"})
        assert answer.status_code == 401

    def test_its_role_bounds_it(self, door: tuple[Door, str]) -> None:
        page, run = door
        assert page.hook({"question": f"{run}/1", "reply": "dont-submit"}, channel="watcher")[0] == 403
        status, said = page.hook({"say": f"stop {run}"}, key="m2")
        assert status == 200
        assert "role operate" in said["said"]
        assert not job(page, run).is_terminal

    def test_it_can_ask_in_words(self, door: tuple[Door, str]) -> None:
        page, run = door
        status, said = page.hook({"say": f"how is {run} doing?"}, channel="watcher")
        assert status == 200
        assert run in said["said"]

    @pytest.mark.parametrize(
        ("data", "status"),
        [
            (b"not json", 400),
            ({"question": 3}, 400),
            ({"question": "q"}, 400),
            ([1], 400),
            (b"[" * 60_000, 400),
        ],
        ids=["no-json", "no-text", "half", "list", "deep"],
    )
    def test_nonsense_is_refused(self, door: tuple[Door, str], data: Any, status: int) -> None:
        assert door[0].hook(data)[0] == status

    def test_too_much_is_not_read(self, door: tuple[Door, str]) -> None:
        assert door[0].hook(b"x" * (BODY_MAX + 1))[0] == 413

    def test_a_credential_is_not_taken(self, door: tuple[Door, str]) -> None:
        page, run = door
        status, said = page.hook({"question": f"{run}/1", "reply": "AKIA" + "Q3EGRZT7XBNVJW5D"})
        assert status == 409
        assert "AKIA" not in str(said)


class TestLinks:
    def token(self, page: Door, run: str) -> str:
        return str(page.links.sign(f"{run}/1", by="phone", until=job(page, run).open_questions[0].answer_by))

    def test_opening_it_shows_the_question_and_changes_nothing(self, door: tuple[Door, str]) -> None:
        page, run = door
        answer = page.send("GET", f"/a/{self.token(page, run)}")
        assert answer.status_code == 200
        assert f"{run}/1" in answer.text
        assert "use this image" in answer.text
        assert job(page, run).open_questions

    def test_sending_it_answers(self, door: tuple[Door, str]) -> None:
        page, run = door
        token = self.token(page, run)
        answer = page.send("POST", f"/a/{token}", data={"option": "image", "text": "reg/a:1", "key": "k"})
        assert answer.status_code == 200
        question = job(page, run).questions[0]
        assert (question.by, question.value) == ("phone (link)", "reg/a:1")
        again = page.send("POST", f"/a/{token}", data={"option": "dont-submit", "key": "k2"})
        assert again.status_code == 409
        assert job(page, run).questions[0].value == "reg/a:1"

    def test_it_ends_with_the_deadline(self, door: tuple[Door, str]) -> None:
        page, run = door
        token = self.token(page, run)
        clock = page.desk.clock
        assert isinstance(clock, VirtualClock)
        clock.jump_to(job(page, run).open_questions[0].answer_by)
        for method in ("GET", "POST"):
            assert (
                page.send(
                    method, f"/a/{token}", data={"option": "again"} if method == "POST" else None
                ).status_code
                == 410
            )
        assert job(page, run).open_questions

    def test_another_site_cannot_send_it(self, door: tuple[Door, str]) -> None:
        page, run = door
        answer = page.send(
            "POST",
            f"/a/{self.token(page, run)}",
            data={"option": "dont-submit"},
            headers={"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"},
        )
        assert answer.status_code == 403
        assert job(page, run).state is State.blocked

    def test_what_is_forged_is_told_so(self, door: tuple[Door, str]) -> None:
        answer = door[0].send("GET", "/a/what.ever")
        assert answer.status_code == 410
        assert "damaged" in answer.text


def test_the_page_has_no_hooks_without_a_webhook(posted: Callable[..., Posted], tmp_path: Path) -> None:
    desk = posted(shared=True)
    env = {"WATCHKEEPER_HOME": str(tmp_path / "none"), "HOME": str(tmp_path)}
    web = create_app(desk.service, People.of(env), workspace=desk.workspace)
    add_channels(web, build(env, clock=VirtualClock(START)))
    assert all(getattr(route, "path", "") not in ("/hooks", "/metrics") for route in web.routes)
