"""Exit codes that get lost: the job then reports success for a failed run (RULES F4, and the issue of the lint).

Forms: something after the work whose status wins, a pipe without pipefail, `|| echo`, a bare `wait`, a branch on
failure that does not leave. `set -e` covers what follows; `exit`, `$?` with an exit, and PIPESTATUS cover the rest.

Never: judge a text that only submits as the job itself: there it is a note.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from states.lint.facts import Run, Unit, Walked
from states.lint.finding import Finding, Level
from states.lint.shell import AndOr, Command, If, Loop, Node, Not, Pipeline, children, commands
from states.lint.work import is_work
from states.lint.wrappers import SUBMITTERS

_MEND = (
    "Let the failure through: `set -euo pipefail` at the top, or `status=$?` right after the work and `exit $status` "
    "at the end."
)
_LEAVES = frozenset({"exit", "return", "false", "exec", "kill", "die", "fail"})
_STRICT = re.compile(
    r"^[ \t]{0,40}set[ \t]+(?:-\w+[ \t]+)*-\w*e|^[ \t]{0,40}set[ \t]+-o[ \t]+errexit|^#!.{1,60}[ \t]-\w*e",
    re.MULTILINE,
)
_PIPEFAIL = re.compile(r"^[ \t]{0,40}set[ \t].{0,60}pipefail", re.MULTILINE)


class _Unit:
    """A unit with what counts for its exit code."""

    def __init__(self, unit: Unit) -> None:
        self.unit = unit
        self.runs: dict[int, Run] = {
            id(run.command): run for run in unit.runs if is_work(run) or run.outer_work
        }
        self.errexit = "e" in unit.flags or bool(_STRICT.search(unit.text))
        self.pipefail = "pipefail" in unit.flags or bool(_PIPEFAIL.search(unit.text))
        self.leaves = any(
            c.name == "exit" and len(c.words) > 1 for n in unit.script.nodes for c in commands(n)
        )

    def work(self, node: Node) -> Run | None:
        """The last run of the job's work at or below this node, submitted or not."""
        found = [self.runs[id(c)] for c in commands(node) if id(c) in self.runs]
        return found[-1] if found else None

    def finding(self, line: int, why: str, run: Run) -> Finding:
        level: Level = "warn"
        if any(wrapper.name in SUBMITTERS for wrapper in run.via[len(self.unit.via) :]):
            level = "note"
        return Finding("exit_code_masked", level, line, why, _MEND, self.unit.file)


def find(walked: Walked) -> Iterator[Finding]:
    """At most one finding for each place."""
    for unit in walked.units:
        seen: set[int] = set()
        if unit.how == "sourced":
            continue
        facts = _Unit(unit)
        after = () if walked.cut else _followed(facts)
        for finding in (*_handled(facts), *_piped(facts), *after, *_waited(facts)):
            if finding.line not in seen:
                seen.add(finding.line)
                yield finding


def _every(node: Node) -> Iterator[Node]:
    yield node
    for child in children(node):
        yield from _every(child)


def _handled(facts: _Unit) -> Iterator[Finding]:
    """`work || echo FAILED`, `if work; then ... else echo; fi`."""
    for top in facts.unit.script.nodes:
        for node in _every(top):
            if isinstance(node, AndOr) and node.operator == "||":
                run = facts.work(node.left)
                if run is not None and facts.work(node.right) is None and not _leaves(node.right):
                    yield facts.finding(
                        facts.unit.at(_line(node.right)), "the failure is answered with success", run
                    )
            elif isinstance(node, If) and not facts.leaves:
                for condition, _ in node.branches:
                    run = (
                        next((r for n in condition.nodes if (r := facts.work(n))), None)
                        if condition
                        else None
                    )
                    if run is not None and not _leaves(node):
                        yield facts.finding(run.line, "the failure is only looked at", run)


def _line(node: Node) -> int:
    return node.line


def _leaves(node: Node) -> bool:
    return any(
        c.name in _LEAVES and [w.literal for w in c.words[1:2]] != ["0"] for c in commands(node)
    ) or any(
        given.name.lower()
        in ("status", "rc", "ret", "failed", "exit_code", "fail", "code", "err", "errors", "failures")
        for c in commands(node)
        for given in c.assignments
    )


def _piped(facts: _Unit) -> Iterator[Finding]:
    if facts.pipefail or "PIPESTATUS" in facts.unit.text or "pipestatus" in facts.unit.text:
        return
    for top in facts.unit.script.nodes:
        for node in _every(top):
            if isinstance(node, Pipeline) and len(node.parts) > 1 and facts.work(node.parts[-1]) is None:
                run = next((r for part in node.parts[:-1] if (r := facts.work(part))), None)
                if run is not None and not run.where.condition:
                    yield facts.finding(run.line, "the pipe's last command decides, and it succeeds", run)


def _followed(facts: _Unit) -> Iterator[Finding]:
    """Something after the work whose status wins."""
    items = facts.unit.script.items
    places = [n for n, item in enumerate(items) if not item.background and facts.work(item.node) is not None]
    places = [n for n in places if (run := facts.work(items[n].node)) is None or not run.where.background]
    if not places or facts.errexit:
        return
    last = places[-1]
    run = facts.work(items[last].node)
    if run is None or isinstance(items[last].node, Not):
        return
    after = [item.node for item in items[last + 1 :]]
    status_used = any(_uses_status(node) for node in after) and _exits(after)
    if after and not status_used and not any(_is_exit_of_status(node) for node in after):
        yield facts.finding(run.line, "what stands after it decides the exit code", run)
    elif len(places) > 1 or isinstance(items[last].node, Loop):
        first = facts.work(items[places[0]].node)
        if first is not None and not facts.leaves:
            why = "a failure here does not stop what follows, and only the last status counts"
            yield facts.finding(first.line, why, first)._replace(level="note")


def _uses_status(node: Node) -> bool:
    for command in commands(node):
        words = [*command.words, *(word for given in command.assignments for word in given.words)]
        if any(
            part.kind == "var" and part.text in ("?", "PIPESTATUS") for word in words for part in word.parts
        ):
            return True
    return any("?" in getattr(inner, "source", "") for inner in _every(node))


def _exits(nodes: list[Node]) -> bool:
    return any(c.name in _LEAVES for node in nodes for c in commands(node))


def _is_exit_of_status(node: Node) -> bool:
    """`exit $?`, `exit $status`, `exit 1`."""
    if isinstance(node, Command) and node.name in ("exit", "return"):
        return len(node.words) < 2 or node.words[1].literal != "0"
    return False


def _waited(facts: _Unit) -> Iterator[Finding]:
    """A bare `wait` is always 0."""
    behind = [run for run in facts.runs.values() if run.where.background]
    if not behind:
        return
    for run in facts.unit.runs:
        if [arg.text for arg in run.args] == ["wait"] and run.command.line >= behind[0].command.line:
            yield facts.finding(run.line, "a bare `wait` is 0 whatever the jobs did", behind[0])
            return
