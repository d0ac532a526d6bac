"""`mcp`: the tools for a chat agent, on stdio.

Never: print to stdout (it belongs to the protocol); leave a delegated run unwatched.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from agent.cli.output import Exit, Fault, JsonFlag, emit, hint, opened

if TYPE_CHECKING:
    from agent.app import App
    from agent.mcp.desk import Desk

PANEL = "A whole run"
MISSING = "chat agents are served with the extra `mcp`: pip install 'watchkeeper[mcp]'"


def register(app: typer.Typer) -> None:
    """Add the command of this file."""
    app.command(rich_help_panel=PANEL)(mcp)


def mcp(json_wanted: JsonFlag = False) -> None:
    """Serve a chat agent (MCP) on stdio; it starts this command itself.

    What is delegated is carried by the resident agent, which is started where there is none. With --json: print how a
    client is told of it, and the tools, and end.
    """
    from agent.app import log_to_stderr

    app = opened()
    log_to_stderr(app)
    try:
        from agent.mcp.server import Server
    except ImportError:
        raise Fault(Exit.usage, MISSING) from None
    server = Server(desk_of(app))
    if json_wanted:
        emit(_told(server))
        return
    if sys.stdin.isatty():
        hint(
            "Waiting for a chat agent on stdin. Tell your client to run: wk mcp   (docs/mcp.md; Ctrl-D ends)"
        )
    server.run("stdio")


def desk_of(app: App) -> Desk:
    """The desk of this person: whoever starts the program may everything that they may on the command line."""
    from agent.app import owner
    from agent.mcp.desk import Caller, Desk
    from agent.people import Role

    person = Caller(f"{owner(app.env)} (MCP)", Role.operate)
    return Desk(
        service=app.service,
        caller=lambda: person,
        carry=lambda run: carried(app, run),
        cwd=Path.cwd(),
        workspace=app.settings.workspace,
    )


def carried(app: App, run: str) -> str:
    """See to it that somebody carries the run; a note for the caller where nobody does."""
    from agent.background import NotStarted, ensure

    app.bell.ring()
    try:
        ensure(app.env, app.state_dir, app.clock)
    except NotStarted as error:
        return f"{run} is delegated, and nobody watches it: {error}"
    return ""


def _told(server: Any) -> dict[str, Any]:
    import anyio

    program = {"command": os.path.abspath(sys.argv[0]), "args": ["mcp"]}
    tools = [
        tool.model_dump(mode="json", by_alias=True, exclude_none=True)
        for tool in anyio.run(server.list_tools)
    ]
    return {"mcpServers": {"watchkeeper": program}, "tools": tools}
