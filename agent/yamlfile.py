"""Reads the YAML that people write (requests, scenarios, settings) into a model, or says what is wrong where.

Nothing of YAML that runs or guesses: plain events are read, and only mappings, lists, strings, numbers,
booleans and null come of them. `on`, `off`, `yes`, `no`, dates, `1:30` and `007` stay strings (YAML 1.2), and
a text field gets a scalar as it was written (`version: 1.10`). Duplicate keys, unknown fields, foreign tags,
recursion and anything oversized are refused, all faults of a file at once, each with its line.

Never: construct an object named by the file; repeat what looks like a credential in a message (RULES B4).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from pydantic import BaseModel, ValidationError

from agent.redaction import Redactor
from states.credentials import is_secret

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

SIZE_MAX = 1 << 20
"""Bytes of one file."""
DEPTH_MAX = 40
"""Levels of nesting."""
ALIASES_MAX = 100
NODES_MAX = 100_000
"""Values after aliases are followed, so that a small file cannot unfold into a large one."""

Loc = tuple[int | str, ...]
Model = TypeVar("Model", bound=BaseModel)


class UserFileError(Exception):
    """What a person wrote cannot be used. One line for each fault: where it is, what it is, what to do."""

    def __init__(self, *faults: str) -> None:
        super().__init__("\n".join(faults))
        self.faults = faults


class Document(NamedTuple):
    """Plain data, and for each place in it the label to show (`file:line`) and a scalar's text as written."""

    data: dict[str, Any]
    labels: dict[Loc, str]
    texts: dict[Loc, str]


def read_yaml(source: str | Path, *, model: type[Model], what: str) -> Model:
    """The model that a file (a Path) or a text (a str) holds. `what` names it in messages, as "the request".

    Raises UserFileError with every fault found; unknown fields are refused if the model forbids them.
    """
    return validate(read_document(source, what=what), model)


def read_document(source: str | Path, *, what: str) -> Document:
    """The plain data of one YAML mapping (empty for an empty file) with its lines. Raises UserFileError."""
    where = str(source) if isinstance(source, Path) else what
    text = _contents(source, where) if isinstance(source, Path) else source
    if len(text.encode("utf-8", "replace")) > SIZE_MAX:
        raise UserFileError(
            f"{where}: larger than 1 MiB, which {what} never is; give the path of another file"
        )
    return _Reading(where, what).document(text)


def _contents(path: Path, where: str) -> str:
    try:
        with path.open("rb") as file:
            return file.read(SIZE_MAX + 1).decode("utf-8-sig")
    except OSError as error:
        raise UserFileError(
            f"{where}: {(error.strerror or 'cannot be read').lower()}; check the path"
        ) from None
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise UserFileError(f"{where}:{line}: not UTF-8 text; save the file as UTF-8") from None


# --- from events to plain data ---------------------------------------------------------------------------

_SCALARS: tuple[tuple[re.Pattern[str], Any], ...] = (
    (re.compile(r"~|null|Null|NULL|"), lambda _: None),
    (re.compile(r"true|True|TRUE|false|False|FALSE"), lambda text: text.lower() == "true"),
    (re.compile(r"[-+]?(?:0|[1-9][0-9]{0,99})"), int),
    (re.compile(r"0x[0-9a-fA-F]{1,64}|0o[0-7]{1,64}"), lambda text: int(text, 0)),
    (re.compile(r"[-+]?(?:\.[0-9]{1,99}|[0-9]{1,99}(?:\.[0-9]{0,99})?)(?:[eE][-+]?[0-9]{1,9})?"), float),
    (re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"), lambda text: float(text.replace(".", ""))),
)
_LEADING_ZERO = re.compile(r"[-+]?0[0-9]")
_TAGS = {"str", "int", "float", "bool", "null", "seq", "map"}


def plain_scalar(text: str) -> Any:
    """What a scalar without quotes means: null, bool, int, float, or the text itself (YAML 1.2, core)."""
    if _LEADING_ZERO.match(text):  # a job number or a file mode, not a count
        return text
    return next((make(text) for pattern, make in _SCALARS if pattern.fullmatch(text)), text)


class _Node(NamedTuple):
    """A value as it stands in the file; `content` is the text, or the items, or pairs of key and value."""

    kind: str
    content: Any
    line: int


class _Reading:
    """One file being read: where it is, and the limits used up so far."""

    def __init__(self, where: str, what: str) -> None:
        self.where, self.what = where, what
        self.anchors: dict[str, _Node | None] = {}
        self.faults: list[str] = []
        self.labels: dict[Loc, str] = {}
        self.texts: dict[Loc, str] = {}
        self.aliases = self.nodes = 0

    def document(self, text: str) -> Document:
        import yaml  # 0.05 s: a light command has no file to read

        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        try:
            root = self._root(yaml.parse(text, Loader=loader))
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            raise self._fatal(mark.line + 1 if mark else 1, f"not valid YAML: {error.problem}") from None
        except (yaml.YAMLError, UnicodeError):
            raise self._fatal(1, "holds characters that YAML does not allow; save it as plain text") from None
        data = self._value(root, (), 0) if root else {}
        if not isinstance(data, dict):
            self.faults.insert(
                0, f"{self.where}:1: {self.what} is `name: value` lines, not a list or a bare value"
            )
        if self.faults:
            raise UserFileError(*self.faults)
        return Document(data, self.labels, self.texts)

    def _fatal(self, line: int, fault: str) -> UserFileError:
        return UserFileError(f"{self.where}:{line}: {fault}")

    def _root(self, events: Iterator[Any]) -> _Node | None:
        """The tree of the one document; None for an empty file."""
        root = None
        for event in events:
            if type(event).__name__ == "DocumentStartEvent":
                if root is not None:
                    line = event.start_mark.line + 1
                    raise self._fatal(line, "a second document begins (`---`); one file, one document")
                root = self._node(next(events), events, 1)
        return root if root and root.content != "" else None

    def _node(self, event: Any, events: Iterator[Any], depth: int) -> _Node:
        line, name = event.start_mark.line + 1, type(event).__name__
        if depth > DEPTH_MAX:
            raise self._fatal(line, f"nested more than {DEPTH_MAX} deep; is it the right file?")
        if name == "AliasEvent":
            return self._alias(event.anchor, line)
        tag = str(event.tag).rpartition(":")[2] if event.tag else ""
        if event.tag and (not event.tag.startswith("tag:yaml.org,2002:") or tag not in _TAGS):
            raise self._fatal(line, f"the tag {event.tag} is not read here; write the plain value")
        if event.anchor:
            self.anchors[event.anchor] = None  # still open: an alias to it from inside would never end
        if name == "ScalarEvent":
            plain = event.implicit[0] if not tag else tag != "str"
            node = _Node("plain" if plain else "text", event.value, line)
        else:
            parts = []
            while not type(inner := next(events)).__name__.endswith("EndEvent"):
                parts.append(self._node(inner, events, depth + 1))
            if name == "MappingStartEvent":
                node = _Node("map", list(zip(parts[::2], parts[1::2], strict=True)), line)
            else:
                node = _Node("list", parts, line)
        if event.anchor:
            self.anchors[event.anchor] = node
        return node

    def _alias(self, anchor: str, line: int) -> _Node:
        node = self.anchors.get(anchor)
        self.aliases += 1
        if node is None or self.aliases > ALIASES_MAX:
            why = "unknown, or inside itself" if node is None else f"one of more than {ALIASES_MAX}"
            raise self._fatal(line, f"the alias *{anchor} is {why}; write the value out")
        return node

    def _value(self, node: _Node, loc: Loc, depth: int) -> Any:
        self.nodes += 1
        if self.nodes > NODES_MAX or depth > DEPTH_MAX:
            raise self._fatal(node.line, "unfolds into too many values; write less by alias")
        self.labels[loc] = f"{self.where}:{node.line}"
        if node.kind == "map":
            return self._mapping(node, loc, depth)
        if node.kind == "list":
            return [self._value(item, (*loc, place), depth + 1) for place, item in enumerate(node.content)]
        self.texts.pop(loc, None)
        if node.kind == "plain" and node.content:
            self.texts[loc] = node.content
        return plain_scalar(node.content) if node.kind == "plain" else node.content

    def _mapping(self, node: _Node, loc: Loc, depth: int) -> dict[str, Any]:
        merges = [value for key, value in node.content if key == ("plain", "<<", key.line)]
        out: dict[str, Any] = {}
        for value in merges:
            out |= self._merged(value, loc, depth)
        lines: dict[str, int] = {}
        for key, value in node.content:
            name, here = key.content, f"{self.where}:{key.line}"
            if key.kind not in ("plain", "text"):
                self.faults.append(f"{here}: a field's name is a word, not a list or a mapping")
            elif name in lines:
                self.faults.append(
                    f"{here}: {_shown(name)} is there twice (line {lines[name]} too); keep one"
                )
            elif not (name == "<<" and key.kind == "plain"):
                lines[name] = key.line
                out[name] = self._value(value, (*loc, name), depth + 1)
                if value.kind in ("plain", "text"):  # a block of text begins below its name
                    self.labels[(*loc, name)] = here
        return out

    def _merged(self, node: _Node, loc: Loc, depth: int) -> dict[str, Any]:
        """`<<: *base`, or a list of them, of which the earlier win."""
        out: dict[str, Any] = {}
        for item in node.content if node.kind == "list" else [node]:
            self.nodes += 1
            if item.kind == "map" and depth < DEPTH_MAX:
                out = self._mapping(item, loc, depth + 1) | out
            else:
                self.faults.append(f"{self.where}:{item.line}: `<<` takes a mapping")
        return out


# --- from plain data to a model --------------------------------------------------------------------------


def validate(document: Document, model: type[Model]) -> Model:
    """The model of the document's data. Raises UserFileError with all faults, in the order of the file.

    A text field that was given a plain number or boolean gets it as it was written, and is tried again.
    """
    data, error = document.data, None
    for _ in range(4):  # a union may ask for a text only after another member has been refused
        try:
            return model.model_validate(data)
        except ValidationError as caught:
            error = caught
        places = {
            _place(e["loc"], data) for e in error.errors(include_url=False) if e["type"] == "string_type"
        }
        if not places & document.texts.keys():
            break
        data = _as_written(data, (), {p: document.texts[p] for p in places & document.texts.keys()})
    assert error is not None
    faults = [_fault(document, model, _place(e["loc"], data), e) for e in error.errors(include_url=False)]
    raise UserFileError(*(fault for _, fault in sorted(dict.fromkeys(faults))))


def _as_written(value: Any, loc: Loc, texts: dict[Loc, str]) -> Any:
    if isinstance(value, dict):
        return {key: _as_written(item, (*loc, key), texts) for key, item in value.items()}
    if isinstance(value, list):
        return [_as_written(item, (*loc, place), texts) for place, item in enumerate(value)]
    return texts.get(loc, value)


def _place(loc: Loc, data: Any) -> Loc:
    """The part of a pydantic location that is a path in the data (the rest names members of unions)."""
    place: list[int | str] = []
    for step in loc:
        inside = data if isinstance(data, dict) else dict(enumerate(data)) if isinstance(data, list) else {}
        if step in inside:
            data = inside[step]
            place.append(step)
    return tuple(place)


def _fault(document: Document, model: type[BaseModel], place: Loc, error: ErrorDetails) -> tuple[int, str]:
    """The line (0 if it has none) and the whole message of one fault."""
    kind, name = error["type"], str(error["loc"][-1]) if error["loc"] else ""
    nearest = next(place[:n] for n in range(len(place), -1, -1) if place[:n] in document.labels or n == 0)
    label = document.labels.get(nearest, "")
    path = ".".join(str(step) for step in place)
    if kind == "extra_forbidden":
        known = [field for field in _fields(model, place[:-1]) if field != name]  # another union member's own
        fault = f"unknown field {_shown(name)}; {_nearest(name, known)}"
    elif kind == "missing":
        fault = f"{_shown('.'.join([*map(str, place), name]))} is missing; add `{name}: ...`"
    elif kind in ("value_error", "assertion_error"):
        reason = error["msg"].removeprefix("Value error, ").removeprefix("Assertion failed, ")
        fault = f"{_shown(path)}: {reason}" if path else reason
    else:
        fault = f"{_shown(path)} {_wrong(error, name)}"
    line = label.rpartition(":")[2]
    return int(line) if line.isdigit() else 0, Redactor(()).text(f"{label}: {fault}")


_WANTED = {
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "string": "text",
    "list": "a list",
    "tuple": "a list",
    "dict": "a mapping of names to values",
    "model": "a mapping of fields",
}


def _wrong(error: ErrorDetails, name: str) -> str:
    """What is wrong with a value, and the value itself if it is short and no credential."""
    kind, given = error["type"], error["input"]
    wanted = _WANTED.get(kind.partition("_")[0])
    if given is None and wanted:
        return f"is empty; it must be {wanted}"
    told = isinstance(given, (str, int, float)) and not is_secret(name, str(given))
    seen = f", not {_shown(given)}" if told else ""
    if kind in ("literal_error", "enum"):
        choices = re.findall(r"'([^']*)'", str(error.get("ctx", {}).get("expected", "")))
        guess = _nearest(str(given), choices, listed=False) if told else ""
        return f"must be one of {', '.join(choices)}{seen}" + (f"; {guess}" if guess else "")
    if wanted and kind.endswith(("_type", "_parsing", "_from_float")):
        return f"must be {wanted}{seen}"
    return f"must be {error['msg'].removeprefix('Input should be ')}{seen}"


def _shown(value: object) -> str:
    text = str(value)
    return repr(text if len(text) <= 60 else text[:57] + "...")


def _nearest(name: str, known: list[str], *, listed: bool = True) -> str:
    import difflib

    close = difflib.get_close_matches(name.lower(), [k.lower() for k in known], n=1, cutoff=0.6)
    if close:
        return f"did you mean {_shown(next(k for k in known if k.lower() == close[0]))}?"
    return f"known here: {', '.join(sorted(known))}" if listed and known else ""


def _fields(model: Any, place: Loc) -> list[str]:
    """The fields that may stand at a place of the model's data, found through its annotations."""
    models = [model]
    for step in place:
        inner = [info for m in models for n, info in m.model_fields.items() if step in (n, info.alias)]
        models = [m for info in inner for m in _models_in(info.annotation)] or models
    return [info.alias or name for m in models for name, info in m.model_fields.items()]


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in getattr(annotation, "__args__", ()):
        yield from _models_in(argument)
