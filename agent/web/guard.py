"""What every answer and every change must satisfy: security headers, and that a change comes from our own pages.

A change (POST and the like) may be one that a browser was talked into, so it must come from the same origin:
Sec-Fetch-Site says so, or else Origin names our host (Fetch Metadata, OWASP CSRF). A program that sends its token, or
that sends nothing a browser would, is let through to the door.
Plain ASGI, since a wrapping middleware would hold back the streams.

Never: a page with a script or a style of its own; a page in somebody else's frame.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
HEADERS = {
    "Content-Security-Policy": "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; "
    "object-src 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}


class Guard:
    """The outermost layer. prefix: of a reverse proxy; a path means the same with it or without."""

    def __init__(self, app: ASGIApp, *, prefix: str = "") -> None:
        self._app = app
        self._prefix = prefix

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if self._prefix:
            path = scope["path"]
            passed_on = path == self._prefix or path.startswith(f"{self._prefix}/")
            scope = {**scope, "root_path": self._prefix, "path": path if passed_on else self._prefix + path}

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        if scope["method"] not in SAFE and not is_ours(Headers(scope=scope)):
            refused = PlainTextResponse(
                "this change did not come from our own page; open the page anew\n", 403
            )
            await refused(scope, receive, guarded)
            return
        await self._app(scope, receive, guarded)


def is_ours(headers: Headers) -> bool:
    """Whether a change comes from our own pages, or from a program that shows a token."""
    if "authorization" in headers:
        return True
    if site := headers.get("sec-fetch-site"):
        return site in ("same-origin", "none")
    if origin := headers.get("origin"):
        return urlsplit(origin).netloc == headers.get("host")
    return "cookie" not in headers
