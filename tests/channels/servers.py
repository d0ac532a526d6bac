"""Real servers on this machine for what channels speak to: any HTTP receiver, and Slack's Web API with its socket.

Never: an answer that the real one would not give.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

from aiohttp import WSMsgType, web


class Got(NamedTuple):
    """One request as it came."""

    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def data(self) -> Any:
        return json.loads(self.body)


class Receiver:
    """An HTTP server that keeps what is posted. status: of its answers; stalls: seconds before each."""

    def __init__(self) -> None:
        self.got: list[Got] = []
        self.status = 200
        self.stall = threading.Event()
        self.stalls = False
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length", 0)))
                headers = {name.lower(): value for name, value in self.headers.items()}
                receiver.got.append(Got(self.path, headers, body))
                if receiver.stalls:
                    receiver.stall.wait(30)
                self.send_response(receiver.status)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def close(self) -> None:
        self.stall.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class Slack:
    """Slack as far as a bot sees it: `auth.test`, messages, history, and the socket of `apps.connections.open`.

    messages: what stands in the conversation; acked: envelope ids that were acknowledged. mute: the next calls are
    done and not answered.
    """

    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []
        self.acked: list[str] = []
        self.responses: list[dict[str, Any]] = []
        self.tokens: set[str] = set()
        self.errors: dict[str, str] = {}
        self.mute = 0
        self.opened = 0
        self._socket: web.WebSocketResponse | None = None
        self._envelopes = 0
        self._loop = asyncio.new_event_loop()
        ready = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(ready,), daemon=True)
        self._thread.start()
        assert ready.wait(10)

    def _run(self, ready: threading.Event) -> None:
        asyncio.set_event_loop(self._loop)
        app = web.Application()
        app.router.add_post("/api/{method}", self._api)
        app.router.add_post("/respond", self._respond)
        app.router.add_get("/socket", self._listen)
        runner = web.AppRunner(app, shutdown_timeout=0.2)
        self._loop.run_until_complete(runner.setup())
        site = web.TCPSite(runner, "127.0.0.1", 0)
        self._loop.run_until_complete(site.start())
        port = runner.addresses[0][1]
        self.api = f"http://127.0.0.1:{port}/api/"
        self._ws, self._responding = f"ws://127.0.0.1:{port}/socket", f"http://127.0.0.1:{port}/respond"
        ready.set()
        self._loop.run_forever()
        self._loop.run_until_complete(runner.cleanup())
        self._loop.close()

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)

    @property
    def listens(self) -> bool:
        """Whether a socket is open."""
        return self._socket is not None and not self._socket.closed

    # --- what a person does --------------------------------------------------------------------------------

    def send(self, kind: str, payload: dict[str, Any]) -> str:
        """An envelope on the socket; its id."""
        self._envelopes += 1
        envelope = {"envelope_id": f"e{self._envelopes}", "type": kind, "payload": payload}
        assert self._socket is not None
        asyncio.run_coroutine_threadsafe(self._socket.send_json(envelope), self._loop).result(10)
        return str(envelope["envelope_id"])

    def press(self, message: dict[str, Any], action: dict[str, Any], *, user: str = "U1") -> str:
        """A button of a message."""
        pressed = {**action, "action_ts": f"9{self._envelopes}.1", "block_id": "b", "type": "button"}
        return self.send(
            "interactive",
            {
                "type": "block_actions",
                "user": {"id": user, "team_id": "T1"},
                "team": {"id": "T1"},
                "api_app_id": "A1",
                "trigger_id": "t.1",
                "channel": {"id": "C123"},
                "message": message,
                "container": {"type": "message", "channel_id": "C123", "message_ts": message["ts"]},
                "actions": [pressed],
            },
        )

    def command(self, text: str, *, user: str = "U1") -> str:
        """`/wk text`."""
        self._envelopes += 1
        return self.send(
            "slash_commands",
            {
                "command": "/wk",
                "text": text,
                "user_id": user,
                "team_id": "T1",
                "channel_id": "C123",
                "api_app_id": "A1",
                "trigger_id": f"trigger.{self._envelopes}",
                "response_url": self._responding,
            },
        )

    def say(
        self, text: str, *, thread: str = "", user: str = "U1", kind: str = "message", ts: str = "77.1"
    ) -> str:
        """A message in the conversation, in a thread if one is given."""
        event: dict[str, Any] = {
            "type": kind, "user": user, "text": text, "ts": ts, "channel": "C123", "channel_type": "channel",
        }  # fmt: skip
        if thread:
            event["thread_ts"] = thread
        return self.send(
            "events_api",
            {
                "type": "event_callback",
                "team_id": "T1",
                "api_app_id": "A1",
                "event_id": f"Ev{ts}",
                "event": event,
            },
        )

    def hang_up(self) -> None:
        """The socket ends, as it does every few hours."""
        assert self._socket is not None
        asyncio.run_coroutine_threadsafe(self._socket.close(), self._loop).result(10)

    def replies(self, thread: str) -> list[str]:
        return [
            one["text"] for one in self.messages if one.get("thread_ts") == thread and "metadata" not in one
        ]

    # --- what Slack does -----------------------------------------------------------------------------------

    async def _api(self, request: web.Request) -> web.StreamResponse:
        method = request.match_info["method"]
        given = await _given(request)
        self.tokens.add(request.headers.get("authorization", "").removeprefix("Bearer "))
        if method in self.errors:
            return web.json_response({"ok": False, "error": self.errors[method]})
        answer = getattr(self, "_" + method.replace(".", "_"))(given)
        if self.mute and method == "chat.postMessage":
            self.mute -= 1
            assert request.transport is not None
            request.transport.abort()
            return web.Response()
        return web.json_response({"ok": True, **answer})

    def _auth_test(self, given: Mapping[str, Any]) -> dict[str, Any]:
        return {"url": "u", "team": "lab", "user": "wk", "team_id": "T1", "user_id": "UBOT", "bot_id": "B1"}

    def _conversations_info(self, given: Mapping[str, Any]) -> dict[str, Any]:
        return {"channel": {"id": given["channel"], "name": "runs"}}

    def _apps_connections_open(self, given: Mapping[str, Any]) -> dict[str, Any]:
        self.opened += 1
        return {"url": self._ws}

    def _chat_postMessage(self, given: Mapping[str, Any]) -> dict[str, Any]:  # noqa: N802 (Slack's own name)
        ts = f"{1_800_000_000 + len(self.messages)}.000100"
        self.messages.append({**given, "ts": ts})
        return {"ts": ts, "channel": given["channel"]}

    def _conversations_history(self, given: Mapping[str, Any]) -> dict[str, Any]:
        return {"messages": [one for one in self.messages if not one.get("thread_ts")]}

    def _conversations_replies(self, given: Mapping[str, Any]) -> dict[str, Any]:
        return {
            "messages": [one for one in self.messages if given["ts"] in (one.get("thread_ts"), one["ts"])]
        }

    async def _respond(self, request: web.Request) -> web.StreamResponse:
        self.responses.append(await request.json())
        return web.Response(text="ok")

    async def _listen(self, request: web.Request) -> web.StreamResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        await socket.send_json({"type": "hello", "num_connections": 1, "connection_info": {"app_id": "A1"}})
        self._socket = socket
        async for message in socket:
            if message.type == WSMsgType.TEXT and message.data.startswith("{"):
                self.acked.append(json.loads(message.data)["envelope_id"])
        return socket


async def _given(request: web.Request) -> dict[str, Any]:
    """The arguments of a call, whether they came as JSON or as a form."""
    if request.content_type == "application/json":
        return dict(await request.json())
    form = {**request.query, **(await request.post())}
    return {name: _value(str(value)) for name, value in form.items()}


def _value(text: str) -> Any:
    return json.loads(text) if text.startswith(("[", "{")) else text


Eventually = Callable[..., Any]
