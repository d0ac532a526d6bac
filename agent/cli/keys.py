"""Commands for keys: `key set|list|forget`.

A value is typed where it is not shown, or piped in; it is never an argument, which the shell and `ps` would show.

Never: print a value, or a part of one, even of a wrong command line.
"""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from agent.cli.output import Exit, Fault, JsonFlag, emit, opened, say, show, table

PANEL = "Keys and memory"
KeyName = Annotated[str, typer.Argument(help="As in BRAINPP_ACCESS_KEY_ID.")]

key_commands = typer.Typer(help="Set, list and forget keys. Values are never shown.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.add_typer(key_commands, name="key", rich_help_panel=PANEL)


@key_commands.command("set")
def key_set(
    name: KeyName,
    value: Annotated[list[str] | None, typer.Argument(hidden=True)] = None,
    json_wanted: JsonFlag = False,
) -> None:
    """Store a key: type it where it is not shown, or pipe it in."""
    if value:
        raise Fault(
            Exit.refused,
            "a key is never given as an argument: the shell's history and every process list show it, so nothing was "
            f"stored. Run `wk key set {name}` and type it there; if that was the real one, have it replaced.",
        )
    app = opened()
    where = app.secrets.set(name, _typed(name))
    show(json_wanted, {"name": name, "stored_in": where}, f"{name} is stored ({where}). It is never shown.")


@key_commands.command("list")
def key_list(json_wanted: JsonFlag = False) -> None:
    """List the keys by name: set or not, and what each is for."""
    from agent.secrets import KNOWN

    app = opened()
    names = sorted({*app.secrets.names(), *KNOWN})
    rows = [(name, app.secrets.source(name), KNOWN[name].help if name in KNOWN else "") for name in names]
    if json_wanted:
        emit(
            [
                {"name": name, "set": source is not None, "source": source, "for": use}
                for name, source, use in rows
            ]
        )
        return
    say(*table(["KEY", "SET", "FOR"], [[name, source or "no", use] for name, source, use in rows]))


@key_commands.command("forget")
def key_forget(name: KeyName, json_wanted: JsonFlag = False) -> None:
    """Remove a stored key. The environment is not touched."""
    app = opened()
    if not app.secrets.forget(name):
        raise Fault(Exit.not_found, f"{name} is not stored; `wk key list` shows what is")
    show(json_wanted, {"name": name, "forgotten": True}, f"{name} is forgotten.")


def _typed(name: str) -> str:
    """From a hidden prompt, or the first line of the standard input."""
    if not sys.stdin.isatty():
        return sys.stdin.readline().rstrip("\r\n")
    import getpass

    return getpass.getpass(f"{name} (not shown): ")
