"""Commands for standing orders: show what is in force, check a file.

Never: change an order.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from agent.cli.output import Exit, Fault, JsonFlag, emit, opened, say, show, table

PANEL = "This installation"

commands = typer.Typer(help="What you have answered beforehand.")


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.add_typer(commands, name="orders", rich_help_panel=PANEL)


@commands.callback(invoke_without_command=True)
def orders(context: typer.Context, json_wanted: JsonFlag = False) -> None:
    """What you have answered beforehand: defaults, deadlines, budgets, stop conditions."""
    if context.invoked_subcommand is not None:
        return
    from agent.orders import person_file

    app = opened()
    found = [{"order": place, "value": v, "from": s} for place, (v, s) in app.orders.sources.items()]
    if json_wanted:
        emit(found)
        return
    if not found:
        say(f"There are no standing orders. Yours stand in {person_file(app.env)}")
        return
    say(*table(["ORDER", "VALUE", "FROM"], [[str(cell) for cell in row.values()] for row in found]))


@commands.command("check")
def orders_check(
    file: Annotated[
        Path | None, typer.Argument(help="A file, if not your own orders.yaml.", show_default=False)
    ] = None,
    site: Annotated[
        bool, typer.Option("--site", help="Check it as a site's file, which may say less.")
    ] = False,
    json_wanted: JsonFlag = False,
) -> None:
    """Check a file of standing orders. Every fault is told with its line."""
    import os

    from agent.orders import person_file, read_orders

    wanted = file or person_file(os.environ)
    if not wanted.exists():
        raise Fault(
            Exit.not_found, f"{wanted} is not there; docs/standing-orders.md shows what may stand in it"
        )
    read = read_orders(wanted, "site" if site else "person")
    said = sorted(read.model_fields_set)
    words = f"{wanted} is fine; it orders: {', '.join(said) or 'nothing'}."
    show(json_wanted, {"file": str(wanted), "orders": said}, words)
