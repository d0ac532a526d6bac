"""Jobs that do no work: held open by sleep, or waiting without end for something (RULES C11, E5).

`keepalive` is asked about, since holding cards by hand may be meant. `unbounded_wait` is a wait loop that nothing but
the awaited thing can end.

Never: take a monitor in the background, or a wait with a counter, for either.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from states.lint.facts import Run, Unit, Walked
from states.lint.finding import Finding
from states.lint.python_code import Code
from states.lint.shell import Command, If, Loop, Node, Script, Test, all_scripts, children, commands

HOLD_S = 3_600
"""Seconds of one foreground sleep from which it holds the job rather than waits for a moment."""

_MEND_HOLD = (
    "Let the job run the work itself and end; for looking around take the cluster's interactive mode with a short "
    "limit."
)
_MEND_WAIT = "Bound it: `for i in $(seq 1 60); do ... && break; sleep 5; done`, then fail with a message."
_DURATION = re.compile(r"(\d{1,12}(?:\.\d{1,6})?)([smhd]?)")
_UNITS = {"": 1, "s": 1, "m": 60, "h": 3_600, "d": 86_400}
_IDLE = frozenset(
    "echo printf sleep date hostname nvidia-smi : true free df uptime who ps top touch cat ls".split()
)
_LEAVES = frozenset({"break", "exit", "return", "exec"})
_HOLDERS = re.compile(
    r"watch|htop|jupyter(?:-\w{1,12})?|code-server|vncserver|gpu[_-]burn|sshd|rstudio-server|ttyd"
)
_OWN = frozenset({"kill", "jobs", "wait", "read", "pgrep", "ps"})


def find(walked: Walked) -> Iterator[Finding]:
    """Keepalives and waits of all units."""
    for unit in walked.units:
        for run in unit.runs:
            if _holds(run):
                yield _hold(run.line, "it holds the job and does no work", unit)
        for loop, background in _loops(unit.script, False):
            yield from _loop(loop, unit, background)


def _hold(line: int, why: str, unit: Unit) -> Finding:
    return Finding("keepalive", "ask", line, why, _MEND_HOLD, unit.file)


def _holds(run: Run) -> bool:
    where, words = run.where, [arg.text for arg in run.args]
    if run.name == "sleep" and where.background and not where.loops and len(words) > 1:
        # `sleep infinity & wait`: a shell that can still be told to end.
        return seconds(words[1]) >= HOLD_S and run.unit.runs[-1].name == "wait"
    if where.background or where.loops or where.condition or where.substitution or not words:
        return False
    name = run.name
    if name == "sleep" and len(words) > 1:
        return seconds(words[1]) >= HOLD_S
    if name == "tail":
        return "/dev/null" in words and any(w.startswith("-") and "f" in w.lower() for w in words)
    if name == "nvidia-smi":
        return bool({"-l", "dmon", "pmon"} & set(words)) and not where.piped
    if run.python:
        return run.module and words[0] in ("jupyter", "notebook", "jupyterlab")
    return _HOLDERS.fullmatch(name) is not None and not {"nbconvert", "execute", "list", "stop"} & set(words)


def seconds(text: str) -> float:
    """A duration of sleep in seconds; 0 where it is not plain."""
    if text.lower() in ("infinity", "inf"):
        return float("inf")
    match = _DURATION.fullmatch(text)
    return float(match[1]) * _UNITS[match[2]] if match else 0.0


def _loops(script: Script, background: bool) -> Iterator[tuple[Loop, bool]]:
    """Loops with whether they run in the background."""
    for scope in all_scripts(script):
        for item in scope.items:
            for loop in _in(item.node):
                yield loop, item.background or background


def _in(node: Node) -> Iterator[Loop]:
    if isinstance(node, Loop):
        yield node


def _loop(loop: Loop, unit: Unit, background: bool) -> Iterator[Finding]:
    if background or loop.kind == "for" or loop.condition is None:
        return
    inside = [c for node in loop.body.nodes for c in commands(node)]
    names = [c.name for c in _staying(loop.body) if c.words]
    endless = _endless(loop)
    asked = [c for node in loop.condition.nodes for c in commands(node)]
    sleeps = "sleep" in names or not names or "sleep" in {c.name for c in asked}
    leaves = bool(_LEAVES & {c.name for c in inside})
    if endless and not leaves:
        if sleeps and all(name in _IDLE for name in names):
            yield _hold(unit.at(loop.line), "the loop does no work and never ends", unit)
        return
    if not sleeps or _bounded(loop, inside) or any(wrapper.name == "timeout" for wrapper in unit.via):
        return
    if _OWN & {c.name for c in asked} or any(name not in _IDLE | _LEAVES | _ASKING for name in names):
        return
    why = (
        "it waits without end; if the awaited thing never comes, the job holds its cards until the time limit"
    )
    yield Finding("unbounded_wait", "warn", unit.at(loop.line), why, _MEND_WAIT, unit.file)


_ASKING = frozenset("curl wget nc ping grep test [ squeue ray redis-cli pg_isready timeout ssh stat".split())


def _staying(script: Script) -> Iterator[Command]:
    """Commands of a loop's body, without the branches that leave it: the work done there comes after the wait."""
    for node in script.nodes:
        if isinstance(node, If):
            for condition, body in node.branches:
                if condition:
                    yield from _staying(condition)
                if not any(c.name in _LEAVES for n in body.nodes for c in commands(n)):
                    yield from _staying(body)
        else:
            yield from commands(node)


def _endless(loop: Loop) -> bool:
    """`while true`, `while :`, `while [ 1 ]`, `until false`."""
    nodes = list(loop.condition.nodes) if loop.condition else []
    if len(nodes) != 1:
        return False
    node = nodes[0]
    if isinstance(node, Command):
        if node.name == "sleep" and loop.kind == "while":
            return True
        return node.name in (("true", ":") if loop.kind == "while" else ("false",))
    return (
        isinstance(node, Test)
        and re.fullmatch(r"\[\[? *(?:1|true) *\]\]?|\(\( *1 *\)\)", node.source) is not None
    )


def _bounded(loop: Loop, inside: list[Command]) -> bool:
    """Whether a counter or a clock takes part in the condition or in a way out."""
    changed = {
        given.name
        for command in inside
        for given in command.assignments
        if given.adds
        or any(part.kind == "other" or "expr" in part.text for w in given.words for part in w.parts)
    }
    tests = [test for scope in _scripts(loop) for node in scope.nodes for test in _tests(node)]
    tested = {name for test in tests for name in test.names}
    counted = any(re.search(r"\+\+|--|\+=", test.source) for test in tests)
    timed = any(c.name == "timeout" for c in inside) or "SECONDS" in tested
    return counted or timed or bool(changed & tested) or bool({c.name for c in inside} & {"let", "expr"})


def _tests(node: Node) -> Iterator[Test]:
    if isinstance(node, Test):
        yield node
    for child in children(node):
        yield from _tests(child)


def _scripts(loop: Loop) -> Iterator[Script]:
    if loop.condition:
        yield from all_scripts(loop.condition)
    yield from all_scripts(loop.body)


def find_in_code(code: Code) -> Iterator[Finding]:
    """`while True: time.sleep(60)` in Python."""
    for call in code.calls:
        if call.name == "time.sleep" and not call.loops and (code.number(call.argument(0)) or 0) >= HOLD_S:
            why = "it holds the job and does no work"
            yield Finding("keepalive", "ask", code.at(call.node), why, _MEND_HOLD, code.file)
    for node in ast.walk(code.tree):
        if not isinstance(node, ast.While) or not (isinstance(node.test, ast.Constant) and node.test.value):
            continue
        calls = [code.name_of(n.func) for s in node.body for n in ast.walk(s) if isinstance(n, ast.Call)]
        leaves = any(
            isinstance(n, (ast.Break, ast.Return, ast.Raise)) for s in node.body for n in ast.walk(s)
        )
        idle = all(
            name.rsplit(".", 1)[-1] in ("sleep", "print", "now", "time", "flush", "strftime", "ctime")
            for name in calls
        )
        if not leaves and idle and any(name.endswith("sleep") for name in calls):
            yield Finding(
                "keepalive",
                "ask",
                code.at(node),
                "the loop does no work and never ends",
                _MEND_HOLD,
                code.file,
            )
