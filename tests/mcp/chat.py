"""A chat agent's side: the official client on stdio or HTTP, of the modern or the legacy protocol era.

Never: a call past the wire; a stand-in for the server.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import anyio
from mcp import Client, StdioServerParameters
from mcp.client.extension import ClaimContext, ClientExtension, ResultClaim
from mcp.client.session import ClientSession
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult, ElicitResult, Request, RequestParams, Result
from pydantic import ConfigDict

from agent.mcp.tasks import IDENTIFIER
from tests.cli.program import Wk

Era = Literal["modern", "legacy"]
ERAS: tuple[Era, ...] = ("modern", "legacy")
MODE: Mapping[str, Any] = {"modern": "auto", "legacy": "legacy"}
WAIT_S = 40.0
POLL_S = 0.1


def stdio(wk: Wk, era: Era = "modern", **how: Any) -> Client:
    """A client that starts `wk mcp` itself, in the workspace of this home."""
    server = StdioServerParameters(
        command=sys.executable, args=["-m", "agent", "mcp"], env=dict(wk.env), cwd=str(wk.workspace)
    )
    return Client(server, mode=MODE[era], read_timeout_seconds=WAIT_S, **how)


def http(url: str, http_client: Any, era: Era = "modern", **how: Any) -> Client:
    """A client of a server that is there already; `http_client` carries the token."""
    transport = streamable_http_client(url, http_client=http_client)
    return Client(transport, mode=MODE[era], read_timeout_seconds=WAIT_S, **how)


async def call(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """The structured content of a call that must succeed."""
    done = await client.call_tool(tool, arguments)
    assert not done.is_error, text_of(done)
    found: dict[str, Any] = done.structured_content
    return found


async def refused(client: Client, tool: str, **arguments: Any) -> str:
    """The words of a call that must be refused."""
    done = await client.call_tool(tool, arguments)
    assert done.is_error, done.structured_content
    return text_of(done)


def text_of(done: CallToolResult) -> str:
    """What the model reads."""
    return "\n".join(part.text for part in done.content if part.type == "text")


async def asked(client: Client, run: str) -> dict[str, Any]:
    """The one open question of a run, once there is one."""
    waited = await call(client, "wait_for_change", run=run, until="question", timeoutS=WAIT_S)
    assert waited["reached"], waited
    (question,) = waited["run"]["questions"]
    found: dict[str, Any] = question
    return found


async def ended(client: Client, run: str) -> dict[str, Any]:
    """The run once it has ended."""
    waited = await call(client, "wait_for_change", run=run, until="end", timeoutS=WAIT_S)
    assert waited["reached"], waited
    found: dict[str, Any] = waited["run"]
    return found


class Person:
    """Fills in the forms that the server has put up. forms: what was shown."""

    def __init__(self, **content: Any) -> None:
        self._content = content
        self.forms: list[Any] = []

    async def __call__(self, context: Any, params: Any) -> ElicitResult:
        self.forms.append(params)
        if not self._content:
            return ElicitResult(action="decline")
        return ElicitResult(action="accept", content=self._content)


# --- tasks ---------------------------------------------------------------------------------------------------


class TaskParams(RequestParams):
    task_id: str


class GetTask(Request[TaskParams, Literal["tasks/get"]]):
    name_param = "taskId"
    method: Literal["tasks/get"] = "tasks/get"


class CancelTask(Request[TaskParams, Literal["tasks/cancel"]]):
    name_param = "taskId"
    method: Literal["tasks/cancel"] = "tasks/cancel"


class UpdateParams(TaskParams):
    input_responses: dict[str, Any]


class UpdateTask(Request[UpdateParams, Literal["tasks/update"]]):
    name_param = "taskId"
    method: Literal["tasks/update"] = "tasks/update"


class Anything(Result):
    """Whatever came."""

    model_config = ConfigDict(extra="allow")


class Task(Result):
    """A task handle, as the extension's specification has it."""

    result_type: Literal["task"]
    task_id: str
    status: str
    created_at: str
    last_updated_at: str
    ttl_ms: int | None
    poll_interval_ms: int


class TaskClient(ClientExtension):
    """Declares the extension and finishes a task by polling it. reply: fills in a form; None cancels the task."""

    identifier = IDENTIFIER

    def __init__(self, reply: Callable[[str, Mapping[str, Any]], Mapping[str, Any] | None]) -> None:
        self._reply = reply
        self.seen: list[dict[str, Any]] = []
        self.handle: Task | None = None

    def claims(self) -> Sequence[ResultClaim[Any]]:
        return [ResultClaim(result_type="task", model=Task, resolve=self._finished)]

    async def _finished(self, task: Task, context: ClaimContext) -> CallToolResult:
        self.handle = task
        answered: set[str] = set()
        while True:
            told = await get_task(context.session, task.task_id)
            self.seen.append(told)
            if told["status"] in ("completed", "cancelled", "failed"):
                return CallToolResult.model_validate(told.get("result") or {"content": []})
            for key, request in told.get("inputRequests", {}).items():
                if key not in answered:
                    answered.add(key)
                    await self._give(context.session, task.task_id, key, request)
            await anyio.sleep(POLL_S)

    async def _give(self, session: ClientSession, task: str, key: str, request: Mapping[str, Any]) -> None:
        content = self._reply(key, request["params"])
        if content is None:
            await session.send_request(CancelTask(params=TaskParams(task_id=task)), Anything)
            return
        responses = {key: {"action": "accept", "content": dict(content)}}
        await session.send_request(
            UpdateTask(params=UpdateParams(task_id=task, input_responses=responses)), Anything
        )


async def get_task(session: ClientSession, task: str) -> dict[str, Any]:
    """One `tasks/get`, as it stands on the wire."""
    told = await session.send_request(GetTask(params=TaskParams(task_id=task)), Anything)
    return told.model_dump(mode="json", by_alias=True)
