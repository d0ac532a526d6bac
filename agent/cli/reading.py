"""`read`: a log file, read by the rules (and by the model, where it may be asked).

Never: act on what was read.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent.cli.output import Exit, Fault, JsonFlag, emit, opened, say

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent.app import App

PANEL = "Logs and scenarios"

TAIL_BYTES = 256 * 1024


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.command(rich_help_panel=PANEL)(read)


def read(
    files: Annotated[
        list[str], typer.Argument(help="Log files; - is the standard input.", metavar="FILE...")
    ],
    phase: Annotated[str, typer.Option(help="The cluster's phase, if it is known.")] = "unknown",
    exit_code: Annotated[int | None, typer.Option(help="The program's own.", show_default=False)] = None,
    events: Annotated[
        Path | None, typer.Option(help="A file with the scheduler's words.", show_default=False)
    ] = None,
    previous: Annotated[
        Path | None, typer.Option(help="The --json answer of an earlier look.", show_default=False)
    ] = None,
    silence: Annotated[
        float | None, typer.Option(help="Seconds since the last output.", show_default=False)
    ] = None,
    lines: Annotated[
        int | None, typer.Option("--lines", "-n", help="Only the last so many.", min=1, show_default=False)
    ] = None,
    model: Annotated[str, typer.Option(help="auto, never or always: may a model be asked.")] = "auto",
    json_wanted: JsonFlag = False,
) -> None:
    """Read a log file: how far it is, what is wrong."""
    from agent.readfile import events_from, read_many

    if model not in ("auto", "never", "always"):
        raise Fault(Exit.usage, f"--model is auto, never or always, not {model!r}")
    app = opened()
    found = read_many(
        files,
        phase=phase,
        exit_code=exit_code,
        events=events_from(_text(events)) if events else (),
        previous=_previous(previous),
        silence_s=silence,
        lines_max=lines,
        redact=app.redactor.text,
        signatures=app.signatures,
    )
    if model != "never":
        found = [
            second_opinion(app, result, file, always=model == "always")
            for result, file in zip(found, files, strict=True)
        ]
    if json_wanted:
        emit(found[0] if len(found) == 1 else found)
    else:
        for result in found:
            say(*words_of(result, named=len(found) > 1))
    if any("error" in result for result in found):
        raise typer.Exit(Exit.usage)


def second_opinion(app: App, result: dict[str, Any], file: str, *, always: bool) -> dict[str, Any]:
    """The reading with the model's opinion beside it: asked where the rules do not settle it, or always when told.

    It fills in what the rules left open (a cause, its evidence, a summary) and overrules nothing (I2); a reading
    whose quotes do not hold is void (I4). Standard input is read once, so it gets no second opinion.
    """
    if "error" in result or file == "-":
        return result
    open_still = not result["settled"] or result["verdict"] == "ambiguous"
    if not (always or open_still):
        return result
    reader = app.reader
    if reader is None:
        if always:
            raise Fault(Exit.refused, "no model can be asked: set a key with `wk key set ANTHROPIC_API_KEY`")
        return result
    from agent.reader import Facts

    facts = Facts(situation=result["summary"], cause=result["cause"])
    heard = reader.read_text(app.redactor.text(_tail(Path(file))), facts)
    merged = {**result, "model": heard["model"]}
    reading = heard["reading"]
    if reading is None or not open_still:
        return merged
    merged["summary"] = f"{result['summary']} The model reads it so: {reading['summary']}"
    if result["cause"] == "none" and reading["cause"] != "none":
        merged |= {"cause": reading["cause"], "evidence": reading["quotes"]}
    return merged


def words_of(result: Mapping[str, Any], *, named: bool) -> list[str]:
    """A reading as a few lines."""
    head = f"{result['file']}: " if named else ""
    if "error" in result:
        return [f"{head}{result['error']}"]
    progress = result["progress"]
    lines = [f"{head}{result['verdict']}: {result['summary']}"]
    if progress["step"] is not None:
        total = f"/{progress['total']}" if progress["total"] is not None else ""
        loss = f", loss {progress['loss']}" if progress["loss"] is not None else ""
        eta = f", about {progress['eta_s']} s left" if progress["eta_s"] is not None else ""
        lines.append(f"progress: {progress['unit'] or 'step'} {progress['step']}{total}{loss}{eta}")
    if result["cause"] != "none":
        lines.append(
            f"cause: {result['cause']} ({result['owner']}{', may pass' if result['retryable'] else ''})"
        )
        lines += [f"  line {quote['line']} | {quote['text']}" for quote in result["evidence"]]
    lines += [f"it could also be: {', '.join(result['also'])}"] if result["also"] else []
    lines += [f"advice: {result['advice']}"] if result["advice"] else []
    return lines


def _previous(file: Path | None) -> Any:
    if file is None:
        return None
    try:
        found = json.loads(_text(file))
    except (ValueError, RecursionError) as error:
        raise Fault(Exit.usage, f"{file} is not the --json answer of an earlier look: {error}") from None
    if not isinstance(found, dict):
        raise Fault(Exit.usage, f"{file} is not the --json answer of an earlier look at one file")
    return found


def _tail(file: Path) -> str:
    """The last piece of a file that a model is shown; the reader bounds it further."""
    with file.open("rb") as opened_file:
        opened_file.seek(max(0, file.stat().st_size - TAIL_BYTES))
        return opened_file.read().decode("utf-8", "replace")


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise Fault(Exit.usage, f"cannot read {file}: {error.strerror}; check the path") from None
