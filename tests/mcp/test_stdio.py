"""`wk mcp` on stdio with the official client: real subprocesses, a real job, both protocol eras."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from tests.cli.program import Wk
from tests.mcp.chat import ERAS, Era, Person, asked, call, ended, refused, stdio


@pytest.mark.parametrize("era", ERAS)
def test_a_delegated_run_asks_and_is_carried_to_its_end(wk: Wk, era: Era) -> None:
    later, person = wk.workspace / "later", Person(option="again")

    async def chat() -> None:
        async with stdio(wk, era, elicitation_callback=person) as client:
            command = "for i in 1 2 3; do echo step $i/3; done > out.txt; cat out.txt"
            wanted = {"command": command, "name": "digits", "workspace": str(later), "outputs": "out.txt"}
            run = (await call(client, "delegate", **wanted))["run"]
            question = await asked(client, run)
            assert str(later) in question["asks"]
            later.mkdir()
            assert (await call(client, "answer", question=question["question"]))["run"] == run
            done = await ended(client, run)
            assert (done["state"], done["artifacts"]) == ("succeeded", ["out.txt"])
            assert "step 3/3" in (await call(client, "logs", job=run, tailLines=1))["text"]
            why = (await call(client, "why", run=run))["decisions"]
            assert why[0]["because"].endswith("(MCP)")
            assert run in await refused(client, "delete", job=run, name="digits")

    anyio.run(chat)
    assert set(person.forms[0].requested_schema["properties"]["option"]["enum"]) >= {"again", "dont-submit"}
    assert len(wk.board()) == len(wk.cluster_jobs()) == 1
    assert wk.board()[0]["state"] == "succeeded"


def test_how_a_client_is_told(wk: Wk) -> None:
    told = wk("mcp", "--json")
    assert told.code == 0, told.err
    assert told.data["mcpServers"]["watchkeeper"]["args"] == ["mcp"]
    assert Path(told.data["mcpServers"]["watchkeeper"]["command"]).is_absolute()
    assert len(told.data["tools"]) == 15
