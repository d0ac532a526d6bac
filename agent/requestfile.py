"""A request as people give it: a YAML file, flags over it, and the command after `--`.

Flags and `--set FIELD=VALUE` (a value as in YAML) go over the file, each labelled with its own name, so that a fault
is told with the line or the flag it stands in, and an unknown field with the nearest known one. The workspace is made
absolute here: a relative one is meant from the folder of the file.

A batch script, a submit line of another tool (in a file, or after `--`) or a manifest is a request too
(`agent/native`): it goes to the cluster of its kind, and its relative paths are meant from where the person stands.

Never: fill in what nobody gave; keep a credential (the service refuses a request that carries one, and a native one
is looked through as a whole, since only a part of it becomes a request).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from agent.native import CLUSTER_OF, IN_WORDS, Converted, Kind, convert, recognise
from agent.service import Refusal, workspace_of
from agent.yamlfile import SIZE_MAX, Document, Loc, UserFileError, plain_scalar, read_document, validate
from states.credentials import find_credentials
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
    clusters: Mapping[str, str] | None = None,
    default_cluster: str = "",
    tell: Callable[[str], object] = str,
) -> Request:
    """The request of one command line, its workspace absolute.

    flags: {field: value}; what is None, False or empty was not given. env: variables over the file's.
    settings: `FIELD=VALUE` texts. command: the words after `--`; a single one is a line for bash. clusters: kind of
    each configured cluster by its name (None: the cluster of a native request is not chosen here). tell: gets what a
    person should know of how a native request was read.
    Raises UserFileError with everything that is wrong, and Refusal for a credential in a native request (B4).
    """
    converted = native_of(file, command, cwd=cwd)
    if converted is not None:
        document, command = _of_native(converted, file, flags, clusters, default_cluster), None
    else:
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
    beside = file.resolve().parent if file is not None and converted is None else None
    workspace = workspace_of(request, beside=beside, default=default_workspace, cwd=cwd)
    for note in converted.notes if converted is not None else ():
        tell(note)
    return request.model_copy(update={"workspace": workspace})


# --- what other tools take -------------------------------------------------------------------------------


def native_of(file: Path | None, command: Sequence[str] | None, *, cwd: Path) -> Converted | None:
    """What the file or the words are made to, if they are a batch script, a submit line or a manifest.

    Raises UserFileError for one that cannot be a request, and for a shell script that submits nothing; Refusal for a
    credential in it (B4).
    """
    if file is None:
        if recognise(argv=command or ()) is None:
            return None
        refuse_credentials_in("\n".join(command or ()), "the words after `--`")
        script = _script_in(command or (), cwd)
        return convert(argv=command or (), home=str(cwd), read=_reader(cwd), executable=_can_run(script))
    text = _text_of(file)
    kind = recognise(text, path=file)
    if kind is None:
        if text.startswith("#!") or file.suffix == ".sh":
            said = f"a shell script that submits nothing; run it by `wk run -- bash {file}`"
            raise UserFileError(f"{file}: {said}")
        return None
    if command is not None and kind != "sbatch":
        raise UserFileError(
            f"{file} is {IN_WORDS[kind]} and brings its command; leave out what stands after `--`"
        )
    refuse_credentials_in(text, str(file))
    return convert(
        text, path=str(file), home=str(cwd), args=command or (), read=_reader(cwd), executable=_can_run(file)
    )


def refuse_credentials_in(text: str, where: str) -> None:
    """B4, for all that a native request holds: raises Refusal with the lines, and never a value."""
    found = [f"line {text.count(chr(10), 0, one.start) + 1} ({one.kind})" for one in find_credentials(text)]
    if found:
        raise Refusal(
            f"{where}: what looks like a credential stands in {', '.join(dict.fromkeys(found))}. Nothing was stored "
            "or submitted. Take it out; a job reads its credentials from a file below the workspace or from the "
            "cluster's own secrets."
        )


def _of_native(
    converted: Converted,
    file: Path | None,
    flags: Mapping[str, Any],
    clusters: Mapping[str, str] | None,
    default_cluster: str,
) -> Document:
    """Its fields as a document. Words that back a field go where a flag gives the field anew."""
    data = dict(converted.request)
    dropped = [word for field, words in converted.backing.items() if flags.get(field) for word in words]
    if dropped:
        data["extra_args"] = [word for word in data["extra_args"] if word not in dropped]
    if clusters is not None:
        given = str(flags.get("cluster") or "")
        data["cluster"] = _cluster_for(converted.kind, given, clusters, default_cluster)
    label = str(file) if file is not None else "after `--`"
    return Document(data, {(field,): label for field in data}, {})


def _cluster_for(kind: Kind, given: str, clusters: Mapping[str, str], default: str) -> str:
    """The cluster named, the default one, or the only one of that kind. Raises UserFileError."""
    wanted = CLUSTER_OF[kind]
    fitting = [name for name, its in clusters.items() if its == wanted]
    chosen = given or (default if default in fitting or len(fitting) != 1 else fitting[0])
    if chosen in fitting:
        return chosen
    said = f"this is {IN_WORDS[kind]}, for a cluster of kind {wanted}, and {chosen!r} is none"
    if fitting:
        raise UserFileError(f"{said}; choose by --cluster: {', '.join(fitting)}")
    raise UserFileError(f"{said}; configure one under `clusters:`, or see what request it is: `wk convert`")


def _text_of(path: Path) -> str:
    """Up to the size of any request; "" for what is no text, which YAML then tells."""
    try:
        with path.open("rb") as file:
            return file.read(SIZE_MAX).decode("utf-8")
    except (OSError, UnicodeDecodeError):
        return ""


def _reader(cwd: Path) -> Callable[[str], str | None]:
    """Reads a file that a native request names. It raises Refusal for a credential in it."""

    def read(path: str) -> str | None:
        text = _text_of(cwd / Path(path).expanduser()) or None
        if text is not None:
            refuse_credentials_in(text, path)
        return text

    return read


def _script_in(words: Sequence[str], cwd: Path) -> Path | None:
    """The script of an `sbatch` line: the first of its words that is a file."""
    return next((path for word in words[1:] if (path := cwd / Path(word).expanduser()).is_file()), None)


def _can_run(path: Path | None) -> bool:
    return path is not None and os.access(path, os.X_OK)


# --- flags over it ---------------------------------------------------------------------------------------


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
