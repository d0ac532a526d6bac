"""A chat agent's side: the official client on stdio or HTTP, of the modern or the legacy protocol era.

Never: a call past the wire; a stand-in for the server.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, ClassVar, Literal

import anyio
from mcp import Client, StdioServerParameters
from mcp.client.extension import ClientExtension, advertise
from mcp.client.streamable_http import streamable_http_client
from mcp.types import CallToolResult

from agent.mcp.tasks import IDENTIFIER
from tests.cli.program import Wk

Era = Literal["modern", "legacy"]
ERAS: tuple[Era, ...] = ("modern", "legacy")
MODE: Mapping[Era, Any] = {"modern": "auto", "legacy": "legacy"}
WAIT_S = 30.0


def stdio(wk: Wk, era: Era = "modern", **how: Any) -> Client:
    """A client that starts `wk mcp` itself, in the workspace of this home."""
    server = StdioServerParameters(
        command=sys.executable, args=["-m", "agent", "mcp"], env=dict(wk.env), cwd=str(wk.workspace)
    )
    return Client(server, mode=MODE[era], read_timeout_seconds=WAIT_S, **how)
