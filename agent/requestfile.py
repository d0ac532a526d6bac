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
    settings: Sequence[str] = (),
    command: Sequence[str] | None = None,
    default_workspace: Path | None,
    cwd: Path,
) -> Request:
    """The request of one command line, its workspace absolute.

    flags: {field: value}; what is None or empty was not given. settings: `FIELD=VALUE` texts. command: the words
    after `--`; a single one is a line for bash. Raises UserFileError with everything that is wrong.
    """
    document = read_document(file, what=WHAT) if file is not None else Document({}, {}, {})
    document.labels.pop((), None)
    for field, value in flags.items():
        if value not in (None, "", [], (), False):
            _put(document, field, value, f"--{_flag(field)}")
    for setting in settings:
        _set(document, setting)
    if command is not None:
        words = list(command)
        _put(document, "command", words[0] if len(words) == 1 else words, "after `--`")
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
    """`policy.poll_s=5`, `stop_when=[{step: 100}]`: one field, or one inside a mapping."""
    name, sign, given = text.partition("=")
    if not sign or not name:
        raise UserFileError("--set: give it as FIELD=VALUE, as in --set max_restarts=0")
    label = f"--set {name}"
    value, labels, texts = _value(given, label)
    *above, last = name.split(".")
    place: Loc = ()
    target = document.data
    for step in above:
        place = (*place, step)
        document.labels.setdefault(place, label)
        if not isinstance(target.get(step), dict):
            target[step] = {}
        target = target[step]
    _forget_below(document, (*place, last))
    target[last] = value
    document.labels.update({(*place, last, *loc): label for loc in labels})
    document.texts.update({(*place, last, *loc): written for loc, written in texts.items()})


def _value(text: str, label: str) -> tuple[Any, list[Loc], dict[Loc, str]]:
    """A scalar, or a list or mapping in brackets, as YAML reads it, with the places inside it."""
    if text.startswith(("[", "{")):
        read = read_document(f"value: {text}", what=label)
        return (
            read.data["value"],
            [loc[1:] for loc in read.labels if loc],
            {loc[1:]: written for loc, written in read.texts.items()},
        )
    return plain_scalar(text), [()], {(): text}


def _put(document: Document, field: str, value: Any, label: str) -> None:
    _forget_below(document, (field,))
    document.data[field] = value
    document.labels[(field,)] = label
    if isinstance(value, str):
        document.texts[(field,)] = value


def _forget_below(document: Document, place: Loc) -> None:
    for kept in (document.labels, document.texts):
        for loc in [loc for loc in kept if loc[: len(place)] == place]:
            del kept[loc]


def _flag(field: str) -> str:
    return {"mounts": "mount", "outputs": "output", "memory_mib": "memory-mib"}.get(
        field, field.replace("_", "-")
    )
