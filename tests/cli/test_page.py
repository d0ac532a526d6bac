"""`wk serve` with its page, and the people who may come to it."""

from __future__ import annotations

import json
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import httpx2
import pytest

from tests.cli.program import WAIT_S, Wk, finish


@contextmanager
def serving(wk: Wk, *words: str) -> Iterator[tuple[subprocess.Popen[str], dict[str, Any]]]:
    """`wk serve --json` and what it tells of its page ({} without one), until it is ended."""
    process = wk.start("serve", "--json", *words)
    assert process.stdout is not None
    try:
        told = json.loads(process.stdout.readline())
        yield process, told if told["event"] == "page" else {}
    finally:
        process.terminate()
        out, err = process.communicate(timeout=WAIT_S)
        assert json.loads(out.splitlines()[-1])["event"] == "ended"
        assert "Traceback" not in err


def asked(url: str, **options: Any) -> httpx2.Response:
    with httpx2.Client(trust_env=False, timeout=WAIT_S) as client:
        return client.get(url, **options)


def test_the_first_start_lets_its_owner_in_by_a_link_that_is_shown_once(wk: Wk) -> None:
    with serving(wk, "--port", "0") as (_, told):
        url, token = told["login"].split("/login#")
        assert url == told["url"]
        seen = asked(f"{url}/api/v1/runs", headers={"Authorization": f"Bearer {token}"})
        assert (seen.status_code, seen.json()) == (200, [])
        assert asked(f"{url}/healthz").text == "ok\n"
    with serving(wk, "--port", "0") as (_, again):
        assert "login" not in again
    for file in (wk.home / "state").rglob("*.log"):
        assert token not in file.read_text(encoding="utf-8")


def test_a_port_that_is_taken_is_an_error_only_when_it_was_asked_for(wk: Wk) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        ran = wk("serve", "--port", port, "--json")
    assert ran.code == 5
    assert "--port" in json.loads(ran.out.splitlines()[-1])["error"]["message"]
    assert wk.resident() is None


def test_it_carries_runs_without_the_page(wk: Wk, eventually: Callable[..., Any]) -> None:
    with serving(wk, "--no-web") as (_, told):
        assert told == {}
        assert wk("run", "-d", "--name", "digits", "--", "echo step 1/1").code == 0
        eventually(lambda: wk.board()[0]["state"] == "succeeded")
    assert not (wk.home / "config" / "people.json").exists()


def test_without_its_packages_it_says_how_to_get_them(wk: Wk, eventually: Callable[..., Any]) -> None:
    broken = wk.home / "broken"
    broken.mkdir()
    (broken / "uvicorn.py").write_text("raise ImportError('no uvicorn', name='uvicorn')", encoding="utf-8")
    wk.env["PYTHONPATH"] = f"{broken}:{wk.env['PYTHONPATH']}"
    process = wk.start("serve")
    eventually(lambda: (present := wk.resident()) is not None and present.ready)
    process.terminate()
    ran = finish(process)
    assert ran.code == 0
    assert "watchkeeper[web]" in ran.err


def test_people_are_let_in_listed_and_removed(wk: Wk) -> None:
    assert "Nobody yet" in wk("people", "list").out
    added = wk("people", "add", "ann", "--role", "operate", "--json").data
    assert added["token"].startswith("wk_")
    assert wk("people", "list", "--json").data == [{"name": "ann", "role": "operate"}]
    shown = wk("people", "list").out
    assert "ann" in shown
    assert added["token"] not in shown
    assert wk("people", "remove", "ann").code == 0
    gone = wk("people", "remove", "ann", "--json")
    assert (gone.code, gone.data["error"]["code"]) == (6, "not_found")


@pytest.mark.parametrize(("words", "code"), [(("bo b",), 5), (("ann", "--role", "king"), 2)])
def test_who_cannot_be_let_in_is_said(wk: Wk, words: tuple[str, ...], code: int) -> None:
    ran = wk("people", "add", *words)
    assert ran.code == code
    assert ran.err
