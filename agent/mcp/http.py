"""The same server on streamable HTTP, behind bearer tokens (`mount.py` puts it into the page).

The people are those of the page: a token's role says which tools it may call.

Never: a call without a token; a token kept, logged or shown.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.provider import AccessToken
from mcp.server.auth.settings import AuthSettings
from mcp.server.transport_security import TransportSecuritySettings
from pydantic import AnyHttpUrl
from starlette.types import ASGIApp

from agent.mcp.desk import Caller, Desk
from agent.mcp.server import Server
from agent.people import People, PeopleError, Role
from agent.service import Service

log = logging.getLogger(__name__)

LOOPBACK = ("127.0.0.1:*", "localhost:*", "[::1]:*")


class Tokens:
    """The verifier that the SDK asks: a token's person and role."""

    def __init__(self, people: People) -> None:
        self._people = people

    async def verify_token(self, token: str) -> AccessToken | None:
        """The access of this token; None for nobody's."""
        try:
            person = self._people.of_token(token)
        except PeopleError as error:
            log.warning("nobody can come in: %s", error)
            return None
        if person is None:
            return None
        return AccessToken(token=token, client_id=person.name, scopes=[str(person.role)], subject=person.name)


class Tools(NamedTuple):
    """The server on HTTP. app: answers requests while `session_manager.run()` of the server is entered."""

    server: Server
    app: ASGIApp


def tools(
    service: Service,
    people: People,
    *,
    workspace: Path,
    hosts: Sequence[str] = (),
    carry: Callable[[str], str] = lambda run: "",
    path: str,
) -> Tools:
    """The tools, to be served at `path`. The parameters are those of `agent.mcp.mount.mount`."""
    desk = Desk(
        service=service, caller=caller_of_this_request, carry=carry, cwd=workspace, workspace=workspace
    )
    server = Server(desk, token_verifier=Tokens(people), auth=_auth(path))
    security = TransportSecuritySettings(
        allowed_hosts=[*LOOPBACK, *hosts],
        allowed_origins=[
            f"{scheme}://{host}" for scheme in ("http", "https") for host in (*LOOPBACK, *hosts)
        ],
    )
    return Tools(server, server.streamable_http_app(streamable_http_path=path, transport_security=security))


def caller_of_this_request() -> Caller:
    """Who sent the request that is being served; nobody may anything without a token."""
    token = get_access_token()
    if token is None:
        return Caller("nobody", None)
    return Caller(f"{token.client_id} (MCP)", Role(token.scopes[0]))


def _auth(path: str) -> AuthSettings:
    """Tokens are handed out by the owner of this server: there is no authorization server to send a client to."""
    here = AnyHttpUrl(f"http://127.0.0.1{path}")
    return AuthSettings(issuer_url=here, resource_server_url=None, validate_token_resource=False)
