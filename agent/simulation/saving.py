"""A story that was found, as a scenario file: YAML that `wk scenario run` plays, its fault in a comment.

Never: a path or an id of the playing in which it was found.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml


class _Flow(yaml.SafeDumper):
    """Short lists and mappings on one line, as people write stories."""

    def represent_mapping(self, tag: str, mapping: Any, flow_style: bool | None = None) -> yaml.MappingNode:
        node = super().represent_mapping(tag, mapping, flow_style)
        node.flow_style = all(isinstance(value, yaml.ScalarNode) for _, value in node.value)
        return node


def save(folder: Path, seed: int, data: Mapping[str, Any], faults: Sequence[str]) -> Path:
    """Write the story below the folder and return its file. The title says that it must hold."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"seed-{seed}.yaml"
    told = "".join(f"# {line}\n" for fault in faults for line in fault.splitlines()[:3])
    file.write_text(f"# Found by seed {seed}:\n{told}{text_of(data)}", encoding="utf-8")
    return file


def text_of(data: Mapping[str, Any]) -> str:
    """The story as YAML, whole numbers without a point."""
    text: str = yaml.dump(_plain(data), Dumper=_Flow, sort_keys=False, allow_unicode=True, width=110)
    return text


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value
