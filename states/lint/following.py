"""What stands inside a launcher: inner shell texts, scripts that are started or read in, here-documents, Python.

`Follower` holds what a walk has gathered; `walk.py` adds the statements of a script to it.

Never: judge; read a file that the scene does not hold (it is asked for in `wanted`).
"""

from __future__ import annotations

import posixpath
from abc import ABC, abstractmethod
from collections.abc import Mapping

from states.lint.facts import PythonText, Run, Unit, Walked, Where
from states.lint.launchers import Peeled, Wrapper, program
from states.lint.scene import Scene
from states.lint.shell import Command, Redirect, Script, Word
from states.lint.words import Arg, Value, rendered, resolve
from states.lint.wrappers import SUBMITTERS

RUNS_MAX = 600
"""Commands that are read."""


class Follower(ABC):
    """The state of a walk, and the steps into what is started."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.units: list[Unit] = []
        self.pythons: list[PythonText] = []
        self.written: dict[str, tuple[str, str, int]] = {}
        self.wanted: dict[str, None] = {}
        self.functions: dict[str, Script] = {}
        self.calls: list[str] = []
        self.runs = 0
        self.nesting = 0
        self.cwd: str | None = "."
        self.read: set[str] = set()

    def walked(self) -> Walked:
        """What was found so far."""
        cut = self.runs >= RUNS_MAX
        return Walked(tuple(self.units), tuple(self.pythons), dict(self.written), tuple(self.wanted), cut)

    @abstractmethod
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

    def set_unknown(self, name: str, unit: Unit, local: int) -> None:
        """A variable that is set, to what only the run knows."""
        line = unit.at(local)
        unit.env[name] = Value((), (Arg(f"${name}", line, False),), line, unit.lines, sure=False)

    def inner_text(
        self, peeled: Peeled, unit: Unit, where: Where, settings: Mapping[str, Arg], via: tuple[Wrapper, ...]
    ) -> None:
        several = peeled.wrapper.name in ("eval", "ssh")
        texts: list[str] = []
        lines: list[int] = []
        for arg in peeled.rest if several else peeled.rest[:1]:
            if arg.word is None or not any(part.kind != "other" for part in arg.word.parts):
                text, at = arg.text, [arg.line + n for n in range(arg.text.count("\n") + 1)]
            else:
                text, at = rendered(arg.word, unit.env, unit.lines)
            texts.append(text)
            lines += at if not lines else at[1:]
        flags = frozenset(peeled.wrapper.options)
        env = {**unit.env, **_as_values(settings, unit)}
        how = "submitted" if peeled.wrapper.name in SUBMITTERS else "inline"
        inner = Where(substitution=where.substitution)
        cwd = self.cwd
        self.walk_text(
            " ".join(texts), unit.file, tuple(lines), how=how, via=via, env=env, flags=flags, where=inner
        )
        self.cwd = cwd

    def inner_file(
        self, peeled: Peeled, unit: Unit, where: Where, settings: Mapping[str, Arg], via: tuple[Wrapper, ...]
    ) -> None:
        """The script that is started, or read in by `source`, where its text is known."""
        found = self.text_of(self.here(peeled.rest[0].text))
        if found is None or found[0] in self.read:
            return
        name, text, offset = found
        self.read.add(name)
        lines = tuple(range(offset + 1, offset + text.count("\n") + 2))
        how = "sourced" if peeled.wrapper.name == "source" else "file"
        env = {**unit.env, **_as_values(settings, unit)}
        cwd = self.cwd
        inner = self.walk_text(
            text, name, lines, how=how, via=via, env=env, flags=frozenset(peeled.wrapper.options)
        )
        if how == "sourced" and inner is not None:
            unit.env.update(inner.env)
        else:
            self.cwd = cwd

    def here(self, text: str) -> str | None:
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

    def python(self, run: Run) -> None:
        """Python code of a run: inline, a file, or a module below the start folder."""
        first = run.args[0]
        if run.code:
            self.pythons.append(PythonText(run.unit.file, first.text, first.line - 1, run))
            return
        path = self.here(first.text.replace(".", "/") + ".py" if run.module else first.text)
        found = self.text_of(path)
        if found is not None and found[0] not in self.read:
            self.read.add(found[0])
            self.pythons.append(PythonText(*found, run))

    def heredocs(self, node: Command, unit: Unit, where: Where, via: tuple[Wrapper, ...], name: str) -> None:
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
            path = self.here(resolve(target, unit.env, unit.lines)[0].text) if target else None
            if path is not None:
                self.written[path] = (unit.file, redirect.body, start - 1)

    def builtin(self, args: tuple[Arg, ...], node: Command, unit: Unit, where: Where) -> None:
        name = program(args)
        if name in ("cd", "pushd"):
            target = args[1].text if len(args) > 1 else "~"
            if not where.subshell or where.background:
                self.cwd = self.here(target)
        elif name in ("read", "getopts", "mapfile", "readarray"):
            for arg in args[1:]:
                if arg.text.isidentifier():
                    self.set_unknown(arg.text, unit, node.line)
        elif name == "popd":
            self.cwd = None
        elif name == "alias":
            for arg in args[1:]:
                label, equals, value = arg.text.partition("=")
                if equals and label:
                    words = tuple(Arg(text, arg.line) for text in value.split())
                    unit.env[f"alias {label}"] = Value((), words, arg.line, unit.lines)

    def note_run(
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
        outer: bool = False,
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
            outer,
        )
        unit.runs.append(run)
        return run


def _body(redirect: Redirect, unit: Unit) -> tuple[str, tuple[int, ...]]:
    """The text of a here-document as the inner shell gets it; the outer one's variables stay by name."""
    text = redirect.body.replace("\\$", "$") if redirect.expands else redirect.body
    return text, tuple(unit.at(redirect.body_line + n) for n in range(text.count("\n") + 1))


def _as_values(settings: Mapping[str, Arg], unit: Unit) -> dict[str, Value]:
    return {
        name: Value((arg.word,) if arg.word else (), (arg,), arg.line, unit.lines, exported=True)
        for name, arg in settings.items()
    }
