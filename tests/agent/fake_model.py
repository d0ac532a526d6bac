"""A small server on this machine's loopback that speaks the Messages API, as well and as badly as real ones do.

It answers each request with the next of the turns it was given (the last one again and again), and keeps what it was
asked. The client, the HTTP and the time-outs in front of it are the real ones.

Never: an address beyond 127.0.0.1; a turn that a real server or proxy could not show.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

REPLY: dict[str, Any] = {
    "verdict": "slow",
    "cause": "none",
    "quotes": [{"line": 1, "text": "building the index of the shards"}],
    "milestone": "shard 3 of 40",
    "confidence": 0.8,
    "summary": "It builds an index of its data, which takes long at this size.",
}
"""A good reading of the log in `test_reader`."""


class Turn(NamedTuple):
    """One answer. drip_s: pause before each piece of the body; drop: the connection ends half way."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = {"content-type": "application/json"}
    drip_s: float = 0.0
    pieces: int = 1
    drop: bool = False


class Asked(NamedTuple):
    """One request as it arrived."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]

    @property
    def user(self) -> str:
        """The message with the data."""
        return str(self.body["messages"][0]["content"])


Script = Sequence[Turn] | Callable[[Asked], Turn]


class FakeModel:
    """The running server. url: its base URL; asked: the requests so far."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.asked: list[Asked] = []
        self.stop = threading.Event()
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"

    def turn(self, asked: Asked) -> Turn:
        """The answer to the request that has just come."""
        self.asked.append(asked)
        if callable(self.script):
            return self.script(asked)
        return self.script[min(len(self.asked), len(self.script)) - 1]


@contextmanager
def fake_model(script: Script) -> Iterator[FakeModel]:
    """A server that runs while the block does."""
    model = FakeModel(script)
    thread = threading.Thread(target=model.server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield model
    finally:
        model.stop.set()
        model.server.shutdown()
        model.server.server_close()
        thread.join()


def says(
    reply: object = REPLY,
    *,
    stop_reason: str | None = "end_turn",
    tokens: tuple[int, int] = (2000, 150),
    blocks: Sequence[Mapping[str, Any]] = (),
    model: str = "claude-haiku-5-5",
) -> Turn:
    """A message whose text is the reply (an object as JSON, a text as it is). blocks: put before the text."""
    text = reply if isinstance(reply, str) else json.dumps(reply, ensure_ascii=False)
    message = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [*blocks, {"type": "text", "text": text}],
        "stop_reason": stop_reason,
        "stop_sequence": None,
        "usage": {"input_tokens": tokens[0], "output_tokens": tokens[1]},
    }
    return Turn(
        body=json.dumps(message).encode(), headers={"content-type": "application/json", "request-id": "req_1"}
    )


def fails(status: int, kind: str, headers: Mapping[str, str] | None = None, message: str = "no") -> Turn:
    """An error in the protocol's own form."""
    body = json.dumps({"type": "error", "error": {"type": kind, "message": message}}).encode()
    return Turn(status, body, {"content-type": "application/json", **(headers or {})})


def _handler(model: FakeModel) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            length = int(self.headers["content-length"])
            body = json.loads(self.rfile.read(length))
            names = {name.lower(): value for name, value in self.headers.items()}
            self._send(model.turn(Asked(self.path, names, body)))

        def _send(self, turn: Turn) -> None:
            self.send_response(turn.status)
            for name, value in turn.headers.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(turn.body)))
            self.send_header("connection", "close")
            self.end_headers()
            self.close_connection = True
            step = max(1, -(-len(turn.body) // turn.pieces))
            end = len(turn.body) // 2 if turn.drop else len(turn.body)
            try:
                for start in range(0, end, step):
                    if turn.drip_s and model.stop.wait(turn.drip_s):
                        return
                    self.wfile.write(turn.body[start : min(start + step, end)])
                    self.wfile.flush()
            except (BrokenPipeError, ConnectionResetError):
                pass  # the client has had enough

        def log_message(self, *_: object) -> None:
            """Quiet."""

    return Handler
