"""No canary gets out: the database, journal, messages, reports, pages, API, chat agents, channels, prompts, records.

Never: a surface that was not really asked: each must also show something that is no secret.
"""

from __future__ import annotations

import json
import logging
import sqlite3
from collections.abc import Iterator
from typing import Any

import anyio
import pytest
from starlette.testclient import TestClient

from agent.channels.chat import Chat
from agent.mcp.desk import Caller
from agent.mcp.desk import Desk as ChatDesk
from agent.mcp.server import KINDS, Server
from agent.people import Role
from agent.redaction import Redactor
from agent.scenario import record
from agent.web.app import create_app
from states.effects import Interpret
from tests.agent.fake_model import REPLY, Asked, Turn, says
from tests.agent.reading_parts import reading
from tests.security.canaries import KNOWN, LEAKY_LOG, leaks
from tests.security.conftest import Told
from tests.security.doors import paths_of
from tests.security.leaky import WORDS
from tests.web.bench import people_of

ALL = ("failed", "blocked", "running")


# --- at rest -------------------------------------------------------------------------------------------------


def test_the_bytes_of_the_database(told: Told) -> None:
    with sqlite3.connect(told.leaky.file) as raw:
        dump = "\n".join(raw.iterdump())
    raw.close()
    files = b"".join(file.read_bytes() for file in told.leaky.file.parent.glob("watchkeeper.db*"))
    assert b"[redacted:LAB_WORD]" in files
    assert "[redacted:LAB_WORD]" in dump
    assert leaks(files) == leaks(dump) == []


@pytest.mark.parametrize("run", ALL)
def test_snapshot_journal_effects_and_messages(told: Told, run: str) -> None:
    desk, job_id = told.leaky.desk, told.leaky.runs[run]
    kept = [
        desk.job(job_id).model_dump(mode="json"),
        desk.store.journal(job_id),
        desk.store.effects_of(job_id),
    ]
    kept += [desk.store.messages(job_id), desk.store.boards()]
    assert "[redacted:" in repr(kept)
    assert leaks(repr(kept)) == []


def test_what_is_kept_beside_the_results(told: Told) -> None:
    files = list((told.leaky.desk.workspace / ".watchkeeper" / "reports").rglob("report.*"))
    assert {file.suffix for file in files} == {".md", ".json"}
    assert [(file.name, leaks(file.read_bytes())) for file in files if leaks(file.read_bytes())] == []


@pytest.mark.parametrize("run", ALL)
def test_a_run_that_is_written_down_as_a_scenario(told: Told, run: str) -> None:
    desk, job_id = told.leaky.desk, told.leaky.runs[run]
    text = record(job_id, desk)
    assert "check_finished" in text
    assert leaks(text) == []


# --- pages and API -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def web(told: Told, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    desk = told.leaky.desk
    people, tokens = people_of(tmp_path_factory.mktemp("people"))
    app = create_app(desk.service, people, workspace=desk.workspace)
    app.state.here.leaving.set()  # streams end at once
    headers = {"Authorization": f"Bearer {tokens['operate']}"}
    with TestClient(app, headers=headers, raise_server_exceptions=False) as client:
        yield client


@pytest.mark.parametrize("run", ALL)
def test_every_page_and_every_answer_of_the_api(told: Told, web: TestClient, run: str) -> None:
    asked = paths_of(web.app, run=told.leaky.runs[run], job=told.leaky.runs[run], cluster="lab")
    assert len(asked) > 25
    shown = {path: web.get(path) for path in asked}
    assert [path for path, answer in shown.items() if answer.status_code >= 500] == []
    assert {path: leaks(answer.text) for path, answer in shown.items() if leaks(answer.text)} == {}
    texts = "".join(answer.text for answer in shown.values())
    assert "[redacted:" in texts
    assert run == "blocked" or "step 2/40" in texts


@pytest.mark.parametrize("language", ["en", "zh"])
def test_what_a_person_typed_is_not_said_back(told: Told, web: TestClient, language: str) -> None:
    """A refusal names the place and never the value, whichever way the request comes."""
    typed = LEAKY_LOG[-400:] + KNOWN["LAB_WORD"]
    form = {"command": f"echo '{typed}'", "image": KNOWN["LAB_WORD"], "more": f"env: {{A_TOKEN: '{typed}'}}"}
    headers = {"Accept-Language": language}
    before = told.leaky.desk.store.mark()
    answers = [
        web.post("/api/v1/runs", json={"command": typed, "image": "i:1"}, headers=headers),
        web.post("/api/v1/runs", json={"command": ["x"], "env": {"A": KNOWN["LAB_WORD"]}}, headers=headers),
        web.post("/api/v1/lint", json={"command": ["x", "--password", "Qz12rkT7vWx12m4"]}, headers=headers),
        web.post("/api/v1/runs", json={"comand": typed}, headers=headers),
        web.post("/api/v1/runs", json={"command": ["x"], "gpu": typed}, headers=headers),
        web.get("/api/v1/runs/" + "x" * 5 + KNOWN["LAB_WORD"], headers=headers),
    ]
    assert [answer.status_code // 100 for answer in answers] == [4] * len(answers)
    assert [leaks(answer.text) for answer in answers if leaks(answer.text)] == []
    assert leaks(web.post("/api/v1/questions/none/1", json={"reply": typed}).text) == []
    assert told.leaky.desk.store.mark() == before
    # The form gives a person back what they typed, and nobody else.
    assert web.post("/delegate", data=form, headers=headers).status_code == 422


# --- chat agents and chats -----------------------------------------------------------------------------------


def test_every_tool_of_a_chat_agent(told: Told) -> None:
    desk, runs = told.leaky.desk, told.leaky.runs
    server = Server(
        ChatDesk(
            service=desk.service,
            caller=lambda: Caller("ann", Role.operate),
            carry=lambda run: "",
            cwd=desk.workspace,
        )
    )
    calls: list[tuple[str, dict[str, Any]]] = [
        ("list", {}),
        ("capacity", {}),
        ("questions", {}),
        ("library", {}),
    ]
    for run in runs.values():
        calls += [
            (tool, {"job": run}) for tool in ("get", "logs", "events", "check") if run != runs["blocked"]
        ]
        calls += [("why", {"run": run}), ("wait_for_change", {"run": run, "timeoutS": 0.0})]

    async def chat() -> dict[str, str]:
        shown = {}
        for tool, arguments in calls:
            done: Any = await server.call_tool(tool, arguments)
            shown[f"{tool} {arguments}"] = json.dumps(done.model_dump(mode="json"), ensure_ascii=False)
        return shown

    shown = anyio.run(chat)
    assert {tool for tool, _ in calls} | {"delegate", "submit", "answer", "stop", "delete"} == set(KINDS)
    assert {call: leaks(text) for call, text in shown.items() if leaks(text)} == {}
    assert "step 2/40" in "".join(shown.values())


def test_what_a_chat_is_told(told: Told) -> None:
    chat = Chat(told.leaky.desk.service)
    said = []
    for name in told.leaky.runs.values():
        for words in (f"how is {name}?", f"show me the last 40 lines of the log of {name}", f"why {name}?"):
            said.append(chat.said(words, by="ann", role=Role.read))
    said.append(chat.said("what is free?", by="ann", role=Role.read))
    said += [chat.said(f"answer {line}", by="ann", role=Role.operate) for line in LEAKY_LOG.split("\n")]
    assert "[redacted:" in "".join(said)
    assert leaks("\n".join(said)) == []


# --- channels ------------------------------------------------------------------------------------------------


def test_what_goes_out_by_webhook_and_apprise(told: Told) -> None:
    bodies = [got.body for got in told.leaky.receiver.got]
    assert len(bodies) >= 4
    assert b"[redacted:" in b"".join(bodies)
    assert [leaks(body) for body in bodies if leaks(body)] == []


def test_what_goes_out_to_slack(told: Told) -> None:
    sent = json.dumps(told.leaky.slack.messages, ensure_ascii=False)
    assert len(told.leaky.slack.messages) >= 2
    assert "[redacted:" in sent
    assert leaks(sent) == []


# --- the model -----------------------------------------------------------------------------------------------


def test_what_the_model_is_asked_and_what_it_says(told: Told) -> None:
    """It is asked without canaries; one that it makes up, or knows from elsewhere, is not taken from it either."""
    parrot = REPLY | {"quotes": [{"line": 1, "text": "loading 40 shards"}]}
    parrot |= {"summary": f"It says {KNOWN['LAB_WORD']}.", "milestone": f"env HF_TOKEN={'ab12' * 5}"}

    def answer(asked: Asked) -> Turn:
        return says(parrot)

    job = told.leaky.desk.job(told.leaky.runs["running"])
    effect = Interpret(name=job.attempt.name, lines=200, situation=WORDS)
    with reading(answer, redact=Redactor(KNOWN).text) as (reader, model):
        event = reader.interpret(job, effect, LEAKY_LOG)
        wanted = [json.dumps(asked.body, ensure_ascii=False) for asked in model.asked]
    assert len(wanted) == 1
    assert "step 2/40" in wanted[0]
    assert leaks(wanted[0]) == []
    assert "[redacted:LAB_WORD]" in event.summary
    assert leaks(event.model_dump_json()) == []


# --- the program's own log -----------------------------------------------------------------------------------


def test_what_the_program_logged_meanwhile(told: Told) -> None:
    """At its most talkative, and when something that holds canaries breaks."""
    log = logging.getLogger("agent.of.a.test")
    try:
        raise RuntimeError(LEAKY_LOG) from ValueError(WORDS)
    except RuntimeError:
        log.exception("the run broke: %s", WORDS, extra={"words": WORDS})
    text = told.log.getvalue()
    assert "the run broke: " in text
    assert "ValueError" in text
    assert leaks(text) == []
