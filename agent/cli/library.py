"""Commands for the config library: list, forget, and share it as a file.

Never: a credential in a file; an import that was taken in by half.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from agent.cli.output import Exit, Fault, JsonFlag, ago, emit, opened, say, show

PANEL = "Keys and memory"

commands = typer.Typer(help="What earlier runs taught: images, environments, proxies.")


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.add_typer(commands, name="library", rich_help_panel=PANEL)


@commands.callback(invoke_without_command=True)
def library(context: typer.Context, json_wanted: JsonFlag = False) -> None:
    """What earlier runs taught: images, environments, proxies."""
    if context.invoked_subcommand is None:
        library_list(json_wanted)


@commands.command("list")
def library_list(json_wanted: JsonFlag = False) -> None:
    """List what is on record, the newest first."""
    app = opened()
    entries = app.library.entries()
    if json_wanted:
        emit([dict(entry) for entry in entries])
        return
    if not entries:
        say("Nothing is on record yet; every run adds what it used and what worked.")
        return
    now = app.clock.now()
    for entry in entries:
        age = ago((now - entry["last_at"]).total_seconds())
        counts = f"used {entry['used']}, worked {entry['worked']}, {age} ago"
        say(f"{entry['id']:>4}  {entry['purpose']}  ({counts})")
        say(*(f"      {field}: {value}" for field, value in entry["settings"].items()))
        if entry["stale_at"]:
            day = entry["stale_at"].isoformat(timespec="seconds")
            say(f"      STALE since {day}: {entry['stale_why'] or 'no evidence was given'}")
        say(*(f"      note: {note}" for note in entry["notes"]))


@commands.command("forget")
def library_forget(
    entry: Annotated[int, typer.Argument(help="An entry's number.")], json_wanted: JsonFlag = False
) -> None:
    """Remove one entry."""
    app = opened()
    if not app.library.forget(entry):
        raise Fault(Exit.not_found, f"there is no entry {entry}; `wk library list` shows what is on record")
    show(json_wanted, {"entry": entry, "forgotten": True}, f"Entry {entry} is forgotten.")


@commands.command("export")
def library_export(
    file: Annotated[Path, typer.Argument(help="The YAML file to write.")],
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
    json_wanted: JsonFlag = False,
) -> None:
    """Write the library to a file that a team can share."""
    from agent.library import entry_of
    from agent.libraryfile import write_library

    if file.exists() and not force:
        raise Fault(Exit.refused, f"{file} is there already; give another name, or --force to replace it")
    app = opened()
    try:
        written, left_out = write_library(map(entry_of, app.library.entries()), file)
    except OSError as error:
        raise Fault(Exit.refused, f"{file}: {(error.strerror or 'cannot be written').lower()}") from None
    said = f"{left_out} left out, since they look like they carry a credential." if left_out else ""
    document = {"file": str(file), "entries": written, "left_out": left_out}
    show(json_wanted, document, f"{written} entries are in {file}.", said)


@commands.command("import")
def library_import(
    file: Annotated[Path, typer.Argument(help="A YAML file that `export` wrote, or one like it.")],
    json_wanted: JsonFlag = False,
) -> None:
    """Take in a team's file: all of it or, if anything is wrong in it, nothing.

    What is on record already is folded, so the same file twice changes nothing.
    """
    from agent.libraryfile import read_library

    entries = read_library(file)
    taken = opened().library.take_in(entries)
    document = {"file": str(file), "new": taken.new, "folded": taken.folded}
    words = f"{taken.new} entries are new; {taken.folded} were on record and are folded into what was there."
    show(json_wanted, document, words)
