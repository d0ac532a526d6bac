"""A `ray job submit` line as a request (the manual of Ray's job command line).

The entrypoint is the command; variables in front of it and those of the runtime environment become `env`. Ray
reserves nothing for an entrypoint that asks for nothing, and that is kept: its figures are 0.

Never: a header of the line (it may be a token); a package install let through without a word (C12).
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from agent.native.converted import Building, Converted, ReadText
from agent.yamlfile import UserFileError, plain_scalar, read_document

FLAGS = frozenset({"--no-wait", "--verbose", "-v"})
WITHOUT_MEANING: Mapping[str, str] = {
    "--address": "the cluster's settings say where it is",
    "--job-id": "each attempt has an id of its own",
    "--no-wait": "`wk run` stays until the end, and --detach does not",
    "--headers": "headers for a gateway stand in the cluster's settings",
    "--verify": "`ca_file` stands in the cluster's settings",
    "--log-style": "it is about what the line prints",
    "--log-color": "it is about what the line prints",
    "--verbose": "it is about what the line prints",
    "-v": "it is about what the line prints",
}
AS_THEY_ARE = frozenset({"--entrypoint-resources", "--entrypoint-label-selector", "--metadata-json"})
INSTALLS = ("pip", "uv", "conda")
MIB = 1 << 20
SETTING = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL)


def from_line(words: Sequence[str], *, read: ReadText) -> Converted:
    """The request of `ray job submit ... -- ENTRYPOINT`. read: text of the file behind `--runtime-env`.

    Raises UserFileError for a line without an entrypoint, or with a value that cannot be read.
    """
    given, entrypoint = _split(list(words[3:]))
    built = Building("ray")
    if name := given.pop("--submission-id", ""):
        built.name(name)
    _amounts(built, given)
    environment = _environment(given, read)
    _folder(built, given.pop("--working-dir", None) or environment.pop("working_dir", None))
    variables = {str(key): str(value) for key, value in environment.pop("env_vars", {}).items()}
    _runtime(built, environment)
    for name, value in given.items():
        if name in AS_THEY_ARE:
            built.keep(f"{name}={value}")
        elif name in WITHOUT_MEANING:
            built.note(f"{name} is left out: {WITHOUT_MEANING[name]}")
        else:
            raise UserFileError(
                f"ray: {name} is no option that is known here; take it out, or say what it is for"
            )
    built.request["command"] = _command(entrypoint, variables)
    if variables:
        built.request["env"] = variables
    return built.done()


def _split(words: list[str]) -> tuple[dict[str, str], list[str]]:
    """Options with their values, and the entrypoint: behind `--`, or from the first word that is no option."""
    given: dict[str, str] = {}
    while words and words[0].startswith("-") and words[0] != "--":
        name, equals, value = words.pop(0).partition("=")
        if not equals and name not in FLAGS:
            if not words or words[0] == "--":
                raise UserFileError(f"ray: {name} lacks its value")
            value = words.pop(0)
        given[name] = value
    entrypoint = words[1:] if words[:1] == ["--"] else words
    if not entrypoint:
        raise UserFileError("ray: there is no entrypoint behind `--`; does a line lack its backslash?")
    return given, entrypoint


def _amounts(built: Building, given: dict[str, str]) -> None:
    """Cores, GPUs and memory of the entrypoint. Ray's own default is to reserve nothing."""
    amounts = {}
    for kind in ("cpus", "gpus"):
        word = given.pop(f"--entrypoint-num-{kind}", "0")
        amounts[kind] = plain_scalar(word)
        if not isinstance(amounts[kind], int | float) or isinstance(amounts[kind], bool):
            raise UserFileError(f"ray: --entrypoint-num-{kind} takes a number, not {word!r}")
    cpus, gpus = amounts["cpus"], amounts["gpus"]
    built.request["cpu"] = cpus
    if gpus:
        built.request["gpu"] = math.ceil(gpus)
        if gpus != math.ceil(gpus):
            built.keep(f"--entrypoint-num-gpus={gpus:g}", backing="gpu")
    memory = given.pop("--entrypoint-memory", "0")
    if not memory.isdecimal():
        raise UserFileError(f"ray: --entrypoint-memory takes bytes, not {memory!r}")
    built.request["memory_mib"] = math.ceil(int(memory) / MIB)


def _environment(given: dict[str, str], read: ReadText) -> dict[str, Any]:
    """The runtime environment, from its file and the JSON over it, as Ray's own command takes them."""
    file, text = given.pop("--runtime-env", ""), given.pop("--runtime-env-json", "")
    found: dict[str, Any] = {}
    if file:
        written = read(file)
        if written is None:
            raise UserFileError(f"ray: --runtime-env: {file} cannot be read; check the path")
        found |= read_document(written, what=f"the runtime environment {file}").data
    if text:
        try:
            told = json.loads(text)
        except (ValueError, RecursionError):
            told = None
        if not isinstance(told, dict):
            raise UserFileError("ray: --runtime-env-json is no JSON object; are its quotes whole?")
        found |= told
    if not isinstance(found.get("env_vars", {}), dict):
        raise UserFileError("ray: env_vars of the runtime environment is a mapping of names to values")
    return found


def _folder(built: Building, given: object) -> None:
    """A folder becomes the workspace; an address of files is passed through."""
    if not given:
        return
    if "://" in str(given):
        built.keep(f"--working-dir={given}", backing="workspace")
        return
    built.request["workspace"] = str(given)
    built.note(
        "the working directory is not uploaded: the nodes must see it (`workspace_visible` of the cluster)"
    )


def _runtime(built: Building, environment: dict[str, Any]) -> None:
    if environment:
        built.keep(f"--runtime-env-json={json.dumps(environment, ensure_ascii=False)}")
    if installs := [key for key in INSTALLS if key in environment]:
        said = "it installs when the job starts, which is refused (C12); build the environment before"
        built.note(f"runtime_env {', '.join(installs)}: {said}")


def _command(entrypoint: list[str], variables: dict[str, str]) -> list[str] | str:
    """The entrypoint without the variables in front of it. A single word is a line for a shell, as it is for Ray."""
    while len(entrypoint) > 1 and (setting := SETTING.fullmatch(entrypoint[0])):
        variables[setting[1]] = setting[2]
        entrypoint = entrypoint[1:]
    return entrypoint[0] if len(entrypoint) == 1 else entrypoint
