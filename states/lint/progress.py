"""Runs of which nothing can be seen (RULES C11, E5): output thrown away, silent loops, and output that comes late.

Never: count the output of set-up commands; a note (`stdout_buffered`) is no reason to stop.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from states.lint.directives import read
from states.lint.environment import is_on
from states.lint.facts import Run, Unit, Walked
from states.lint.finding import Finding
from states.lint.options import options
from states.lint.python_code import Call, Code
from states.lint.work import is_helper, is_work

_MEND = (
    "Let it print a line with its step every minute or so, and keep the stream in a file below the workspace."
)
_MEND_BUFFER = "Start Python with -u, or set PYTHONUNBUFFERED=1: otherwise lines come in blocks of kilobytes."
_SAYS = frozenset(
    "print info debug warning log write add_scalar add_scalars tqdm trange set_postfix set_description update track"
    " log_metrics log_metric progress_bar progbar echo report secho log_dict display flush step_log".split()
)
_STEPS = (
    "backward",
    "step",
    "train_on_batch",
    "apply_gradients",
    "train_step",
    "training_step",
    "train_one_epoch",
)


def find(walked: Walked) -> Iterator[Finding]:
    """Both kinds, from the shell's side."""
    for unit in walked.units:
        yield from _thrown_away(unit)
        late = next((run for run in unit.runs if _is_late(run)), None)
        if late is not None:
            place = late.args[0].line if unit.how == "manifest" else late.line
            if unit.how != "manifest" and late.via and late.via[-1].name == "python":
                place = late.via[-1].line
            yield Finding("stdout_buffered", "note", place, "its output comes late", _MEND_BUFFER, unit.file)


def _thrown_away(unit: Unit) -> Iterator[Finding]:
    for directive in read(unit.text) if unit.how in ("file", "heredoc") else ():
        if directive.option in ("o", "output") and directive.value == "/dev/null":
            why = "the job's output is thrown away"
            yield Finding("no_progress", "warn", unit.at(directive.line), why, _MEND, unit.file)
    for run in unit.runs:
        if not is_work(run) or run.where.condition or (run.where.background and is_helper(run)):
            continue
        for redirect in run.command.redirects:
            to = redirect.target.literal if redirect.target is not None else None
            if (
                to == "/dev/null"
                and redirect.operator in (">", ">>", "&>", "&>>", ">&")
                and redirect.descriptor in ("", "1")
            ):
                yield Finding("no_progress", "warn", run.line, "the output is thrown away", _MEND, unit.file)
        quiet = next(
            (
                o
                for o in options(run)
                if o.name == "disable_tqdm" and (o.value is None or o.value.text.lower() == "true")
            ),
            None,
        )
        if quiet is not None and any(
            o.name == "logging_strategy" and o.value and o.value.text == "no" for o in options(run)
        ):
            yield Finding(
                "no_progress", "warn", quiet.flag.line, "bar and log are both off", _MEND, unit.file
            )


def _is_late(run: Run) -> bool:
    if not run.python or run.code or not is_work(run) or run.where.condition or run.where.substitution:
        return False
    if is_on(run, "PYTHONUNBUFFERED") or run.name in ("kernprof",):
        return False
    for wrapper in run.via:
        if wrapper.name in ("stdbuf", "unbuffer") or (
            wrapper.name == "python" and "u" in "".join(wrapper.options)
        ):
            return False
        if any(
            "PYTHONUNBUFFERED=" in arg.text for key in ("e", "env") for arg in wrapper.options.get(key, ())
        ):
            return False
    return True


def find_in_code(code: Code) -> Iterator[Finding]:
    """A training loop of which nothing is said, and bars that are turned off."""
    for call in code.calls:
        why = _bar_off(call, code)
        if why:
            yield Finding("no_progress", "warn", code.at(call.node), why, _MEND, code.file)
    yield from _silent_loop(code)


def _bar_off(call: Call, code: Code) -> str:
    """Why nothing is seen of what this call runs, "" if something is."""
    last = call.name.rsplit(".", 1)[-1]
    if last == "Trainer" and _keyword(call, "enable_progress_bar") is False:
        return "" if call.keyword("callbacks") or "print(" in code.text else "the progress bar is off"
    if last.endswith("TrainingArguments") and _keyword(call, "disable_tqdm") is True:
        return "bar and log are both off" if _keyword(call, "logging_strategy") == "no" else ""
    if last == "fit" and _keyword(call, "verbose") == 0 and not call.keyword("callbacks"):
        return "`verbose=0` says nothing"
    return ""


def _keyword(call: Call, name: str) -> object:
    found = call.keyword(name)
    return found.value.value if found is not None and isinstance(found.value, ast.Constant) else None


def _silent_loop(code: Code) -> Iterator[Finding]:
    """An outermost loop that trains, in a text that reports from inside no loop."""
    trains = [c for c in code.calls if c.loops and c.name.rsplit(".", 1)[-1] in _STEPS]
    steps = {c.name.rsplit(".", 1)[-1] for c in trains}
    if not trains or not ("backward" in steps or len(steps) > 1):
        return
    words = {c.name.rsplit(".", 1)[-1].lower() for c in code.calls if c.loops or c.function is not None}
    if words & _SAYS or any("tqdm" in c.name or "log" in c.name.lower() for c in code.calls):
        return
    if any(isinstance(call.node.func, ast.Name) and _foreign_report(call.name) for call in code.calls):
        return
    yield Finding(
        "no_progress",
        "warn",
        code.at(trains[0].loops[0]),
        "the loop says nothing about its progress",
        _MEND,
        code.file,
    )


def _foreign_report(name: str) -> bool:
    return any(
        word in name.lower() for word in ("progress", "report", "callback", "meter", "monitor", "print")
    )
