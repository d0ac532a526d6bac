"""Kubernetes YAML into the plain tables of `states/lint/manifest.py`, with lines; a line that is no YAML is left out.

Never: construct anything (tags are texts here); raise on any text.
"""

from __future__ import annotations

import re
from typing import Any

import yaml

from states.lint.manifest import Manifest, Row, Table, Text, Yaml

FAULTS_MAX = 8
"""Broken lines that are left out one by one before the rest is given up."""

DEPTH_MAX = 60
NODES_MAX = 50_000

_KINDS = {
    "tag:yaml.org,2002:int": "int",
    "tag:yaml.org,2002:float": "float",
    "tag:yaml.org,2002:bool": "bool",
    "tag:yaml.org,2002:null": "null",
}


def parse(text: str) -> Manifest:
    """The documents of a file. Raises nothing; what could not be read is in `faults`."""
    faults: list[tuple[int, str]] = []
    lines = text.replace("\r\n", "\n").split("\n")
    for _ in range(FAULTS_MAX + 1):
        try:
            nodes = list(yaml.compose_all("\n".join(lines), Loader=_Loader))
            budget = [NODES_MAX]
            documents = tuple(_plain(node, lines, 0, budget) for node in nodes if node is not None)
            return Manifest(documents, tuple(faults))
        except yaml.YAMLError as error:
            mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
            place = min(mark.line, len(lines) - 1) if mark is not None else 0
            words = str(getattr(error, "problem", None) or "cannot be read")
            place = _culprit(lines, place, error)
            faults.append((place + 1, words))
            if not lines[place].strip():
                break
            lines[place] = ""
        except (RecursionError, ValueError):
            faults.append((1, "it is nested too deeply"))
            break
    return Manifest((), tuple(faults))


def _culprit(lines: list[str], place: int, error: Any) -> int:
    """The line to leave out: the marked one, or where it is blank the one above."""
    while place > 0 and not lines[place].strip():
        place -= 1
    return place


class _Loader(yaml.SafeLoader):
    """Composes only."""


def _plain(node: yaml.Node, lines: list[str], depth: int, budget: list[int]) -> Yaml:
    budget[0] -= 1
    line = node.start_mark.line + 1
    if depth > DEPTH_MAX or budget[0] < 0:
        raise ValueError("too deep or too large")
    if isinstance(node, yaml.MappingNode):
        entries = tuple(
            (key, _plain(v, lines, depth + 1, budget))
            for k, v in node.value
            if isinstance(key := _plain(k, lines, depth + 1, budget), Text)
        )
        return Table(entries, line)
    if isinstance(node, yaml.SequenceNode):
        return Row(tuple(_plain(item, lines, depth + 1, budget) for item in node.value), line)
    style = getattr(node, "style", None)
    block = style in ("|", ">")
    kind: Any = _KINDS.get(node.tag, "str")
    value = str(node.value) if style != ">" else _folded(lines[line : node.end_mark.line])
    return Text(value, line + 1 if block else line, kind, block)


def _folded(lines: list[str]) -> str:
    """A `>` text with its lines kept: a backslash joins what YAML would join by a blank."""
    text = "\n".join(line.strip() for line in lines).rstrip("\n")
    return re.sub(r"(?<=[^\n\\])\n(?=[^\n])", " \\\\\n", text)
