"""A request as people give it: a YAML file, flags over it, and the command after `--`.

Flags and `--set FIELD=VALUE` (a value as in YAML) go over the file, each labelled with its own name, so that a fault
is told with the line or the flag it stands in, and an unknown field with the nearest known one. The workspace is made
absolute here: a relative one is meant from the folder of the file.

Never: fill in what nobody gave; keep a credential (the service refuses a request that carries one).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from agent.service import workspace_of
from agent.yamlfile import Document, Loc, UserFileError, plain_scalar, read_document, validate
from states.spec import Request

WHAT = "the request"


def request_from(
    file: Path | None,
    *,
    flags: Mapping[str, Any],
    env: Mapping[str, str] | None = None,
    settings: Sequence[str] = (),
    command: Sequence[str] | None = None,
    default_workspace: Path | None,
    cwd: Path,
) -> Request:
    """The request of one command line, its workspace absolute.

    flags: {field: value}; what is None, False or empty was not given. env: variables over the file's.
    settings: `FIELD=VALUE` texts. command: the words after `--`; a single one is a line for bash.
    Raises UserFileError with everything that is wrong.
    """
    document = read_document(file, what=WHAT) if file is not None else Document({}, {}, {})
    document.labels.pop((), None)
    for field, value in flags.items():
        if value is None or value is False or value in ("", [], ()):
            continue
        _put(document, (field,), value, f"--{_flag(field)}")
    for name, value in (env or {}).items():
        _put(document, ("env", name), value, f"--env {name}")
    for setting in settings:
        _set(document, setting)
    if command is not None:
        words = list(command)
        _put(document, ("command",), words[0] if len(words) == 1 else words, "after `--`")
    if not document.data:
        raise UserFileError(
            "nothing to run: give a request file (`wk run job.yaml`) or a command (`wk run -- python train.py`)"
        )
    request = validate(document, Request)
    beside = file.resolve().parent if file is not None else None
    workspace = workspace_of(request, beside=beside, default=default_workspace, cwd=cwd)
    return request.model_copy(update={"workspace": workspace})


def pairs(texts: Sequence[str], flag: str) -> dict[str, str]:
    """`NAME=VALUE` texts as a mapping. Raises UserFileError naming the flag."""
    found = {}
    for text in texts:
        name, sign, value = text.partition("=")
        if not sign or not name:
            raise UserFileError(f"{flag}: give it as NAME=VALUE")
        found[name] = value
    return found


def _set(document: Document, text: str) -> None:
    """`policy.poll_s=5`, `stop_when=[{step: 100}]`: one field, or one inside a mapping, a value as in YAML."""
    name, sign, given = text.partition("=")
    if not sign or not name:
        raise UserFileError("--set: give it as FIELD=VALUE, as in --set max_restarts=0")
    label, place = f"--set {name}", tuple(name.split("."))
    if not given.startswith(("[", "{")):
        _put(document, place, plain_scalar(given), label, written=given)
        return
    read = read_document(f"value: {given}", what=label)
    _put(document, place, read.data["value"], label)
    document.labels.update({(*place, *loc[1:]): label for loc in read.labels if loc})
    document.texts.update({(*place, *loc[1:]): written for loc, written in read.texts.items()})


def _put(document: Document, place: Loc, value: Any, label: str, *, written: str | None = None) -> None:
    """Put a value where it belongs, labelled; mappings on the way are made. written: its text, if it is a scalar."""
    target = document.data
    for depth, step in enumerate(place[:-1], start=1):
        document.labels.setdefault(place[:depth], label)
        if not isinstance(target.get(str(step)), dict):
            target[str(step)] = {}
        target = target[str(step)]
    _forget_below(document, place)
    target[str(place[-1])] = value
    document.labels[place] = label
    if written is not None or isinstance(value, str):
        document.texts[place] = written if written is not None else str(value)


def _forget_below(document: Document, place: Loc) -> None:
    for kept in (document.labels, document.texts):
        for loc in [loc for loc in kept if loc[: len(place)] == place]:
            del kept[loc]


def _flag(field: str) -> str:
    return {"mounts": "mount", "outputs": "output", "memory_mib": "memory-mib"}.get(
        field, field.replace("_", "-")
    )
