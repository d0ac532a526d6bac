"""The tools as the official client meets them on HTTP, in both protocol eras: real server, real jobs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from agent.mcp.server import KINDS
from tests.cli.program import steps
from tests.mcp.chat import ERAS, Era, Person, asked, call, ended, refused, text_of
from tests.mcp.conftest import Served

SECRET = "hf_" + "a1B2c3D4e5F6g7H8i9J0"
TOKENS_MAX = 2500
CHARS_A_TOKEN = 3.5
"""JSON of English words and braces has about four in common tokenizers; fewer is the careful side."""

OPERATIONS = {"capacity", "submit", "list", "get", "logs", "events", "stop", "delete"}
OF_THE_SEED = {
    "submit": {
        "command", "image", "gpu", "replicas", "taskType", "chargedGroup", "namespace", "mounts", "priority",
        "extraArgs", "predictOnly", "dryRun",
    },
    "logs": {"tailLines"},
    "capacity": {"chargedGroup"},
}  # fmt: skip
"""Argument names that chat agents know already."""


@pytest.mark.parametrize("era", ERAS)
def test_the_list_is_short_and_says_what_each_tool_does(served: Served, era: Era) -> None:
    async def chat() -> Any:
        async with served.client(era) as client:
            return await client.list_tools()

    listed = anyio.run(chat)
    data = [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in listed.tools]
    length = len(json.dumps({"tools": data}, separators=(",", ":"), ensure_ascii=False))
    assert length / CHARS_A_TOKEN <= TOKENS_MAX, f"{length} characters"
    by_name = {tool["name"]: tool for tool in data}
    assert set(by_name) == set(KINDS) >= OPERATIONS
    assert all(tool["description"] and tool["outputSchema"]["required"] for tool in data)
    for name, arguments in OF_THE_SEED.items():
        assert arguments <= set(by_name[name]["inputSchema"]["properties"])
    reading = {name for name, tool in by_name.items() if tool["annotations"].get("readOnlyHint")}
    assert reading == set(KINDS) - {"delegate", "submit", "answer", "stop", "delete"}
    destructive = {name for name, tool in by_name.items() if tool["annotations"].get("destructiveHint")}
    assert destructive == {"stop", "delete"}
    # Nothing sets or shows a key: no tool is about one, and no argument takes one (B6).
    words = " ".join([*by_name, *(name for tool in data for name in tool["inputSchema"]["properties"])])
    assert not [
        word for word in ("key", "secret", "token", "password", "credential") if word in words.lower()
    ]


@pytest.mark.parametrize("era", ERAS)
def test_a_run_from_delegation_to_deletion(served: Served, era: Era) -> None:
    async def chat() -> None:
        async with served.client(era) as client:
            wanted = {"command": steps(3, 0.1), "name": "digits", "outputs": "out.txt"}
            run = (await call(client, "delegate", **wanted))["run"]
            done = await ended(client, run)
            assert (done["state"], done["artifacts"]) == ("succeeded", ["out.txt"])
            log = await client.call_tool("logs", {"job": run, "tailLines": 1})
            assert "step 3/3" in text_of(log)
            assert "step 2/3" not in text_of(log)
            job = next(job for job in (await call(client, "list"))["jobs"] if job["run"] == run)
            got = await call(client, "get", job=run)
            assert (got["job"]["job"], got["job"]["phase"]) == (job["job"], "succeeded")
            kinds = [event["kind"] for event in (await call(client, "events", job=job["job"]))["events"]]
            assert kinds[0] == "Queued"
            assert (await call(client, "check", job=run))["phase"] == "succeeded"
            why = (await call(client, "why", run=run, last=1))["decisions"]
            assert [one["became"] for one in why] == ["collecting -> succeeded"]
            assert "nothing was deleted" in await refused(client, "delete", job=run, name="digits")
            assert job["name"] in served.cluster_jobs()
            assert (await call(client, "delete", job=run, name=run))["asked"] == "delete"
            while (got := await call(client, "get", job=run))["job"] is not None:
                await anyio.sleep(0.05)
            assert got["run"]["state"] == "succeeded", "the run's own record stays"
            assert job["name"] not in served.cluster_jobs()

    anyio.run(chat)


@pytest.mark.parametrize("era", ERAS)
def test_a_question_is_answered_by_the_tool_and_by_a_form(served: Served, era: Era) -> None:
    later, person = served.workspace / f"later-{era}", Person(option="again")
    wanted = {"command": "pwd > where.txt", "workspace": later.name}

    async def chat() -> None:
        async with served.client(era) as client:
            run = (await call(client, "delegate", **wanted))["run"]
            question = await asked(client, run)
            one = question["question"]
            assert question["default"] == "dont-submit"
            assert str(later) in question["asks"]
            assert question in (await call(client, "questions", run=run))["questions"]
            assert "dont-submit" in await refused(client, "answer", question=one, reply="perhaps")
            # A client without forms is told to give the reply; the question stays.
            assert "dont-submit" in await refused(client, "answer", question=one)
            told = await refused(client, "answer", question=one, reply=SECRET)
            assert SECRET not in told
            assert "wk key set" in told
            answered = await call(client, "answer", question=one, reply="dont-submit")
            assert answered["state"] == "not_submitted"
            assert await refused(client, "answer", question=one, reply="again")

        async with served.client(era, elicitation_callback=Person()) as client:
            run = (await call(client, "delegate", **wanted))["run"]
            question = await asked(client, run)
            left = await call(client, "answer", question=question["question"])
            assert left["questions"] == [question], "a form that is put away answers nothing"
            assert "default" in left["note"]

        async with served.client(era, elicitation_callback=person) as client:
            later.mkdir()
            assert (await call(client, "answer", question=question["question"]))["run"] == run
            assert (await ended(client, run))["state"] == "succeeded"

    anyio.run(chat)
    (form,) = person.forms
    assert set(form.requested_schema["properties"]["option"]["enum"]) >= {"again", "dont-submit"}
    assert "credential" in form.message
    assert (later / "where.txt").read_text().strip() == str(later)
    kept = served.app.state_dir.rglob("*")
    assert SECRET.encode() not in b"".join(file.read_bytes() for file in kept if file.is_file())


def test_single_steps_leave_no_record(served: Served, eventually: Callable[..., Any]) -> None:
    async def chat() -> None:
        async with served.client() as client:
            runs = len(served.app.store.boards())
            jobs = len(served.cluster_jobs())
            assert (await call(client, "capacity"))["total_cpu"] > 0
            wanted = {"command": "sleep 60", "extraArgs": "", "taskType": "normal"}
            preview = await call(client, "submit", **wanted, dryRun=True)
            assert preview["submitted"] is False
            assert "sleep 60" in preview["text"]
            assert (await call(client, "submit", **wanted, predictOnly=True))["text"]
            assert len(served.cluster_jobs()) == jobs
            sent = await call(client, "submit", command="echo step 1/9; sleep 60", name="long")
            eventually(lambda: sent["name"] in served.cluster_jobs())
            looked = await call(client, "check", job=sent["job"])
            assert looked["phase"] in ("pending", "starting", "running")
            assert (await call(client, "stop", job=sent["job"]))["asked"] == "stop"
            assert len(served.app.store.boards()) == runs

    anyio.run(chat)


def test_a_run_is_stopped_and_a_wait_ends_when_its_time_is_over(served: Served) -> None:
    async def chat() -> None:
        async with served.client() as client:
            run = (await call(client, "delegate", command="echo step 1/9; sleep 60"))["run"]
            moved = await call(client, "wait_for_change", run=run, until="phase", timeoutS=20)
            assert moved["reached"]
            still = await call(client, "wait_for_change", run=run, until="end", timeoutS=0.1)
            assert not still["reached"]
            await call(client, "stop", job=run, reason="enough")
            done = await ended(client, run)
            assert done["state"] in ("stopped", "not_submitted")
            assert "ann (MCP)" in json.dumps((await call(client, "why", run=run))["decisions"])
            over = await call(
                client, "wait_for_change", run=run, after=done["seq"], until="change", timeoutS=20
            )
            assert not over["reached"], "nothing more can come, and that is said at once"

    anyio.run(chat)


def test_a_watched_job_is_handed_over_by_name(served: Served) -> None:
    async def chat() -> None:
        async with served.client() as client:
            sent = await call(client, "submit", command="sleep 0.5; echo done", name="others")
            run = (await call(client, "delegate", watch=sent["name"]))["run"]
            assert (await ended(client, run))["state"] == "succeeded"
            assert served.cluster_jobs().count(sent["name"]) == 1
            assert (await call(client, "delegate", watch=sent["name"]))["run"] == run

    anyio.run(chat)


def test_what_is_wrong_is_said_with_what_to_do(served: Served) -> None:
    runs = len(served.app.store.boards())

    async def chat() -> None:
        async with served.client() as client:
            assert "tailLines" in await refused(client, "logs", job="x", tailines=3)
            assert "greater than or equal to 1" in await refused(client, "logs", job="x", tailLines=0)
            assert "list" in await refused(client, "get", job="nobody")
            assert "configured: local" in await refused(client, "capacity", cluster="moon")
            assert "chargedGroup" in await refused(client, "submit", command="true", namespace="lab")
            assert "command" in await refused(client, "delegate", gpu=1)
            assert "priority" in await refused(client, "submit", command="true", priority=99)
            assert "no tool" in await refused(client, "drop_everything")
            for arguments in (
                {"command": f"HF_TOKEN={SECRET} python train.py"},
                {"command": "true", "env": {"HF_TOKEN": SECRET}},
                {"command": "true", "requestId": SECRET},
                {"command": "true", "more": {"proxy": f"http://me:{SECRET}@proxy:3128"}},
            ):
                told = await refused(client, "delegate", **arguments)
                assert SECRET not in told
                assert "credential" in told

    anyio.run(chat)
    assert len(served.app.store.boards()) == runs


def test_the_same_request_id_is_the_same_run(served: Served) -> None:
    async def chat() -> None:
        async with served.client() as client:
            wanted = {"command": "true", "workspace": "gone", "requestId": "night-1"}
            first = await call(client, "delegate", **wanted)
            again = await call(client, "delegate", **wanted)
            assert first["run"] == again["run"]
            await call(client, "stop", job=first["run"])

    anyio.run(chat)


def test_the_library_is_read_by_kind_of_work(served: Served) -> None:
    async def chat() -> None:
        async with served.client() as client:
            wanted = {"command": "echo step 1/1", "purpose": "tuning the digits", "image": "lab/tune:4"}
            run = (await call(client, "delegate", **wanted))["run"]
            await ended(client, run)
            (entry,) = (await call(client, "library", purpose="Tuning"))["entries"]
            assert entry["image"] == "lab/tune:4"
            assert (await call(client, "library", purpose="another"))["entries"] == []

    anyio.run(chat)


def test_the_page_of_this_surface_names_every_tool_and_argument(served: Served) -> None:
    async def chat() -> Any:
        async with served.client() as client:
            return (await client.list_tools()).tools

    page = (Path(__file__).parents[2] / "docs" / "mcp.md").read_text(encoding="utf-8")
    for tool in anyio.run(chat):
        assert f"`{tool.name}`" in page
        assert [name for name in tool.input_schema["properties"] if f"`{name}`" not in page] == []
