"""Commands for who may come to the page and the API: `people add`, `people list`, `people remove`.

Never: a token shown a second time.
"""

from __future__ import annotations

from typing import Annotated

import typer

from agent.cli.output import Exit, Fault, JsonFlag, emit, say, show, table

PANEL = "Keys and memory"

commands = typer.Typer(help="Who may use the page and the API of `wk serve`.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.add_typer(commands, name="people", rich_help_panel=PANEL)


@commands.command("add")
def people_add(
    name: Annotated[str, typer.Argument(help="Under which their answers and orders are recorded.")],
    role: Annotated[
        str, typer.Option("--role", help="read, answer (and read), or operate (and both).")
    ] = "answer",
    json_wanted: JsonFlag = False,
) -> None:
    """Let somebody in: their token is shown once.

    For a name that is there already, a new token: the old one is void at once.
    """
    from agent.people import People, Role

    if role not in set(Role):
        raise Fault(Exit.usage, f"--role is read, answer or operate, not {role!r}")
    token = People.of().add(name, Role(role))
    show(
        json_wanted,
        {"name": name, "role": role, "token": token},
        f"{name} may come in now, with the role {role}. The token, shown only this once:",
        token,
        "It is typed into the page, or sent as `Authorization: Bearer TOKEN` to the API.",
    )


@commands.command("list")
def people_list(json_wanted: JsonFlag = False) -> None:
    """List who may come in."""
    from agent.people import People

    found = People.of().list()
    if json_wanted:
        emit([{"name": person.name, "role": str(person.role)} for person in found])
        return
    if not found:
        say("Nobody yet. Let somebody in: wk people add NAME --role answer")
        return
    say(*table(["NAME", "ROLE"], [[person.name, str(person.role)] for person in found]))


@commands.command("remove")
def people_remove(
    name: Annotated[str, typer.Argument(help="As the list shows it.")], json_wanted: JsonFlag = False
) -> None:
    """Let somebody in no longer; what they have open ends at once."""
    from agent.people import People

    if not People.of().remove(name):
        raise Fault(Exit.not_found, f"there is nobody named {name!r}; `wk people list` shows who may come in")
    show(json_wanted, {"name": name, "removed": True}, f"{name} may no longer come in.")
