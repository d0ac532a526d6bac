"""The tasks extension: a delegated run IS a task (`io.modelcontextprotocol/tasks`, revision 2026-07-28).

    working          the run is being prepared, submitted, watched, wrapped up
    input_required   a question is open; its id is the request's key, its options are the form
    completed        ended: the result is the run with its last report; isError for anything but success
    cancelled        stopped by a person

tasks/update answers, tasks/cancel stops. A task is returned only after the run was committed to the store, and lives
as long as its run does. A client that does not declare the extension gets the plain result of the tool.

Never: a state of its own beside the run's; `failed` (that is for faults of the protocol).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any

import anyio
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.extension import Extension, MethodBinding
from mcp.server.mcpserver.exceptions import ToolError
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    CallToolRequestParams,
    CallToolResult,
    RequestParams,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from agent.mcp import forms
from agent.mcp.desk import Desk
from agent.people import Role
from agent.service import Refusal
from agent.store import Unknown
from states.job import Job, State
from states.questions import Question
from states.words.closing import OWN
from states.words.rows import standing

IDENTIFIER = "io.modelcontextprotocol/tasks"
TOOL = "delegate"
POLL_MS = 1000
POLL_MS_WATCHED = 5000
"""While the cluster works, nothing changes by the second."""
LAST_WORDS_S = 10.0
"""How long an ended run's last report is waited for before the task is completed without it."""

Show = Callable[[str], CallToolResult]
"""The result of the tool for the run of this id."""


class TaskParams(RequestParams):
    """Of tasks/get and tasks/cancel."""

    task_id: str


class UpdateParams(TaskParams):
    """Of tasks/update: `{key of an input request: {action, content}}`."""

    input_responses: dict[str, dict[str, Any]]


class Tasks(Extension):
    """The extension, over one desk. show: makes the result of a completed task."""

    identifier = IDENTIFIER

    def __init__(self, desk: Desk, show: Show) -> None:
        self._desk = desk
        self._show = show

    def methods(self) -> Sequence[MethodBinding]:
        modern = frozenset(MODERN_PROTOCOL_VERSIONS)
        bound = (
            ("get", TaskParams, self._get),
            ("update", UpdateParams, self._update),
            ("cancel", TaskParams, self._cancel),
        )
        return [MethodBinding(f"tasks/{name}", params, handler, modern) for name, params, handler in bound]

    async def intercept_tool_call(
        self, params: CallToolRequestParams, ctx: ServerRequestContext[Any, Any], call_next: CallNext
    ) -> HandlerResult:
        done = await call_next(ctx)
        if params.name != TOOL or not _declares(ctx) or not isinstance(done, CallToolResult) or done.is_error:
            return done
        run = done.structured_content["run"]
        return {"resultType": "task", **await anyio.to_thread.run_sync(self._task, run)}

    async def _get(self, ctx: ServerRequestContext[Any, Any], params: TaskParams) -> HandlerResult:
        return await self._answered(ctx, Role.read, lambda: self._detailed(params.task_id))

    async def _update(self, ctx: ServerRequestContext[Any, Any], params: UpdateParams) -> HandlerResult:
        return await self._answered(
            ctx, Role.answer, lambda: self._take(params.task_id, params.input_responses)
        )

    async def _cancel(self, ctx: ServerRequestContext[Any, Any], params: TaskParams) -> HandlerResult:
        return await self._answered(ctx, Role.operate, lambda: self._stop(params.task_id))

    async def _answered(
        self, ctx: ServerRequestContext[Any, Any], role: Role, work: Callable[[], dict[str, Any]]
    ) -> HandlerResult:
        if not _declares(ctx):
            wanted: dict[str, Any] = {"requiredCapabilities": {"extensions": {IDENTIFIER: {}}}}
            raise MCPError(MISSING_REQUIRED_CLIENT_CAPABILITY, "declare the tasks extension", wanted)
        try:
            self._desk.admit(role)
        except ToolError as error:
            raise MCPError(INVALID_REQUEST, str(error)) from None
        return {"resultType": "complete", **await anyio.to_thread.run_sync(work)}

    def _job(self, task_id: str) -> Job:
        try:
            return self._desk.service.ports.store.load(task_id)
        except Unknown as error:
            raise MCPError(INVALID_PARAMS, f"there is no task {task_id!r}: {error}") from None

    def _task(self, run: str) -> dict[str, Any]:
        job, now = self._job(run), self._desk.service.ports.clock.now()
        touched = [at for at in (job.state_since, job.seen_at) if at is not None]
        status = self._status(job)
        return {
            "taskId": job.id,
            "status": status,
            "statusMessage": standing(job, now),
            "createdAt": job.created_at.isoformat(),
            "lastUpdatedAt": max(touched, default=job.created_at).isoformat(),
            "ttlMs": None,
            "pollIntervalMs": POLL_MS_WATCHED if job.state in (State.queued, State.running) else POLL_MS,
        }

    def _status(self, job: Job) -> str:
        if job.is_terminal and self._is_told(job):
            by_a_person = job.state is State.stopped and job.stop is not None and job.stop.by != OWN
            return "cancelled" if by_a_person else "completed"
        return "input_required" if job.open_questions else "working"

    def _is_told(self, job: Job) -> bool:
        """Whether the last report is there, or is waited for no longer: a completed task never changes again."""
        ports = self._desk.service.ports
        now = ports.clock.now()
        late = job.state_since is not None and now - job.state_since > timedelta(seconds=LAST_WORDS_S)
        return late or ports.store.next_effect(job.id, now) is None

    def _detailed(self, run: str) -> dict[str, Any]:
        told, job = self._task(run), self._job(run)
        if told["status"] == "input_required":
            told["inputRequests"] = {q.id: forms.request_of(job, q) for q in job.open_questions}
        if told["status"] == "completed":
            ended = self._show(run)
            ended.is_error = job.state is not State.succeeded
            told["result"] = ended.model_dump(mode="json", by_alias=True, exclude_none=True)
        return told

    def _take(self, run: str, responses: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
        """Answers to what is open; the others are passed over, as is a form that the person put away."""
        open_now = {question.id: question for question in self._job(run).open_questions}
        given = [(open_now[key], response) for key, response in responses.items() if key in open_now]
        wrong = [said for question, response in given if (said := self._answer(question, response))]
        self._desk.carry(run)
        if wrong:
            raise MCPError(INVALID_PARAMS, "\n".join(wrong))
        return {}

    def _answer(self, question: Question, response: Mapping[str, Any]) -> str:
        """What is wrong with the response; "" when it was taken or put away."""
        if response.get("action") != "accept":
            return ""
        reply = forms.reply_of(response.get("content") or {})
        try:
            self._desk.service.answer(question.id, reply, by=self._desk.by)
        except Refusal as error:
            return f"{question.id}: {error}"
        return ""

    def _stop(self, run: str) -> dict[str, Any]:
        job = self._job(run)
        if not job.is_terminal:
            try:
                self._desk.service.stop(job.id, by=self._desk.by, reason="the task was cancelled")
            except Refusal:
                return {}  # it ended meanwhile: cancelling is a wish
            self._desk.carry(job.id)
        return {}


def _declares(ctx: ServerRequestContext[Any, Any]) -> bool:
    """Whether this request's client can take a task."""
    capabilities = ctx.session.client_capabilities
    modern = ctx.protocol_version in MODERN_PROTOCOL_VERSIONS
    return modern and capabilities is not None and IDENTIFIER in (capabilities.extensions or {})
