"""The command line: one Typer app, its groups of commands in files of their own.

The words after `--` are taken off before anything is parsed: they are the job's own command, and never options of
`wk`. Heavy imports stand inside the commands, so that `--help` and completion stay light.

Never: logic about a run; that is the service's and the machine's.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import typer

from agent.cli import (
    channels,
    chat,
    config,
    convert,
    followed,
    keeping,
    keys,
    library,
    lint,
    mcp,
    orders,
    people,
    questions,
    reading,
    runs,
    scenarios,
    simulate,
    steps,
)
from agent.cli.output import CODES_IN_WORDS, Exit, report

TAKE_A_COMMAND = frozenset({"run", "submit", "convert"})
"""Commands whose words after `--` are the job's command."""

app = typer.Typer(
    name="wk",
    help="Watchkeeper takes a whole cluster job off your hands: it prepares it, submits it once, watches it by "
    "timer, asks only what it cannot settle, and hands back a finished run.",
    epilog=CODES_IN_WORDS,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    pretty_exceptions_show_locals=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
GROUPS = (
    followed,
    runs,
    questions,
    chat,
    steps,
    convert,
    lint,
    keys,
    people,
    library,
    scenarios,
    simulate,
    reading,
    config,
    keeping,
    channels,
    orders,
    mcp,
)
for group in GROUPS:
    group.register(app)


def run(words: Sequence[str]) -> int:
    """Carry out one command line (without the program's name). Returns the exit code; raises nothing."""
    head, command = split(words)
    try:
        done = typer.main.get_command(app).main(
            args=head, prog_name="wk", standalone_mode=False, obj=command, complete_var="_WK_COMPLETE"
        )
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader has gone (`wk jobs | head`): nothing is wrong, and nothing more can be said.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return int(Exit.ok)
    except (Exception, KeyboardInterrupt) as error:
        return report(error, "--json" in head)
    return done if isinstance(done, int) else int(Exit.ok)


def split(words: Sequence[str]) -> tuple[list[str], tuple[str, ...] | None]:
    """The words for `wk`, and the job's own command after the first `--` (None without one)."""
    name = next((word for word in words if not word.startswith("-")), "")
    if name not in TAKE_A_COMMAND or "--" not in words:
        return list(words), None
    place = list(words).index("--")
    return list(words[:place]), tuple(words[place + 1 :])
