"""`config` and `doctor`: what is set and where it came from; what is missing and how it is mended.

Never: a value of a key.
"""

from __future__ import annotations

from typing import Annotated, Any

import typer

from agent.cli.output import Exit, Fault, JsonFlag, emit, opened, say, table

PANEL = "This installation"


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.command(rich_help_panel=PANEL)(doctor)
    app.command(rich_help_panel=PANEL)(config)


def doctor(
    upgrade: Annotated[
        bool,
        typer.Option("--upgrade", help="Replay the runs under way with this version, and change nothing."),
    ] = False,
    json_wanted: JsonFlag = False,
) -> None:
    """Check the installation, and say how to mend it."""
    from agent.doctor import examine, examine_upgrade

    found = examine_upgrade(opened()) if upgrade else examine(opened())
    if json_wanted:
        emit([finding._asdict() for finding in found])
    else:
        for finding in found:
            mend = f"\n      mend: {finding.mend}" if finding.mend else ""
            say(f"{finding.level:<4}  {finding.name}: {finding.said}{mend}")
    if any(finding.level == "fail" for finding in found):
        raise typer.Exit(Exit.failed)


def config(
    name: Annotated[str, typer.Argument(help="One setting, or a group of them.", show_default=False)] = "",
    json_wanted: JsonFlag = False,
) -> None:
    """Show every setting and standing order, and where it came from."""
    app = opened()
    found = [entry._asdict() for entry in app.settings.describe() if not entry.name.startswith("policy")]
    found += _numbers(app)
    found += [
        {"name": f"orders.{place}", "value": value, "source": source}
        for place, (value, source) in app.orders.sources.items()
    ]
    shown = [e for e in found if not name or e["name"] == name or e["name"].startswith(f"{name}.")]
    if not shown:
        raise Fault(
            Exit.not_found, f"there is no setting {name!r}{_nearest(name, [e['name'] for e in found])}"
        )
    if json_wanted:
        emit(shown)
        return
    say(*table(["SETTING", "VALUE", "FROM"], [[e["name"], _worded(e["value"]), e["source"]] for e in shown]))


def _numbers(app: Any) -> list[dict[str, Any]]:
    """The policy as it is in force for a request that sets none of its own. Raises PolicyError."""
    from states.policy import layered

    sources = {entry.name: entry.source for entry in app.settings.describe()}
    policy, origin = layered([("config.yaml", app.settings.policy)])
    return [
        {
            "name": f"policy.{number}",
            "value": value,
            "source": sources.get(f"policy.{number}", origin[number]),
        }
        for number, value in policy.model_dump().items()
    ]


def _worded(value: Any) -> str:
    if value is None or value in ({}, [], ""):
        return "-"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _nearest(name: str, known: list[str]) -> str:
    import difflib

    close = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    return f"; did you mean {close[0]!r}?" if close else "; `wk config` lists them"
