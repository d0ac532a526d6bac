"""One run over every surface: delegated by a chat agent (MCP), asked in Slack, answered at the page, followed in the
terminal; all of them tell the same history.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from agent.people import People, Role
from tests.channels.servers import Slack
from tests.cli.program import QUICK, WAIT_S, Wk, finish
from tests.mcp.chat import call, http
from tests.pictures import picture

CONFIG = """
metrics: true
channels:
  team: {{kind: slack, conversation: C123, base_url: "{api}", group_s: 1}}
"""


@pytest.fixture
def slack() -> Iterator[Slack]:
    made = Slack()
    yield made
    made.close()


@pytest.fixture
def wk(tmp_path: Path, slack: Slack, eventually: Callable[..., Any]) -> Iterator[Wk]:
    program = Wk(tmp_path / "wk")
    config = program.home / "config" / "config.yaml"
    config.write_text(QUICK + CONFIG.format(api=slack.api), encoding="utf-8")
    program.env |= {"SLACK_BOT_TOKEN": "xoxb-of-this-test", "SLACK_APP_TOKEN": "xapp-of-this-test"}
    yield program
    program.close(eventually)


def test_one_history(wk: Wk, slack: Slack, eventually: Callable[..., Any]) -> None:
    token = People.of(wk.env).add("kim", Role.operate)
    serving = wk.start("serve", "--port", "0", "--json")
    try:
        assert serving.stdout is not None
        url = next(told["url"] for told in map(json.loads, serving.stdout) if told["event"] == "page")
        gone = wk.workspace / "later"

        run = asyncio.run(delegated(f"{url}/mcp", token, str(gone)))
        asked = eventually(lambda: [one for one in slack.messages if _buttons(one)])[0]
        question = _buttons(asked)[0]["value"].partition("|")[0]
        assert question == f"{run}/1"

        gone.mkdir()
        with httpx2.Client(
            trust_env=False, timeout=WAIT_S, headers={"Authorization": f"Bearer {token}"}
        ) as page:
            answered = page.post(f"{url}/api/v1/questions/{question}", json={"reply": "again"})
            assert answered.status_code == 200, answered.text
            followed = wk("follow", run, "--json")
            told = page.get(f"{url}/api/v1/runs/{run}").json()
            why = page.get(f"{url}/api/v1/runs/{run}/why").json()
            metrics = page.get(f"{url}/metrics").text
        assert followed.code == 0, followed.err
        assert (followed.lines[-1]["event"], followed.lines[-1]["state"]) == ("end", "succeeded")
        assert told["state"] == "succeeded"
        assert (gone / "where.txt").exists()

        thread = asked.get("thread_ts") or asked["ts"]
        ended = eventually(
            lambda: [
                one for one in slack.messages if _text(one).startswith(f"{run}") and "succeeded" in _text(one)
            ]
        )
        assert ended[0]["thread_ts"] == thread
        assert [one["event"] for one in why].count("answered") == 1
        slack.press(asked, _buttons(asked)[-1])
        (late,) = eventually(lambda: slack.replies(thread))
        assert "was answered" in late
        assert "watchkeeper_runs{" in metrics
        pictures(wk, slack, run, thread)
        told_of = [line for line in metrics.splitlines() if line.startswith("watchkeeper_")]
        picture("metrics", "/metrics", "\n".join(line for line in told_of if "_bucket" not in line)[:2400])
    finally:
        os.kill(serving.pid, signal.SIGTERM)
        finish(serving)


def pictures(wk: Wk, slack: Slack, run: str, thread: str) -> None:
    """The same history as each surface shows it, for the docs."""
    scrub = {str(wk.workspace): "~/runs", str(wk.home.parent): "~"}
    shown = wk("show", run).out
    why = wk("why", run).out
    picture("terminal", f"wk show {run}", shown, scrub=scrub)
    picture("why", f"wk why {run}", why, scrub=scrub)
    said = [one for one in slack.messages if thread in (one.get("ts"), one.get("thread_ts"))]
    lines = []
    for one in said:
        buttons = "  ".join(f"[ {button['text']['text']} ]" for button in _buttons(one))
        lines += [_text(one) or str(one.get("text", "")), *([buttons] if buttons else []), ""]
    picture("slack", "a run's thread in Slack", "\n".join(lines), scrub=scrub)


async def delegated(url: str, token: str, workspace: str) -> str:
    """The id of a run that a chat agent hands over."""
    async with (
        httpx2.AsyncClient(
            headers={"Authorization": f"Bearer {token}"}, timeout=WAIT_S, trust_env=False
        ) as web,
        http(url, web) as client,
    ):
        run = await call(client, "delegate", command="pwd > where.txt", name="digits", workspace=workspace)
        return str(run["run"])


def _buttons(message: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        element
        for block in message.get("blocks", ())
        if block["type"] == "actions"
        for element in block["elements"]
    ]


def _text(message: dict[str, Any]) -> str:
    return "\n".join(
        block["text"]["text"] for block in message.get("blocks", ()) if block["type"] == "section"
    )
