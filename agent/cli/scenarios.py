"""`scenario run|record|new`: stories of runs, played against the real loop on a virtual clock.

Never: a run of the person's own store.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from agent.cli.completion import complete_run
from agent.cli.output import Exit, Fault, JsonFlag, emit, opened, say, show

PANEL = "Logs and scenarios"

scenario_commands = typer.Typer(help="Play, record and write scenarios.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.add_typer(scenario_commands, name="scenario", rich_help_panel=PANEL)


@scenario_commands.command("run")
def scenario_run(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(help="Files or folders; `scenarios` unless given.", show_default=False),
    ] = None,
    table: Annotated[
        bool, typer.Option("--table", help="Show which rules are covered by which files.")
    ] = False,
    json_wanted: JsonFlag = False,
) -> None:
    """Play scenarios and say what does not hold."""
    from agent.scenario import run_files

    outcome = run_files(paths or [Path("scenarios")], table=table)
    if json_wanted:
        emit({"failed": outcome.failed, "results": [result._asdict() for result in outcome.results]})
    else:
        say(*outcome.lines)
    if outcome.failed:
        raise typer.Exit(Exit.failed)


@scenario_commands.command("record")
def scenario_record(
    run: Annotated[str, typer.Argument(help="A run of yours.", autocompletion=complete_run)],
    to: Annotated[
        Path | None,
        typer.Option("--to", "-o", help="The file to write; stdout unless given.", show_default=False),
    ] = None,
    json_wanted: JsonFlag = False,
) -> None:
    """Write a run down as a scenario: times as offsets, secrets and paths taken out."""
    from agent.scenario import record

    app = opened()
    job = app.service.job(run)
    text = record(job.id, app)
    if to is not None:
        _write_new(to, text)
    show(
        json_wanted,
        {"run": job.id, "file": str(to) if to else None, "text": None if to else text},
        f"{job.id} is written down in {to}. Play it: wk scenario run {to}" if to else text.rstrip("\n"),
    )


@scenario_commands.command("new")
def scenario_new(
    file: Annotated[Path, typer.Argument(help="The file to write.")], json_wanted: JsonFlag = False
) -> None:
    """Write a new scenario to begin from."""
    from agent.scenario import new

    new(file)
    show(json_wanted, {"file": str(file)}, f"{file} is there. Change it, then: wk scenario run {file}")


def _write_new(file: Path, text: str) -> None:
    """Write a file that is not there yet."""
    try:
        with file.open("x", encoding="utf-8") as out:
            out.write(text)
    except FileExistsError:
        raise Fault(Exit.refused, f"{file} is there already; give another name") from None
    except OSError as error:
        raise Fault(Exit.usage, f"cannot write {file}: {error.strerror}; check the path") from None
