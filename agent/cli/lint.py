"""`lint`: what would lose, leak or waste the run in a job script, a manifest or a Python file, before it is sent.

Never: run the file; print the value of a credential.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agent.cli.output import Exit, Fault, JsonFlag, emit, hint, say

if TYPE_CHECKING:
    from states.lint.finding import Finding
    from states.lint.scene import Report

PANEL = "Logs and scenarios"


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.command(rich_help_panel=PANEL)(lint)


def lint(
    file: Annotated[
        Path, typer.Argument(help="A shell script, a Python file or a manifest.", metavar="FILE")
    ],
    gpu: Annotated[int | None, typer.Option(help="GPUs of each replica.", min=0, show_default=False)] = None,
    replicas: Annotated[int | None, typer.Option(help="Machines.", min=1, show_default=False)] = None,
    workspace: Annotated[
        list[str] | None,
        typer.Option(help="A path that outlives the job; may be given again.", show_default=False),
    ] = None,
    image: Annotated[str, typer.Option(help="The container image.", show_default=False)] = "",
    cluster: Annotated[str, typer.Option(help="slurm, kubernetes, ray, local, ...", show_default=False)] = "",
    tree: Annotated[
        str, typer.Option(help="The folder the job starts in, or none if it cannot be seen from here.")
    ] = ".",
    json_wanted: JsonFlag = False,
) -> None:
    """Find what would lose, leak or waste a run, before it is submitted."""
    from agent.lint import as_json, lint_file, scene

    about = scene(gpu=gpu, replicas=replicas, workspace=workspace or (), image=image, cluster=cluster)
    folder = None if tree == "none" else Path(tree)
    if folder is not None and not folder.is_dir():
        raise Fault(Exit.usage, f"{tree} is no folder; give the one the job starts in, or --tree none")
    try:
        report = lint_file(file, about, folder)
    except OSError as error:
        raise Fault(Exit.usage, f"cannot read {file}: {error.strerror}; check the path") from None
    hint(*report.unread)
    if json_wanted:
        emit([as_json(finding) for finding in report.findings])
    else:
        say(*words_of(report))
    if any(finding.level == "refuse" for finding in report.findings):
        raise typer.Exit(Exit.refused)


def words_of(report: Report) -> list[str]:
    """The findings as lines, each with its place and its mend."""
    lines = [line for finding in report.findings for line in _lines(finding)]
    return lines or ["Nothing found."]


def _lines(finding: Finding) -> list[str]:
    place = f"{finding.file}:{finding.line}" if finding.line else finding.file
    lines = [f"{finding.level} {finding.kind} at {place}: {finding.why}."]
    lines += [f"  | {finding.text}"] if finding.text else []
    return [*lines, f"  {finding.mend}"] if finding.mend else lines
