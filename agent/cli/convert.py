"""`convert`: the request that a batch script, a submit line or a manifest becomes, as a file of ours.

What `wk run` would take, shown: fields, what is passed through as it is, and what has no meaning here. The result is
a request file that can be kept and edited.

Never: a call to a cluster; a credential (it is refused, as for any request).
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent.cli.output import Exit, Fault, JsonFlag, emit, say

if TYPE_CHECKING:
    from agent.native import Converted

PANEL = "A whole run"
EXTRA = "passed through as they are"


def register(app: typer.Typer) -> None:
    """Add the command of this file."""
    app.command(rich_help_panel=PANEL)(convert)


def convert(
    ctx: typer.Context,
    file: Annotated[
        str,
        typer.Argument(help="A batch script, submit line or Job manifest; - for stdin.", show_default=False),
    ] = "",
    json_wanted: JsonFlag = False,
) -> None:
    """Show the request that a native one becomes.

    wk convert train.sbatch, wk convert job.yaml, wk convert -- rjob submit ... -- python train.py
    """
    from agent.service import refuse_credentials
    from agent.yamlfile import Document, validate
    from states.spec import Request

    made, where = _made(file, ctx.obj)
    label = where or "after `--`"
    refuse_credentials(
        validate(Document(dict(made.request), {(name,): label for name in made.request}, {}), Request)
    )
    if json_wanted:
        emit({name: value for name, value in made._asdict().items() if name != "backing"})
        return
    say(*_as_yaml(made, label), as_it_is=True)


def _made(file: str, words: tuple[str, ...] | None) -> tuple[Converted, str]:
    """Of the file, of stdin, or of the words. Raises Fault for what is none of these."""
    from agent.native import convert as converted
    from agent.native import recognise
    from agent.requestfile import native_of, refuse_credentials_in

    if file == "-":
        text = sys.stdin.read()
        refuse_credentials_in(text, "stdin")
        if recognise(text) is None:
            raise Fault(Exit.usage, _no_request("what came on stdin"))
        return converted(text, args=words or ()), "stdin"
    if not file and not words:
        raise Fault(Exit.usage, "nothing to convert: wk convert FILE, or wk convert -- rjob submit ...")
    path = Path(file) if file else None
    if path is not None and not path.is_file():
        raise Fault(Exit.usage, f"{file}: there is no such file; check the path")
    made = native_of(path, words, cwd=Path.cwd())
    if made is None:
        raise Fault(Exit.usage, _no_request(file or "that command line"))
    return made, file


def _no_request(what: str) -> str:
    return (
        f"{what} is no batch script, `rjob submit` or `ray job submit` line, and no Kubernetes Job manifest; "
        "if it is a request already, `wk run` takes it as it is"
    )


def _as_yaml(made: Converted, label: str) -> list[str]:
    from agent.native import CLUSTER_OF, IN_WORDS

    lines = [f"# {IN_WORDS[made.kind]} ({label}), for a cluster of kind {CLUSTER_OF[made.kind]}"]
    for name, value in made.request.items():
        if name == "extra_args":
            lines.append(f"# {EXTRA}:")
        lines += _field(name, value)
    if made.notes:
        lines.append("# worth knowing:")
        lines += [f"#   {note}" for note in made.notes]
    return lines


def _field(name: str, value: Any) -> list[str]:
    """One field; a command of short words on one line."""
    import yaml

    def dumped(given: Any, flow: bool) -> str:
        return yaml.safe_dump(
            given, sort_keys=False, allow_unicode=True, width=10_000, default_flow_style=flow
        )

    on_one_line = name == "command" and isinstance(value, list) and "\n" not in "".join(value)
    text = f"{name}: {dumped(value, True)}" if on_one_line else dumped({name: value}, False)
    return text.rstrip("\n").splitlines()
