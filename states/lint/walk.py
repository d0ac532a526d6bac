"""The walk: from a script's tree to what really runs, through functions, loops, launchers and inner scripts.

Every shell text that takes part is a `Unit`; every program that is started is a `Run` with its words expanded, what
stands in front of it and how it stands there (in a loop, behind `||`, in the background). A function that is never
called never runs. Bounded: `RUNS_MAX` runs, `DEPTH_MAX` levels.

Never: judge; the concerns do.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping

from states.lint.facts import PythonText, Run, Unit, Walked, Where
from states.lint.launchers import Peeled, Wrapper, peel, program
from states.lint.scene import Scene
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
    Redirect,
    Script,
    Word,
)
from states.lint.words import Arg, Value, rendered, resolve
from states.lint.wrappers import SUBMITTERS

RUNS_MAX = 2_000
DEPTH_MAX = 8
CALLS_MAX = 4


class Walker:
    """Walks texts of one job. `walk_text` may be called for several (the containers of a manifest)."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.units: list[Unit] = []
        self.pythons: list[PythonText] = []
        self.written: dict[str, tuple[str, str, int]] = {}
        self.wanted: dict[str, None] = {}
        self.functions: dict[str, Script] = {}
        self.calls: list[str] = []
        self.runs = 0
        self.cwd: str | None = "."
        self.read: set[str] = set()

    def walked(self) -> Walked:
        """What was found so far."""
        return Walked(tuple(self.units), tuple(self.pythons), dict(self.written), tuple(self.wanted))

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
        if len(via) > 3 * DEPTH_MAX or len(self.units) > 200:
            return None
        lines = lines or tuple(range(1, text.count("\n") + 2))
        unit = Unit(file, self.scene.parse(text), text, lines, how, via, flags, env=dict(env or {}))
        self.units.append(unit)
        self._script(unit.script, unit, where or Where())
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
                unit.env[node.name] = Value(
                    node.values[:1], tuple(args[:1]), args[0].line, unit.lines, sure=len(args) == 1
                )
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
                self._note_run(args, (), node, unit, where, {})
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
        for _ in range(DEPTH_MAX):
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
        self._builtin(args, node, unit, where)
        self._note_run(args, via, node, unit, where, settings)
        self._heredocs(node, unit, where, via, program(args))

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
            run = self._note_run(
                rest, via, node, unit, where, settings, python=True, module=peeled.module, code=peeled.code
            )
            self._python(run)
            self._heredocs(node, unit, where, via, "python")
            return
        self._note_run(args if peeled.inside == "nothing" else rest, via, node, unit, where, settings)
        if peeled.inside == "nothing":
            self._heredocs(node, unit, where, via, name)
        elif peeled.inside == "text" and rest:
            self._inner_text(peeled, unit, where, settings, via)
        elif peeled.inside == "file" and rest:
            self._inner_file(peeled, unit, where, settings, via)

    def _inner_text(
        self, peeled: Peeled, unit: Unit, where: Where, settings: Mapping[str, Arg], via: tuple[Wrapper, ...]
    ) -> None:
        several = peeled.wrapper.name in ("eval", "ssh")
        texts: list[str] = []
        lines: list[int] = []
        for arg in peeled.rest if several else peeled.rest[:1]:
            if arg.word is None or "\n" not in arg.word.raw + arg.text:
                text, at = (
                    (arg.text, [arg.line])
                    if arg.word is None or arg.word.shown != arg.text
                    else rendered(arg.word, unit.env, unit.lines)
                )
            else:
                text, at = rendered(arg.word, unit.env, unit.lines)
            texts.append(text)
            lines += at if not lines else at[1:]
        flags = frozenset(peeled.wrapper.options)
        env = {**unit.env, **_as_values(settings, unit)}
        how = "submitted" if peeled.wrapper.name in SUBMITTERS else "inline"
        inner = where._replace(loops=(), conditional=False, condition=False, handler=False, piped=())
        cwd = self.cwd
        self.walk_text(
            " ".join(texts), unit.file, tuple(lines), how=how, via=via, env=env, flags=flags, where=inner
        )
        self.cwd = cwd

    def _inner_file(
        self, peeled: Peeled, unit: Unit, where: Where, settings: Mapping[str, Arg], via: tuple[Wrapper, ...]
    ) -> None:
        """The script that is started, or read in by `source`, where its text is known."""
        found = self.text_of(self._here(peeled.rest[0].text))
        if found is None or found[0] in self.read:
            return
        name, text, offset = found
        self.read.add(name)
        lines = tuple(range(offset + 1, offset + text.count("\n") + 2))
        how = "sourced" if peeled.wrapper.name == "source" else "file"
        env = {**unit.env, **_as_values(settings, unit)}
        cwd = self.cwd
        inner = self.walk_text(
            text, name, lines, how=how, via=via, env=env, flags=frozenset(peeled.wrapper.options), where=where
        )
        if how == "sourced" and inner is not None:
            unit.env.update(inner.env)
        else:
            self.cwd = cwd

    def _here(self, text: str) -> str | None:
        if "$" in text or text.startswith("~"):
            return None
        if text.startswith("/") or self.cwd is None:
            return text if text.startswith("/") else None
        return posixpath.normpath(posixpath.join(self.cwd, text))

    def text_of(self, path: str | None) -> tuple[str, str, int] | None:
        """File name, text and line offset of a script: one that the job itself wrote, or one of the tree."""
        if path is None:
            return None
        if path in self.written:
            return self.written[path]
        tree = self.scene.tree
        if tree is None:
            return None
        text = tree.text(path)
        if text is None:
            if tree.place(path) is not None and tree.seen(path) != "absent":
                self.wanted[path] = None
            return None
        return tree.place(path) or path, text, 0

    def _python(self, run: Run) -> None:
        """Python code of a run: inline, a file, or a module below the start folder."""
        first = run.args[0]
        if run.code:
            self.pythons.append(PythonText(run.unit.file, first.text, first.line - 1, run))
            return
        path = self._here(first.text.replace(".", "/") + ".py" if run.module else first.text)
        found = self.text_of(path)
        if found is not None and found[0] not in self.read:
            self.read.add(found[0])
            self.pythons.append(PythonText(*found, run))

    def _heredocs(self, node: Command, unit: Unit, where: Where, via: tuple[Wrapper, ...], name: str) -> None:
        """Text that a command gets on its standard input: a script for a shell, a file that is written, code."""
        for redirect in node.redirects:
            if not redirect.operator.startswith("<<") or redirect.operator == "<<<" or not redirect.body:
                continue
            start = unit.at(redirect.body_line)
            if name == "python":
                self.pythons.append(PythonText(unit.file, redirect.body, start - 1, None))
            elif name in ("bash", "sbatch", "qsub", "ssh", "sh"):
                text, lines = _body(redirect, unit)
                cwd = self.cwd
                self.walk_text(text, unit.file, lines, how="heredoc", via=via, env=unit.env, where=where)
                self.cwd = cwd
            elif name in ("cat", "tee"):
                self._written(node, unit, redirect, start)

    def _written(self, node: Command, unit: Unit, redirect: Redirect, start: int) -> None:
        targets: list[Word | None] = [r.target for r in node.redirects if r.operator in (">", ">>", ">|")]
        targets += [word for word in node.words[1:] if node.name == "tee"]
        for target in targets:
            path = self._here(resolve(target, unit.env, unit.lines)[0].text) if target else None
            if path is not None:
                self.written[path] = (unit.file, redirect.body, start - 1)

    def _builtin(self, args: tuple[Arg, ...], node: Command, unit: Unit, where: Where) -> None:
        name = program(args)
        if name in ("cd", "pushd"):
            target = args[1].text if len(args) > 1 else "~"
            if not where.subshell or where.background:
                self.cwd = self._here(target)
        elif name == "popd":
            self.cwd = None
        elif name == "alias":
            for arg in args[1:]:
                label, equals, value = arg.text.partition("=")
                if equals and label:
                    words = tuple(Arg(text, arg.line) for text in value.split())
                    unit.env[f"alias {label}"] = Value((), words, arg.line, unit.lines)

    def _note_run(
        self,
        args: tuple[Arg, ...],
        via: tuple[Wrapper, ...],
        node: Command,
        unit: Unit,
        where: Where,
        settings: Mapping[str, Arg],
        *,
        python: bool = False,
        module: bool = False,
        code: bool = False,
    ) -> Run:
        self.runs += 1
        run = Run(
            args,
            (*unit.via, *via),
            settings,
            where,
            node,
            unit,
            dict(unit.env),
            self.cwd,
            python,
            module,
            code,
        )
        unit.runs.append(run)
        return run


def _head(node: Node) -> str:
    return node.name if isinstance(node, Command) else ""


def _body(redirect: Redirect, unit: Unit) -> tuple[str, tuple[int, ...]]:
    """The text of a here-document as the inner shell gets it; the outer one's variables stay by name."""
    text = redirect.body.replace("\\$", "$") if redirect.expands else redirect.body
    return text, tuple(unit.at(redirect.body_line + n) for n in range(text.count("\n") + 1))


def _as_values(settings: Mapping[str, Arg], unit: Unit) -> dict[str, Value]:
    return {
        name: Value((arg.word,) if arg.word else (), (arg,), arg.line, unit.lines, exported=True)
        for name, arg in settings.items()
    }


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
