"""The walk: from a script's tree to what really runs, through functions, loops, launchers and inner scripts.

Every shell text that takes part is a `Unit`; every program that is started is a `Run` with its words expanded, what
stands in front of it and how it stands there (in a loop, behind `||`, in the background). A function that is never
called never runs. Bounded: `RUNS_MAX` runs, `UNITS_DEEP` texts inside each other.

Never: judge; the concerns do.
"""

from __future__ import annotations

from collections.abc import Mapping

from states.lint.facts import Unit, Where
from states.lint.following import RUNS_MAX, Follower
from states.lint.launchers import Peeled, Wrapper, peel, program
from states.lint.shell import (
    AndOr,
    Assignment,
    Command,
    Function,
    Group,
    If,
    Loop,
    Node,
    Not,
    Pipeline,
    Script,
)
from states.lint.words import Arg, Value, resolve

LAYERS_MAX = 8
"""Launchers in front of one command."""

CALLS_MAX = 4
"""Functions that call each other."""

UNITS_MAX = 200
UNITS_DEEP = 6
"""Shell texts inside each other."""


class Walker(Follower):
    """Walks texts of one job. `walk_text` may be called for several (the containers of a manifest)."""

    def walk_text(
        self,
        text: str,
        file: str,
        lines: tuple[int, ...] = (),
        *,
        how: str = "file",
        via: tuple[Wrapper, ...] = (),
        env: Mapping[str, Value] | None = None,
        flags: frozenset[str] = frozenset(),
        where: Where | None = None,
    ) -> Unit | None:
        """One shell text, walked to its end; None where the nesting is too deep."""
        if self.nesting >= UNITS_DEEP or len(self.units) > UNITS_MAX:
            return None
        lines = lines or tuple(range(1, text.count("\n") + 2))
        unit = Unit(file, self.scene.parse(text), text, lines, how, via, flags, env=dict(env or {}))
        self.units.append(unit)
        self.nesting += 1
        self._script(unit.script, unit, where or Where())
        self.nesting -= 1
        return unit

    def walk_args(self, args: tuple[Arg, ...], unit: Unit, env: Mapping[str, Value]) -> None:
        """A command given as words (argv), standing in `unit`."""
        command = Command((), (), (), 1, 1)
        unit.env.update(env)
        self._start(args, command, unit, Where(), {}, ())

    # --- statements ------------------------------------------------------------------------------------------

    def _script(self, script: Script, unit: Unit, where: Where) -> None:
        for item in script.items:
            inner = where._replace(background=True) if item.background else where
            self._node(item.node, unit, inner)

    def _node(self, node: Node, unit: Unit, where: Where) -> None:
        match node:
            case Command():
                self._command(node, unit, where)
            case Pipeline():
                names = [_head(part) for part in node.parts]
                for n, part in enumerate(node.parts):
                    self._node(part, unit, where._replace(piped=(*names[n + 1 :], *where.piped)))
            case AndOr():
                asked = where if node.operator == "&&" else where._replace(condition=True)
                self._node(node.left, unit, asked)
                handler = where.handler or node.operator == "||"
                self._node(node.right, unit, where._replace(handler=handler, conditional=True))
            case Not():
                self._node(node.node, unit, where._replace(condition=True))
            case Loop():
                self._loop(node, unit, where)
            case If():
                for condition, body in node.branches:
                    if condition:
                        self._script(condition, unit, where._replace(condition=True))
                    self._script(body, unit, where._replace(conditional=True))
            case Group():
                self._group(node, unit, where)
            case Function():
                self.functions[node.name] = node.body
            case _:
                return

    def _loop(self, node: Loop, unit: Unit, where: Where) -> None:
        if node.name:
            args = [arg for word in node.values for arg in resolve(word, unit.env, unit.lines)]
            if args:
                sure, line = len(args) == 1, args[0].line
                unit.env[node.name] = Value(node.values[:1], tuple(args[:1]), line, unit.lines, sure=sure)
            else:
                self.set_unknown(node.name, unit, node.line)
        inside = where._replace(loops=(*where.loops, node))
        if node.condition:
            self._script(node.condition, unit, inside._replace(condition=True))
        self._script(node.body, unit, inside)

    def _group(self, node: Group, unit: Unit, where: Where) -> None:
        before, cwd = dict(unit.env), self.cwd
        self._script(node.body, unit, where._replace(subshell=where.subshell or node.subshell))
        if node.subshell:
            unit.env, self.cwd = before, cwd

    # --- commands --------------------------------------------------------------------------------------------

    def _command(self, node: Command, unit: Unit, where: Where) -> None:
        if self.runs >= RUNS_MAX:
            return
        for word in (*node.words, *(word for given in node.assignments for word in given.words)):
            for part in word.parts:
                if part.script is not None and part.script.items:
                    self._script(part.script, unit, where._replace(substitution=True))
        args = tuple(arg for word in node.words for arg in resolve(word, unit.env, unit.lines))
        if not args or node.keyword:
            for given in node.assignments:
                self._bind(given, unit, where, exported=bool(args) and node.keyword == "export")
            if args:
                self.note_run(args, (), node, unit, where, {})
            return
        settings = {
            given.name: arg
            for given in node.assignments
            for word in given.words[:1]
            for arg in resolve(word, unit.env, unit.lines)[:1]
        }
        self._start(args, node, unit, where, settings, ())

    def _bind(self, given: Assignment, unit: Unit, where: Where, *, exported: bool) -> None:
        args = tuple(arg for word in given.words for arg in resolve(word, unit.env, unit.lines))
        if not given.array and len(args) > 1:
            args = (Arg(" ".join(arg.text for arg in args), args[0].line, all(a.known for a in args)),)
        known = unit.env.get(given.name)
        words, line = given.words, unit.at(given.line)
        if given.adds and known is not None:
            args, words, line = (*known.args, *args), (*known.words, *words), known.line
            if not known.array:
                args = (Arg("".join(arg.text for arg in args), line, all(a.known for a in args)),)
        sure = not where.conditional and not where.loops
        unit.env[given.name] = Value(words, args, line, unit.lines, given.array, sure, exported)

    def _start(
        self,
        args: tuple[Arg, ...],
        node: Command,
        unit: Unit,
        where: Where,
        settings: Mapping[str, Arg],
        via: tuple[Wrapper, ...],
    ) -> None:
        """One layer after another off the command, until a program stands in front."""
        for _ in range(LAYERS_MAX):
            name = program(args)
            if name in self.functions and not via:
                self._call(name, args, unit, where)
                return
            aliased = unit.env.get(f"alias {name}")
            if aliased is not None:
                args = (*(a._replace(line=args[0].line) for a in aliased.args), *args[1:])
            peeled = peel(args)
            if peeled is None:
                break
            via = (*via, peeled.wrapper)
            if peeled.wrapper.name == "env":
                settings = {**settings, **_env_settings(args)}
            if peeled.inside != "command":
                self._inside(peeled, args, node, unit, where, settings, via)
                return
            args = peeled.rest
        self.builtin(args, node, unit, where)
        self.note_run(args, via, node, unit, where, settings)
        self.heredocs(node, unit, where, via, program(args))

    def _call(self, name: str, args: tuple[Arg, ...], unit: Unit, where: Where) -> None:
        if name in self.calls or len(self.calls) >= CALLS_MAX:
            return
        kept = {key: unit.env.get(key) for key in [str(n) for n in range(1, 10)] + ["@", "*"]}
        for n, arg in enumerate(args[1:10], 1):
            unit.env[str(n)] = Value(
                (arg.word,) if arg.word else (), (arg,), arg.line, unit.lines, sure=False
            )
        self.calls.append(name)
        self._script(self.functions[name], unit, where)
        self.calls.pop()
        for key, value in kept.items():
            unit.env.pop(key, None)
            if value is not None:
                unit.env[key] = value

    def _inside(
        self,
        peeled: Peeled,
        args: tuple[Arg, ...],
        node: Command,
        unit: Unit,
        where: Where,
        settings: Mapping[str, Arg],
        via: tuple[Wrapper, ...],
    ) -> None:
        """A script's text or file, or Python: what is inside is walked, and the command itself is a run too."""
        rest, name = peeled.rest, peeled.wrapper.name
        if peeled.inside == "python":
            run = self.note_run(
                rest, via, node, unit, where, settings, python=True, module=peeled.module, code=peeled.code
            )
            self.python(run)
            self.heredocs(node, unit, where, via, "python")
            return
        shown = rest if peeled.inside == "file" else args
        self.note_run(shown, via, node, unit, where, settings, outer=peeled.inside != "nothing")
        if peeled.inside == "nothing":
            self.heredocs(node, unit, where, via, name)
        elif peeled.inside == "text" and rest:
            self.inner_text(peeled, unit, where, settings, via)
        elif peeled.inside == "file" and rest:
            self.inner_file(peeled, unit, where, settings, via)


def _head(node: Node) -> str:
    return node.name if isinstance(node, Command) else ""


def _env_settings(args: tuple[Arg, ...]) -> dict[str, Arg]:
    """`env A=1 B=2 command`."""
    found: dict[str, Arg] = {}
    for arg in args[1:]:
        label, equals, value = arg.text.partition("=")
        if not equals or not label.isidentifier():
            if arg.text.startswith("-"):
                continue
            break
        found[label] = arg._replace(text=value)
    return found
