"""A real run on the real local cluster, told of by `wk` itself: on a webhook, at the page, in the figures."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from agent.channels import signing
from agent.clock import SystemClock
from agent.people import People, Role
from tests.channels.servers import Receiver
from tests.cli.program import QUICK, WAIT_S, Wk, finish, steps

SECRET = "of this test, and of nothing else"
CONFIG = """
metrics: true
channels:
  ci: {kind: webhook, url: CI_URL, secret: CI_SECRET}
  lost: {kind: apprise, url: LOST_URL, wants: must-not-miss}
"""


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    made = Receiver()
    yield made
    made.close()


@pytest.fixture
def wk(tmp_path: Path, receiver: Receiver, eventually: Callable[..., Any]) -> Iterator[Wk]:
    program = Wk(tmp_path / "wk")
    (program.home / "config" / "config.yaml").write_text(QUICK + CONFIG, encoding="utf-8")
    program.env |= {"CI_URL": f"{receiver.url}/in", "CI_SECRET": SECRET}
    yield program
    program.close(eventually)


def test_a_run_is_told_of_once_and_signed(wk: Wk, receiver: Receiver, eventually: Callable[..., Any]) -> None:
    run = wk(
        "run", "--name", "digits", "--output", "out.txt", "--detach", "--json", "--", steps(3, 0.1)
    ).data["run"]
    last = eventually(lambda: [got for got in receiver.got if got.data["stage"] == "wrap-up"])
    assert signing.verified(SECRET, last[0].headers, last[0].body, SystemClock().now()).startswith("ci:")
    assert {got.data["run"] for got in receiver.got} == {run}
    eventually(lambda: wk.resident() is None)  # nothing is left to watch, and nothing that could be sent
    ids = [got.headers["webhook-id"] for got in receiver.got]
    assert len(ids) == len(set(ids)) >= 3

    rows = {row["name"]: row for row in wk("doctor", "--json").data}
    assert rows["channel ci"]["level"] == "ok"
    assert "; sent at " in rows["channel ci"]["said"]
    assert (rows["channel lost"]["level"], "LOST_URL is not set" in rows["channel lost"]["said"]) == (
        "fail",
        True,
    )


def test_channels_are_tried_without_a_run(wk: Wk, receiver: Receiver) -> None:
    ran = wk("channels", "test", "--json")
    assert ran.code == 3
    assert {one["name"]: one["ok"] for one in ran.data} == {"ci": True, "lost": False}
    assert receiver.got[0].data["type"] == "test"
    assert wk("channels", "test", "nowhere").code == 6
    listed = wk("channels", "list")
    assert "nothing was sent yet" in listed.out
    assert SECRET not in ran.out + ran.err + listed.out
    assert receiver.url not in ran.out + ran.err + listed.out


def test_the_page_takes_signed_requests_and_shows_figures(
    wk: Wk, receiver: Receiver, eventually: Callable[..., Any]
) -> None:
    token = People.of(wk.env).add("prometheus", Role.read)
    serving = wk.start("serve", "--port", "0", "--json")
    try:
        assert serving.stdout is not None
        url = next(told["url"] for told in map(json.loads, serving.stdout) if told["event"] == "page")
        run = wk("run", "--name", "digits", "--detach", "--json", "--", steps(2, 0.1)).data["run"]
        eventually(lambda: [got for got in receiver.got if got.data["stage"] == "wrap-up"])
        body = json.dumps({"say": f"how is {run}?"}).encode()
        with httpx2.Client(trust_env=False, timeout=WAIT_S) as client:
            headers = signing.headers(SECRET, "m1", SystemClock().now(), body)
            said = client.post(f"{url}/hooks/ci", content=body, headers=headers)
            assert client.get(f"{url}/metrics").status_code == 401
            figures = client.get(f"{url}/metrics", headers={"Authorization": f"Bearer {token}"}).text
        assert run in said.json()["said"]
        assert 'watchkeeper_runs{state="succeeded"} 1.0' in figures
        assert (
            'watchkeeper_cluster_calls_total{cluster="local",operation="submit",outcome="ok"} 1.0' in figures
        )
        assert 'watchkeeper_effects_total{kind="submit",outcome="ok"} 1.0' in figures
        assert "watchkeeper_wave_seconds_count" in figures
        assert run not in figures
    finally:
        os.kill(serving.pid, signal.SIGTERM)
        finish(serving)
