"""Work in the background that nobody waits for: when the script ends, it dies with it (RULES C11).

Never: object to a server or a monitor beside the work, or to a submit line in the background.
"""

from __future__ import annotations

from collections.abc import Iterator

from states.lint.facts import Run, Unit, Walked
from states.lint.finding import Finding
from states.lint.work import is_helper, is_work
from states.lint.wrappers import SUBMITTERS

_MEND = "End with `wait` for each one (`wait $pid || status=1`), or run it in the foreground."
_DETACHERS = {"tmux": ("new", "new-session"), "screen": ("-dm", "-d", "-dmS", "-m")}


def find(walked: Walked) -> Iterator[Finding]:
    """The first such run of each unit."""
    for unit in walked.units:
        waits = [
            run.command.line
            for run in unit.runs
            if run.args and run.args[0].text == "wait" and not (run.where.conditional and run.where.loops)
        ]
        for run in unit.runs:
            if _is_lost(run, unit, waits):
                why = "it runs in the background and nothing waits for it"
                yield Finding("background_no_wait", "warn", run.line, why, _MEND, unit.file)
                break


def _is_lost(run: Run, unit: Unit, waits: list[int]) -> bool:
    detached = run.name in _DETACHERS and any(a.text.startswith(_DETACHERS[run.name]) for a in run.args[1:4])
    if detached:
        return True
    if (
        not run.where.background
        or run.where.substitution
        or not (is_work(run) or run.outer)
        or is_helper(run)
    ):
        return False
    if any(wrapper.name in SUBMITTERS for wrapper in run.via[len(unit.via) :]):
        return False
    return not any(line >= run.command.line or run.where.loops for line in waits)
