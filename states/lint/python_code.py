"""Python as far as a look at its text tells: calls by their full names, names that hold constants, the loops around.

Values are followed through assignments, f-strings, function parameters with one call, and argparse defaults with
the options that the command line gives.

Never: import or run the code; raise on any text.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from states.lint.facts import PythonText
from states.lint.options import options

CHARS_MAX = 400_000
_RESOLVE_DEPTH = 6
Loopish = ast.For | ast.AsyncFor | ast.While


@dataclass(frozen=True)
class Call:
    """One call. name: dotted, imports resolved. loops: around it, outermost first; function: it stands in."""

    node: ast.Call
    name: str
    loops: tuple[Loopish, ...]
    function: ast.FunctionDef | ast.AsyncFunctionDef | None

    def keyword(self, *names: str) -> ast.keyword | None:
        """The keyword argument under one of these names."""
        return next((k for k in self.node.keywords if k.arg in names), None)

    def argument(self, place: int, *names: str) -> ast.expr | None:
        """A positional or keyword argument."""
        found = self.keyword(*names)
        if found is not None:
            return found.value
        return self.node.args[place] if 0 <= place < len(self.node.args) else None


@dataclass
class Code:
    """One parsed Python text. offset: lines of the file before its first."""

    file: str
    text: str
    offset: int
    tree: ast.Module
    calls: list[Call] = field(default_factory=list)
    names: dict[str, list[ast.expr]] = field(default_factory=dict)
    functions: dict[str, ast.FunctionDef | ast.AsyncFunctionDef] = field(default_factory=dict)
    imports: dict[str, str] = field(default_factory=dict)
    defaults: dict[str, ast.expr] = field(default_factory=dict)
    given: dict[str, str] = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=dict)

    def at(self, node: ast.expr | ast.stmt | ast.keyword) -> int:
        """The line in the file."""
        return node.lineno + self.offset

    def string(self, node: ast.expr | None, depth: int = 0) -> str | None:
        """The text that the expression holds, None where that is not plain. `{}` stands for what varies."""
        if node is None or depth > _RESOLVE_DEPTH:
            return None
        if isinstance(node, ast.Constant):
            return node.value if isinstance(node.value, str) else None
        if isinstance(node, ast.JoinedStr):
            return "".join(self._piece(value, depth) for value in node.values)
        if isinstance(node, ast.Name):
            values = self.names.get(node.id, [])
            return self.string(values[0], depth + 1) if len(values) == 1 else None
        if isinstance(node, ast.Attribute):
            return self._attribute(node, depth)
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Div)):
            left, right = self.string(node.left, depth + 1), self.string(node.right, depth + 1)
            joint = "/" if isinstance(node.op, ast.Div) else ""
            return None if left is None or right is None else left + joint + right
        if isinstance(node, ast.Call):
            return self._called(node, depth)
        return None

    def _piece(self, node: ast.expr, depth: int) -> str:
        if isinstance(node, ast.Constant):
            return str(node.value)
        inner = node.value if isinstance(node, ast.FormattedValue) else node
        return self.string(inner, depth + 1) or "{}"

    def _attribute(self, node: ast.Attribute, depth: int) -> str | None:
        """`args.model`: what the command line gives, else argparse's default."""
        if node.attr in self.given:
            return self.given[node.attr]
        if node.attr in self.defaults and isinstance(node.value, ast.Name):
            return self.string(self.defaults[node.attr], depth + 1)
        return None

    def _called(self, node: ast.Call, depth: int) -> str | None:
        name = self.name_of(node.func)
        if name in ("os.path.join", "pathlib.Path", "Path", "str", "os.path.abspath", "os.path.expanduser"):
            pieces = [self.string(argument, depth + 1) for argument in node.args]
            return None if None in pieces or not pieces else "/".join(p for p in pieces if p)
        if name in ("os.getenv", "os.environ.get") and len(node.args) > 1:
            return self.string(node.args[1], depth + 1)
        return None

    def name_of(self, node: ast.expr) -> str:
        """The dotted name of a callee, its first part replaced by what was imported under it."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute) and len(parts) < 12:
            parts.append(node.attr)
            node = node.value
        if isinstance(node, ast.Name):
            parts.append(self.imports.get(node.id, node.id))
        elif isinstance(node, ast.Call):
            parts.append(self.name_of(node.func) + "()")
        return ".".join(reversed(parts))

    def number(self, node: ast.expr | None) -> int | None:
        """A whole number that the expression holds."""
        if isinstance(node, ast.Name):
            values = self.names.get(node.id, [])
            node = values[0] if len(values) == 1 else None
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            inner = self.number(node.operand)
            return None if inner is None else -inner
        if isinstance(node, ast.Attribute):
            text = self.given.get(node.attr)
            if text is not None and text.lstrip("-").isdigit():
                return int(text)
            node = self.defaults.get(node.attr)
        if isinstance(node, ast.Constant) and type(node.value) is int:
            return node.value
        return None


def read(python: PythonText) -> Code | None:
    """The text parsed and gathered; None where it is no Python that this interpreter knows."""
    try:
        tree = ast.parse(python.text[:CHARS_MAX])
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    code = Code(python.file, python.text, python.offset, tree)
    if python.run is not None:
        for option in options(python.run):
            code.given[option.name] = option.value.text if option.value is not None else "true"
    try:
        _Gatherer(code).visit(tree)
    except RecursionError:
        return None
    _parameters(code)
    return code


def _parameters(code: Code) -> None:
    """A parameter of a function that is called in one place holds what that call gives."""
    calls: dict[str, list[ast.Call]] = {}
    for call in code.calls:
        calls.setdefault(call.name, []).append(call.node)
    for name, function in code.functions.items():
        found = calls.get(name, [])
        if len(found) != 1:
            continue
        for parameter, argument in zip(function.args.args, found[0].args, strict=False):
            if not isinstance(argument, ast.Name) or argument.id != parameter.arg:
                code.names.setdefault(parameter.arg, []).append(argument)
        for keyword in found[0].keywords:
            if keyword.arg and not (isinstance(keyword.value, ast.Name) and keyword.value.id == keyword.arg):
                code.names.setdefault(keyword.arg, []).append(keyword.value)


class _Gatherer(ast.NodeVisitor):
    """One pass over the tree."""

    def __init__(self, code: Code) -> None:
        self.code = code
        self.loops: list[Loopish] = []
        self.inside: list[ast.FunctionDef | ast.AsyncFunctionDef] = []

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            self.code.imports[alias.asname or alias.name.split(".")[0]] = (
                alias.name if alias.asname else alias.name.split(".")[0]
            )

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        for alias in node.names:
            self.code.imports[alias.asname or alias.name] = f"{node.module or ''}.{alias.name}".lstrip(".")

    def visit_Assign(self, node: ast.Assign) -> None:
        for target in node.targets:
            if isinstance(target, ast.Name):
                self.code.names.setdefault(target.id, []).append(node.value)
            elif isinstance(target, ast.Subscript):
                self._setting(target, node.value)
        self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if isinstance(node.target, ast.Name) and node.value is not None:
            self.code.names.setdefault(node.target.id, []).append(node.value)
            if not self.inside:
                self.code.defaults.setdefault(node.target.id, node.value)
        self.generic_visit(node)

    def _setting(self, target: ast.Subscript, value: ast.expr) -> None:
        """`os.environ["NAME"] = "value"`."""
        if self.code.name_of(target.value) == "os.environ" and isinstance(target.slice, ast.Constant):
            text = self.code.string(value)
            if text is not None:
                self.code.settings[str(target.slice.value)] = text

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self.code.functions[node.name] = node
        loops, self.loops = self.loops, []
        self.inside.append(node)
        self.generic_visit(node)
        self.inside.pop()
        self.loops = loops

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self._function(node)

    def _loop(self, node: Loopish) -> None:
        self.loops.append(node)
        self.generic_visit(node)
        self.loops.pop()

    def visit_For(self, node: ast.For) -> None:
        self._loop(node)

    def visit_AsyncFor(self, node: ast.AsyncFor) -> None:
        self._loop(node)

    def visit_While(self, node: ast.While) -> None:
        self._loop(node)

    def visit_Call(self, node: ast.Call) -> None:
        name = self.code.name_of(node.func)
        function = self.inside[-1] if self.inside else None
        self.code.calls.append(Call(node, name, tuple(self.loops), function))
        if name.endswith("add_argument"):
            self._argument(node)
        elif name.endswith("environ.setdefault") and len(node.args) == 2:
            key, value = (self.code.string(argument) for argument in node.args)
            if key and value:
                self.code.settings[key] = value
        self.generic_visit(node)

    def _argument(self, node: ast.Call) -> None:
        default = next((k.value for k in node.keywords if k.arg == "default"), None)
        if default is None:
            return
        for argument in node.args:
            if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                self.code.defaults[argument.value.lstrip("-").replace("-", "_")] = default
