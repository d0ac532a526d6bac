"""Commands that keep what Watchkeeper knows elsewhere: `backup`, `restore`, `export`, `import`.

Never: overwrite a file or a database; make an imported run live.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from agent.cli.completion import complete_run
from agent.cli.output import Exit, Fault, JsonFlag, emit, opened, say, show

PANEL = "This installation"


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.command(rich_help_panel=PANEL)(backup)
    app.command(rich_help_panel=PANEL)(restore)
    app.command("export", rich_help_panel=PANEL)(export_run)
    app.command("import", rich_help_panel=PANEL)(import_run)


def backup(
    file: Annotated[Path, typer.Argument(help="A new file; nothing is overwritten.")],
    json_wanted: JsonFlag = False,
) -> None:
    """Copy the embedded database, while it is in use, and check the copy."""
    from agent.backup import backup as copy

    kept = copy(opened().settings.database_url, file)
    show(
        json_wanted,
        kept._asdict(),
        f"{kept.file}: {kept.runs} runs, {kept.live} of them live, {kept.bytes} bytes; checked.",
        f"Put it back (with no database in its place): wk restore {kept.file}",
    )


def restore(
    file: Annotated[Path, typer.Argument(help="As `wk backup` wrote it.")], json_wanted: JsonFlag = False
) -> None:
    """Put a backup back where no database is; open submits are looked up by name before anything is sent."""
    from agent.backup import restore as put_back

    app = opened()
    if app.resident.holder() is not None or app.watchers.anyone():
        raise Fault(
            Exit.refused, "somebody carries runs here; end `wk serve` and what is followed, then restore"
        )
    kept = put_back(app.settings.database_url, file)
    show(
        json_wanted,
        kept._asdict(),
        f"Restored: {kept.runs} runs, {kept.live} of them live.",
        "They are watched again from: wk serve" if kept.live else "",
        "What was delegated after the backup is not known here; `wk list` shows what the cluster still has.",
    )


def export_run(
    run: Annotated[str, typer.Argument(help="A run of yours.", autocompletion=complete_run)],
    to: Annotated[
        Path | None, typer.Option("--to", "-o", help="A new file; stdout unless given.", show_default=False)
    ] = None,
    json_wanted: JsonFlag = False,
) -> None:
    """Write a run's whole history as JSON lines: journal, effects, messages; credentials taken out."""
    from agent.archive import export

    app = opened()
    found = app.store.find(run)
    lines = export(app.store, found, app.redactor.value, app.clock.now())
    if to is None:
        sys.stdout.writelines(f"{line}\n" for line in lines)
        return
    try:
        with os.fdopen(
            os.open(to, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8"
        ) as out:
            out.writelines(f"{line}\n" for line in lines)
    except FileExistsError:
        raise Fault(Exit.refused, f"{to} is there already; give another name") from None
    except OSError as error:
        raise Fault(Exit.usage, f"cannot write {to}: {error.strerror}; check the path") from None
    show(
        json_wanted,
        {"run": found, "file": str(to)},
        f"{found} is in {to}. Take it in elsewhere: wk import {to}",
    )


def import_run(
    file: Annotated[Path, typer.Argument(help="As `wk export` wrote it.")], json_wanted: JsonFlag = False
) -> None:
    """Take in an exported run that has ended, to be read here; it never becomes live."""
    from agent.archive import take_in

    app = opened()
    try:
        with file.open(encoding="utf-8") as lines:
            job = take_in(app.store, lines, app.redactor.value, app.clock.now())
    except (OSError, UnicodeDecodeError) as error:
        raise Fault(Exit.usage, f"cannot read {file} ({error}); check the path") from None
    if json_wanted:
        emit({"run": job.id, "state": str(job.state)})
    else:
        say(f"{job.id} is here now, as it ended ({job.state}). How it went: wk why {job.id}")
