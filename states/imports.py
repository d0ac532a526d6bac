"""Which modules a command's Python really imports: its own files followed, what is guarded told apart.

Read by `ast` from the text. An import at the top of a file, or in what runs at once, is needed; one inside a
function is needed only if that is called, so it is told apart; one in a `try` that catches the ImportError, or that
only a type checker reads, is optional. Files of the job's own tree are followed by the same rules (RULES C6, D4).

Never: import or run anything; raise on any text.
"""

from __future__ import annotations

import ast
import posixpath
from collections.abc import Iterator
from typing import NamedTuple

from states.lint.facts import PythonText
from states.lint.python_code import CHARS_MAX
from states.lint.scene import Scene
from states.lint.walk import Walker

FILES_MAX = 60
"""Files of the job's own that are followed."""

Kind = str
_CATCHES = frozenset({"ImportError", "ModuleNotFoundError", "Exception", "BaseException"})


class Import(NamedTuple):
    """One import. module: dotted, "" for none; names: what is taken from it, each maybe a module itself."""

    module: str
    names: tuple[str, ...] = ()
    level: int = 0
    guarded: bool = False
    inside: bool = False


class Imports(NamedTuple):
    """Modules from outside the job's own files, by their full dotted names, in order.

    needed: at once; later: when a function is called; optional: the code goes on without. wanted: files that were
    asked for and not known. unread: files that could not be parsed. seen: whether any Python was read at all.
    """

    needed: tuple[str, ...] = ()
    later: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    wanted: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()
    seen: bool = False

    def outside(self, standard: frozenset[str]) -> tuple[str, ...]:
        """Needed top-level names that the standard library does not bring."""
        tops = dict.fromkeys(name.partition(".")[0] for name in self.needed)
        return tuple(name for name in tops if name not in standard)


def imports_in(text: str) -> tuple[Import, ...] | None:
    """Every import of one Python text, in order; None where it does not parse."""
    try:
        tree = ast.parse(text[:CHARS_MAX])
        return tuple(_imports(tree.body, guarded=False, inside=False))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _imports(body: list[ast.stmt], *, guarded: bool, inside: bool) -> Iterator[Import]:
    for node in body:
        match node:
            case ast.Import(names=names):
                yield from (Import(alias.name, (), 0, guarded, inside) for alias in names)
            case ast.ImportFrom(module=module, names=names, level=level):
                taken = tuple(alias.name for alias in names)
                yield Import(module or "", taken, level, guarded, inside)
            case ast.FunctionDef(body=inner) | ast.AsyncFunctionDef(body=inner):
                yield from _imports(inner, guarded=guarded, inside=True)
            case ast.Try():
                caught = guarded or any(_catches(handler) for handler in node.handlers)
                yield from _imports(node.body, guarded=caught, inside=inside)
                for handler in node.handlers:
                    yield from _imports(handler.body, guarded=True, inside=inside)
                yield from _imports([*node.orelse, *node.finalbody], guarded=caught, inside=inside)
            case ast.If():
                # What a condition decides (a version, a flag, TYPE_CHECKING) is not surely imported; main is.
                maybe = guarded or not _is_main(node.test)
                yield from _imports([*node.body, *node.orelse], guarded=maybe, inside=inside)
            case ast.Match():
                for case in node.cases:
                    yield from _imports(case.body, guarded=True, inside=inside)
            case _:
                for block in ("body", "orelse"):
                    nested = getattr(node, block, None)
                    if isinstance(nested, list):
                        yield from _imports(nested, guarded=guarded, inside=inside)


def _catches(handler: ast.ExceptHandler) -> bool:
    if handler.type is None:
        return True
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(isinstance(kind, ast.Name) and kind.id in _CATCHES for kind in kinds)


def _is_main(test: ast.expr) -> bool:
    return isinstance(test, ast.Compare) and isinstance(test.left, ast.Name) and test.left.id == "__name__"


# --- a whole command -------------------------------------------------------------------------------------------


def imports_of(text: str, scene: Scene) -> Imports:
    """What the Python that a shell text starts imports. Files come from the scene's tree; those that it does not
    know are in `wanted`, and the caller may come again with them."""
    walker = Walker(scene)
    try:
        walker.walk_text(text, "command")
    except RecursionError:
        return Imports(unread=("the command is nested too deeply to be read",))
    walked = walker.walked()
    follower = _Follower(scene)
    for wanted in walked.wanted:
        follower.wanted.setdefault(wanted)
    for python in walked.pythons:
        follower.follow(python)
    return follower.found()


class _Follower:
    """Follows imports from file to file."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.modules: dict[str, dict[str, None]] = {"needed": {}, "later": {}, "optional": {}}
        self.wanted: dict[str, None] = {}
        self.unread: list[str] = []
        self.done: set[str] = set()
        self.seen = False

    def found(self) -> Imports:
        needed = self.modules["needed"]
        later = [name for name in self.modules["later"] if name not in needed]
        optional = [name for name in self.modules["optional"] if name not in needed and name not in later]
        return Imports(
            tuple(needed), tuple(later), tuple(optional), tuple(self.wanted), tuple(self.unread), self.seen
        )

    def follow(self, python: PythonText) -> None:
        """A script and the files of the job's own that it imports. A script finds what lies beside it, a module run
        by `-m` and `-c` code what lies in the folder they start in."""
        run = python.run
        start = run.cwd if run is not None and run.cwd is not None else "."
        as_script = run is None or not (run.module or run.code)
        home = posixpath.dirname(python.file) if as_script and python.file.endswith(".py") else start
        self._text(python.text, python.file, (home or ".", start), "needed")

    def _text(self, text: str, file: str, paths: tuple[str, ...], kind: Kind) -> None:
        if file in self.done or len(self.done) >= FILES_MAX:
            return
        self.done.add(file)
        self.seen = True
        imports = imports_in(text)
        if imports is None:
            self.unread.append(file)
            return
        for one in imports:
            its = (
                kind
                if kind != "needed"
                else "optional"
                if one.guarded
                else "later"
                if one.inside
                else "needed"
            )
            self._import(one, file, paths, its)

    def _import(self, one: Import, file: str, paths: tuple[str, ...], kind: Kind) -> None:
        if one.level:
            folder = posixpath.dirname(file)
            for _ in range(one.level - 1):
                folder = posixpath.dirname(folder)
            stems = [one.module] if one.module else []
            stems += [f"{one.module}.{name}".lstrip(".") for name in one.names]
            for stem in stems:
                self._own(stem, (folder or ".",), paths, kind)
            return
        if not self._own(one.module, paths, paths, kind):
            self.modules[kind].setdefault(one.module)
            return
        for name in one.names:
            self._own(f"{one.module}.{name}", paths, paths, kind)

    def _own(self, module: str, where: tuple[str, ...], paths: tuple[str, ...], kind: Kind) -> bool:
        """Whether the module is one of the job's own files or folders; its text is followed where it is known."""
        top = module.partition(".")[0]
        for folder in dict.fromkeys(where):
            base = posixpath.normpath(posixpath.join(folder, top))
            if self._there(f"{base}.py") or self._there(base):
                stem = posixpath.normpath(posixpath.join(folder, module.replace(".", "/")))
                for path in (f"{stem}.py", f"{stem}/__init__.py"):
                    self._read(path, paths, kind)
                return True
        return False

    def _there(self, path: str) -> bool:
        tree = self.scene.tree
        if tree is None:
            return False
        seen = tree.seen(path)
        if seen == "unknown" and tree.place(path) is not None:
            self.wanted.setdefault(path)
        return seen == "there"

    def _read(self, path: str, paths: tuple[str, ...], kind: Kind) -> None:
        tree = self.scene.tree
        if tree is not None and self._there(path) and (text := tree.text(path)) is not None:
            self._text(text, tree.place(path) or path, paths, kind)


def is_module_name(text: str) -> bool:
    """Whether the text is a dotted name and nothing else: it becomes a word of a command."""
    return bool(text) and all(part.isidentifier() for part in text.split("."))
