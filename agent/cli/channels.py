"""Commands for channels: `channels list`, `channels test`.

Never: an address or a token; a message of a run sent by a test.
"""

from __future__ import annotations

from typing import Annotated, Any

import typer

from agent.cli.output import Exit, Fault, JsonFlag, emit, opened, say, table

PANEL = "This installation"

commands = typer.Typer(help="Where messages go beside the inbox.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.add_typer(commands, name="channels", rich_help_panel=PANEL)


@commands.command("list")
def channels_list(json_wanted: JsonFlag = False) -> None:
    """List the channels: where each goes, and how it does."""
    app = opened()
    found = _found(app)
    if json_wanted:
        emit(found)
        return
    if not found:
        say("No channels. Set some under `channels:` in config.yaml; messages are in the inbox all the same.")
        return
    rows = [[one["name"], one["kind"], one["goes_to"], one["stands"]] for one in found]
    say(*table(["NAME", "KIND", "GOES TO", "STANDS"], rows))


@commands.command("test")
def channels_test(
    name: Annotated[str, typer.Argument(help="One channel; all unless given.", show_default=False)] = "",
    json_wanted: JsonFlag = False,
) -> None:
    """Try each channel's way out, without a run."""
    from agent.channels.base import ChannelError
    from agent.channels.office import Office

    app = opened()
    if name and name not in app.settings.channels:
        known = ", ".join(app.settings.channels) or "none"
        raise Fault(Exit.not_found, f"there is no channel {name!r}; set: {known}")
    results = []
    for channel in (one for one in Office(app).channels.values() if name in ("", one.name)):
        try:
            results.append({"name": channel.name, "ok": True, "said": channel.test()})
        except ChannelError as error:
            results.append({"name": channel.name, "ok": False, "said": app.redactor.text(str(error))})
    if json_wanted:
        emit(results)
    else:
        say(*[f"{'ok' if one['ok'] else 'fail':<4}  {one['name']}: {one['said']}" for one in results])
        say("" if results else "No channels are set: `channels:` in config.yaml.")
    if not all(one["ok"] for one in results):
        raise typer.Exit(Exit.failed)


def _found(app: Any) -> list[dict[str, Any]]:
    from agent.channels.office import Office, stands

    office = Office(app)
    return [
        {
            "name": name,
            "kind": app.settings.channels[name].kind,
            "goes_to": app.redactor.text(channel.shown()),
            "stands": stands(office.deliveries.standing(name, app.clock.now())),
        }
        for name, channel in office.channels.items()
    ]
